"""What the graphs of models come to: a line for each model, and what they share. Pure; no torch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from tabulate import tabulate

from dynamometer.results.reports.columns import Column, Table, ending, identity
from dynamometer.results.reports.texts import name_columns
from dynamometer.results.values.graphs import RecordedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.reports.columns import Rows
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.graphs import RecordedGraph
    from dynamometer.results.values.records import Outcome, Record


@dataclass(frozen=True)
class Found:
    """One model.

    Attributes:
        case: what was run.
        outcome: how that ended.
        model: its graphs; `None` unless it passed.
    """

    case: Case
    outcome: Outcome
    model: RecordedModel | None

    @property
    def graphs(self) -> tuple[RecordedGraph, ...]:
        """Its graphs, if they are known."""
        return self.model.graphs if self.model else ()


@dataclass(frozen=True)
class _Row:
    found: Found
    graph: RecordedGraph


GRAPHS = Table[_Row](
    "graphs",
    "A row for each graph of each model that was recorded.",
    (
        *identity(lambda row: row.found.case),
        Column[_Row](
            "key", "Hash of the graph, and of its inputs' kinds.", lambda row: row.graph.key
        ),
        Column("part", "`inference`, `forward` or `backward`.", lambda row: row.graph.part),
        Column("ops", "Operations of the graph.", lambda row: row.graph.op_count),
        Column("calls", "How often two steps called it.", lambda row: row.graph.calls),
        Column(
            "left_out", "Why it is not in the corpus; empty where it is.",
            lambda row: row.graph.reason,
        ),
        *ending(lambda row: row.found.outcome),
        Column("scale", "How far the model was shrunk.", lambda row: row.found.case.scale),
    ),
)  # fmt: skip


def summarize(records: Sequence[Record]) -> Found:
    """Summarize the one replicate of a case."""
    last = records[-1]
    model = msgspec.json.decode(last.found, type=RecordedModel | None)
    return Found(last.case, last.outcome, model)


def line(found: Found) -> str:
    """Render how many graphs a model has, or why that is not known."""
    name = name_columns(found.case)
    if found.model is None:
        return f"{name} {found.outcome.line}"
    ops = sum(each.op_count for each in found.graphs)
    left_out = sum(each.reason is not None for each in found.graphs)
    more = f", {left_out} that no file can hold" if left_out else ""
    return f"{name} {len(found.graphs):4} graphs {ops:6} ops{more}"


def closing_lines(every: Sequence[Found]) -> list[str]:
    """Render how many graphs there are, how many of these are alike, and what was left out."""
    graphs = [graph for found in every for graph in found.graphs]
    if not graphs:
        return []
    reasons = Counter({each.key: each.reason for each in graphs if each.reason}.values())
    distinct = len({each.key for each in graphs})
    recorded = sum(found.model is not None for found in every)
    lines = [
        "",
        f"models: {recorded} of {len(every)} recorded",
        f"graphs: {len(graphs)}, of which {distinct} differ; {reasons.total()} are left out",
    ]
    if reasons:
        rows = [[count, reason] for reason, count in reasons.most_common()]
        table = tabulate(rows, headers=["left out", "why"], disable_numparse=True)
        lines += ["", *table.splitlines()]
    return lines


def rows(found: Found) -> list[Rows]:
    """Return a row for each graph."""
    return [GRAPHS.rows(found.case, "dynamo", [_Row(found, each) for each in found.graphs])]
