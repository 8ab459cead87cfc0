"""What Dynamo captured of a model, and what was not captured where, as rows of CSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.studies.coverage.summary import CoverageSummary
from dynamometer.common.studies.not_captured import NOT_CAPTURED, places_of
from dynamometer.results.reports.columns import Column, Table, ending, identity, of_part, theirs
from dynamometer.results.values.metrics import Better

if TYPE_CHECKING:
    from dynamometer.results.reports.columns import Rows
    from dynamometer.results.values.coverage import Coverage


def _coverage_of(found: CoverageSummary) -> Coverage | None:
    return found.coverage


_of = of_part(_coverage_of)


COVERAGE = Table[CoverageSummary](
    "coverage",
    "A row for each model.",
    (
        *identity(lambda found: found.case),
        *theirs(
            Column[CoverageSummary](
                "graphs", "Graphs that Dynamo captured.", _of(lambda seen: len(seen.graphs))
            ),
            Column(
                "graph_calls", "Graphs that one step runs.", _of(lambda seen: seen.graph_calls)
            ),
            Column(
                "captured_ops", "Operators of one step inside graphs, as they are dispatched.",
                _of(lambda seen: seen.captured_ops), better=Better.HIGHER,
            ),
            Column(
                "total_ops", "All operators of one step, but for those of threads it begins.",
                _of(lambda seen: seen.total_ops),
            ),
            Column(
                "pct_ops", "Share of the operators inside graphs, from 0 to 1.",
                _of(lambda seen: seen.share_of_ops), better=Better.HIGHER,
            ),
            Column(
                "pct_time",
                "Share of a forward's time inside graphs, from 0 to 1; empty without operators.",
                _of(lambda seen: seen.share_of_time), better=Better.HIGHER,
            ),
        ),
        Column(
            "frames_ok", "Frames that Dynamo didn't fail on.", _of(lambda seen: seen.frames_ok)
        ),
        Column("frames", "Frames that Dynamo looked at.", _of(lambda seen: seen.frames)),
        Column(
            "frames_again", "Frames that a second step with the same inputs compiled.",
            _of(lambda seen: seen.frames_again), better=Better.LOWER,
        ),
        Column(
            "full_graph", "Whether one graph is all of it.", _of(lambda seen: seen.is_full_graph)
        ),
        Column(
            "largest_graph", "Operators of the largest graph.", _of(lambda seen: seen.largest_graph)
        ),
        Column(
            "breaks", "Graph breaks, as often as they end a graph.",
            _of(lambda seen: sum(each.times for each in seen.breaks)), better=Better.LOWER,
        ),
        Column(
            "unique_breaks", "Lines with a graph break.",
            _of(lambda seen: len({(each.file, each.line) for each in seen.breaks})),
            better=Better.LOWER,
        ),
        Column("guards", "Guards over all frames.", _of(lambda seen: seen.guards)),
        Column(
            "guards_s", "Time of a step in which guards are checked.",
            _of(lambda seen: seen.guards_s), "s", Better.LOWER,
        ),
        Column(
            "recompiles", "Recompiles, over all steps.", _of(lambda seen: len(seen.recompiles)),
            better=Better.LOWER,
        ),
        Column(
            "recompile_limit_hits",
            "Frames that Dynamo gave up on, compiled too often, over all steps.",
            _of(lambda seen: seen.recompile_limit_hits), better=Better.LOWER,
        ),
        Column(
            "skipped_frames", "Functions that Dynamo looked at and left to Python.",
            _of(lambda seen: len(seen.skipped)),
        ),
        Column(
            "unexplained_ops", "Operators outside graphs for which no line or function is known.",
            _of(lambda seen: seen.unexplained_ops), better=Better.LOWER,
        ),
        *ending(lambda found: found.outcome),
        Column("scale", "How far the model was shrunk.", lambda found: found.case.scale),
    ),
)  # fmt: skip
"""PyTorch's names and order are those of `benchmarks/dynamo --coverage`."""


def rows(found: CoverageSummary, *, compatible: bool) -> list[Rows]:
    """Return the row of one model, and one for each thing that was not captured of it."""
    if compatible:
        return [COVERAGE.theirs().rows(found.case, "dynamo", [found])]
    places = places_of(found.case, found.coverage)
    return [
        COVERAGE.rows(found.case, "dynamo", [found]),
        *([NOT_CAPTURED.rows(found.case, "dynamo", places)] if places else []),
    ]
