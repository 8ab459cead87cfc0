"""Distinct bugs among many failures: those whose message and stack say the same. Pure; no torch."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.common.studies.parity.summary import ParitySummary

_FRAMES = 3
"""The innermost of torch's frames that tell two bugs of one message apart."""
_TORCH_FRAME = re.compile(r'File "[^"]*?/(torch/[^"]+\.py)", line \d+, in (\S+)')
_VARYING = (
    (re.compile(r" \([^()\s]+\.py:\d+\)"), ""),  # where in a test's own code
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDRESS"),
    (re.compile(r"(?<!\w)(?:/[\w.+-]+)+/"), ""),  # folders
    (re.compile(r"\b_*(?:l|L|self|__compiled_fn|torch_dynamo_resume_in)_\w+"), "_"),
    (re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`"), "'_'"),
    (re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"), "N"),
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
    """Return the bugs behind failures, those of the most projects first."""
    found: defaultdict[tuple[str, str, tuple[str, ...]], list[ParitySummary]] = defaultdict(list)
    for each in failed:
        outcome = each.outcome
        frames = stack(outcome.detail or "")
        found[outcome.status, normalised(outcome.reason or ""), frames].append(each)
    bugs = [
        Bug(message, frames[-1] if frames else "", tuple(sorted(tests, key=_size)))
        for (_, message, frames), tests in found.items()
    ]
    return sorted(bugs, key=lambda each: (-each.projects, -len(each.tests), each.message))


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
