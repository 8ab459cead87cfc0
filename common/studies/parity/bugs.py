"""Distinct bugs among many failures: those whose message and stack say the same. Pure; no torch."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dynamometer.common.studies.parity.summary import ParitySummary

_FRAMES = 3
"""The innermost of torch's frames that tell two bugs of one message apart."""
_TORCH_FRAME = re.compile(r'File "[^"]*?/(torch/[^"]+\.py)", line \d+, in (\S+)')
_QUOTED = re.compile(
    r"((?:attribute |module named |\w*(?:Error|Exception)\()?)"
    r"(?<!\w)('[^']*'|\"[^\"]*\"|`[^`]*`)(?!\w)",
    re.IGNORECASE,
)


def _unless_telling(found: re.Match[str]) -> str:
    """Leave out what is quoted, but for what an object or a package lacks, and names of torch.

    Of an exception in a message, such as the one that Dynamo met, its own message stays.
    """
    before, quoted = found.groups()
    if before.endswith("(") and " " in quoted:  # a KeyError quotes a name
        return before + quoted[0] + _QUOTED.sub(_unless_telling, quoted[1:-1]) + quoted[-1]
    is_telling = before.endswith(" ") or re.match(r"(?:torch|aten|prims)\b", quoted[1:])
    return found[0] if is_telling else f"{before}'_'"


_VARYING: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r" \([^()\s]+\.py:\d+\)"), ""),  # where in a test's own code
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDRESS"),
    (re.compile(r"(?<![\w:/])(?:/[\w.+-]+)+/"), ""),  # folders, not those of an address
    (re.compile(r"\b_*(?:l|L|self|__compiled_fn|torch_dynamo_resume_in)_\w+"), "_"),
    (_QUOTED, _unless_telling),
    (re.compile(r"\b(?:zuf|[usf])\d+\b"), "SIZE"),  # Dynamo's symbols
    (re.compile(r"\b\d+(?:x\d+)+\b"), "N"),  # 4x16
    (re.compile(r"(?<!\w)-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"), "N"),
    (re.compile(r"N(?:, N)+"), "N, ..."),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True)
class Bug:
    """Failures that say the same.

    Attributes:
        message: what they say, without what differs from test to test.
        place: the innermost of torch's functions on their stacks; empty where none is known.
        tests: that fail so, the smallest first.
    """

    message: str
    place: str
    tests: tuple[ParitySummary, ...]

    @property
    def projects(self) -> int:
        """How many projects have it."""
        return len({each.project for each in self.tests})

    @property
    def smallest(self) -> ParitySummary:
        """The test to look at: that of the fewest operators, or else the shortest name."""
        return self.tests[0]


def distinct(failed: Iterable[ParitySummary]) -> list[Bug]:
    """Return the bugs behind failures, those of the most projects first.

    Of wrong results each is a bug by itself: nothing says where they come from.
    """
    found: defaultdict[tuple[str, ...], list[ParitySummary]] = defaultdict(list)
    for each in failed:
        outcome = each.outcome
        is_wrong = outcome.status is Status.FAIL_ACCURACY
        told = (each.case.model,) if is_wrong else stack(outcome.detail or "")
        found[outcome.status, normalised(outcome.reason or ""), *told].append(each)
    bugs = [_bug(tests) for tests in found.values()]
    return sorted(bugs, key=lambda each: (-each.projects, -len(each.tests), each.message))


def _bug(tests: Iterable[ParitySummary]) -> Bug:
    smallest, *others = sorted(tests, key=_size)
    frames = stack(smallest.outcome.detail or "")
    message = normalised(smallest.outcome.reason or "")
    return Bug(message, frames[-1] if frames else "", (smallest, *others))


def normalised(message: str) -> str:
    """Return what stays of a message where names, numbers, sizes and places differ."""
    for pattern, text in _VARYING:
        message = pattern.sub(text, message)
    return message.strip()


def stack(traceback: str) -> tuple[str, ...]:
    """Return the innermost of torch's functions on a traceback, outermost first."""
    frames = [f"{file}:{function}" for file, function in _TORCH_FRAME.findall(traceback)]
    return tuple(frames[-_FRAMES:])


def _size(test: ParitySummary) -> tuple[float, int, str]:
    ops = float("inf") if test.ops is None else test.ops
    return ops, len(test.case.model), test.case.model
