"""What is not captured where, as rows of CSV files and as a ranking of reasons. Pure; no torch."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.reports.columns import Column, Table, identity
from dynamometer.results.reports.texts import in_source
from dynamometer.results.values.coverage import GraphBreak, Recompile
from dynamometer.results.values.metrics import Better

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.coverage import Coverage, SkippedFrame


@dataclass(frozen=True)
class Place:
    """One place where something is not captured.

    Attributes:
        case: of the model.
        kind: what sort of thing it is.
        found: the thing.
        reason: why it happened.
    """

    case: Case
    kind: str
    found: GraphBreak | SkippedFrame | Recompile
    reason: str


def _where_known(name: str) -> Callable[[Place], object]:
    """Return an attribute of what has it; not all kinds of things do."""
    return lambda place: getattr(place.found, name, None)


NOT_CAPTURED = Table[Place](
    "coverage_not_captured",
    "A row for each graph break, each function that was left to Python, and each recompile. A"
    " function is at its first line.",
    (
        *identity(lambda place: place.case),
        Column[Place]("kind", "`break`, `left alone` or `recompile`.", lambda place: place.kind),
        Column("file", "Source file.", lambda place: place.found.file),
        Column("line", "Line of it.", lambda place: place.found.line),
        Column("function", "Function.", lambda place: in_source(place.found.function)),
        Column("code", "The line itself, of a graph break.", _where_known("code")),
        Column(
            "stopped_file", "Where Dynamo could not follow a function that it left alone.",
            _where_known("stopped_file"),
        ),
        Column("stopped_line", "Line of that file.", _where_known("stopped_line")),
        Column("times", "How often a graph ended there.", _where_known("times")),
        Column(
            "not_captured_ops", "Operators that one step runs outside graphs because of it.",
            _where_known("not_captured_ops"), better=Better.LOWER,
        ),
        Column(
            "not_captured_s", "Time that one step spends outside graphs because of it.",
            _where_known("not_captured_s"), "s", Better.LOWER,
        ),
        Column("reason", "Dynamo's words; of a recompile the guard.", lambda place: place.reason),
        Column("hint", "What Dynamo advises to do about it.", _where_known("hint")),
    ),
)  # fmt: skip


def places_of(case: Case, seen: Coverage | None) -> list[Place]:
    """Return all places of a model; none where nothing was counted."""
    if seen is None:
        return []
    return [
        *(Place(case, "break", each, each.reason) for each in seen.breaks),
        *(Place(case, "left alone", each, each.reason) for each in seen.skipped),
        *(Place(case, "recompile", each, each.guard) for each in seen.recompiles),
    ]


@dataclass(frozen=True)
class Reason:
    """One reason graphs had to end for, over all models.

    Attributes:
        text: Dynamo's words.
        models: that have it.
        times: graphs that end for it.
        not_captured_ops: operators not captured for it, of one step of every model.
        not_captured_s: seconds, likewise; `None` where time tells nothing of any model.
    """

    text: str
    models: int
    times: int
    not_captured_ops: int
    not_captured_s: float | None


def reasons(seen: Iterable[Coverage]) -> list[Reason]:
    """Rank the reasons graphs had to end for by the operators they cost."""
    groups: defaultdict[str, list[tuple[int, GraphBreak | SkippedFrame]]] = defaultdict(list)
    for index, coverage in enumerate(seen):
        for each in coverage.not_captured:
            groups[each.reason].append((index, each))
    found = [
        Reason(
            text=text,
            models=len({index for index, _ in group}),
            times=sum(each.times if isinstance(each, GraphBreak) else 1 for _, each in group),
            not_captured_ops=sum(each.not_captured_ops for _, each in group),
            not_captured_s=_sum(each.not_captured_s for _, each in group),
        )
        for text, group in groups.items()
    ]
    return sorted(
        found,
        key=lambda each: (
            -each.not_captured_ops,
            -(each.not_captured_s or 0.0),
            -each.times,
            each.text,
        ),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None
