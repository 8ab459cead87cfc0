"""Where operators are not captured, and how many at each place."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dynamometer.dynamo.capture import compilations
from dynamometer.results.values.coverage import GraphBreak

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.values.coverage import SkippedFrame


class Site(NamedTuple):
    """Where something is not captured: a line at which a graph ends, or a function left to Python.

    Attributes:
        file: of the source.
        line: at which the graph ends, or the function begins.
        function: its name; `None` for the line alone.
    """

    file: str
    line: int
    function: str | None = None


def sites_of(seen: compilations.Compilations) -> frozenset[Site]:
    """Name every place that may lose operators."""
    return frozenset(
        (
            *(Site(each.file, each.line) for each in seen.breaks),
            # Where a function is called through torch or Python, as by `checkpoint`, the graph ends
            # at the call, and nothing of the function is compiled.
            *(Site(*caller) for each in seen.breaks for caller in each.callers),
            *(Site(*each.left) for each in seen.breaks if each.left),
            *(Site(each.file, each.line, each.function) for each in seen.skipped),
        )
    )


@dataclass
class NotCaptured:
    """What is not captured at each place; whoever takes it first has it.

    Attributes:
        ops: operators.
        seconds: `None` where time tells nothing.
    """

    ops: dict[Site | None, int]
    seconds: dict[Site | None, float] | None

    def take(self, sites: Iterable[Site]) -> dict[str, Any]:
        """Return what is not captured at some places, as fields."""
        ops, seconds = 0, 0.0
        for site in sites:
            ops += self.ops.pop(site, 0)
            seconds += self.seconds.pop(site, 0.0) if self.seconds is not None else 0.0
        return {
            "not_captured_ops": ops,
            "not_captured_s": None if self.seconds is None else seconds,
        }


def skipped_frames(
    found: Iterable[SkippedFrame], not_captured: NotCaptured
) -> tuple[SkippedFrame, ...]:
    """Return each function once, however often Dynamo gave it up."""
    functions = {Site(each.file, each.line, each.function): each for each in found}
    return tuple(
        msgspec.structs.replace(each, **not_captured.take((site,)))
        for site, each in functions.items()
    )


def graph_breaks(
    found: Sequence[compilations.Break], not_captured: NotCaptured
) -> tuple[GraphBreak, ...]:
    """Return each line at which graphs had to end and each reason, the most costly line first.

    What a line costs is put down to the first of its reasons.
    """
    breaks = []
    places = {(each.file, each.line) for each in found}
    for first, times in compilations.by_reason(found):
        file, line = first.file, first.line
        here = [each for each in found if (each.file, each.line) == (file, line)]
        left = {Site(*each.left) for each in here if each.left}
        callers = {Site(*place) for each in here for place in each.callers if place not in places}
        breaks.append(
            GraphBreak(
                reason=first.reason,
                hint=first.hints[0] if first.hints else None,
                file=file,
                line=line,
                function=first.function,
                code=linecache.getline(file, line).strip() or None,
                times=times,
                **not_captured.take((Site(file, line), *sorted(left), *sorted(callers))),
            )
        )
    return tuple(sorted(breaks, key=lambda each: (-each.not_captured_ops, each.file, each.line)))
