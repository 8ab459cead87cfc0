"""What became of each model in either mode, as rows of CSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.studies.not_captured import NOT_CAPTURED, places_of
from dynamometer.common.studies.parity.summary import ParitySummary
from dynamometer.results.reports.columns import Column, Table, ending, identity
from dynamometer.results.values.metrics import Better
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from dynamometer.results.reports.columns import Rows


def _breaks(found: ParitySummary) -> int | None:
    capture = found.result.capture
    return sum(capture.breaks.values()) if capture else None


def _max_error(found: ParitySummary) -> float | None:
    return found.result.max_error if found.outcome.status is Status.PASS else None


PARITY = Table[ParitySummary](
    "parity",
    "A row for each model and backend.",
    (
        *identity(lambda found: found.case),
        Column[ParitySummary](
            "project", "What the model is part of.", lambda found: found.project
        ),
        *ending(lambda found: found.outcome),
        Column(
            "full_graph", "How it ended where it had to be one graph (statuses.md).",
            lambda found: found.full_graph.status,
        ),
        Column(
            "full_graph_reason", "Why, unless it passed.",
            lambda found: found.full_graph.reason,
        ),
        Column("graphs", "Graphs that Dynamo captured.", lambda found: found.graphs),
        Column("ops", "Operators in graphs, as Dynamo counts them.", lambda found: found.ops),
        Column(
            "largest_graph", "Operators of the largest graph.",
            lambda found: found.largest_graph,
        ),
        Column(
            "pct_ops", "Share of a step's operators inside graphs, from 0 to 1.",
            lambda found: found.share_of_ops, better=Better.HIGHER,
        ),
        Column("breaks", "Graph breaks.", _breaks, better=Better.LOWER),
        Column(
            "max_error",
            "Largest deviation of a result from eager's, both in the root mean square.",
            _max_error, better=Better.LOWER,
        ),
    ),
)  # fmt: skip


def rows(found: ParitySummary, *, compatible: bool) -> list[Rows]:
    """Return the row of one arm, and one for each thing that is not captured of it."""
    table = PARITY.theirs() if compatible else PARITY
    places = [] if compatible else places_of(found.case, found.coverage)
    return [
        table.rows(found.case, found.result.arm, [found]),
        *([NOT_CAPTURED.rows(found.case, found.result.arm, places)] if places else []),
    ]
