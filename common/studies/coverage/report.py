"""What the models of a run come to when Dynamo's share of each was counted. Pure; no torch."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from tabulate import tabulate

from dynamometer.common.studies.not_captured import reasons
from dynamometer.results.reports import overrides_report
from dynamometer.results.reports.texts import in_source, name_columns, place, share_text
from dynamometer.results.statistics.summary import is_counted
from dynamometer.results.values.cases import Mode
from dynamometer.results.values.coverage import GraphBreak

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dynamometer.common.studies.coverage.summary import CoverageSummary
    from dynamometer.results.values.coverage import Coverage, SkippedFrame

_SHOWN = 10


def line(found: CoverageSummary) -> str:
    """Render one model: frames, graphs, and the shares of operators and time inside them."""
    case, seen = found.case, found.coverage
    name = name_columns(case)
    if seen is None:
        return f"{name} {found.outcome.line}"
    ops, time = (f"{share_text(each):>4}" for each in (seen.share_of_ops, seen.share_of_time))
    return (
        f"{name} {seen.frames_ok:3}/{seen.frames:3} frames (+{seen.frames_again:2}),"
        f" {len(seen.graphs):3} graphs {seen.graph_calls:4} calls,"
        f" {seen.captured_ops:5}/{seen.total_ops:5} = {ops} ops,"
        f" {time} time{' of forward' if case.mode is Mode.TRAINING else ''}"
    )


def closing_lines(found: Sequence[CoverageSummary]) -> list[str]:
    """Render what the models come to, and what overrides changed of it."""
    return [*lines(overrides_report.counted(found)), *_overrides_lines(found)]


def lines(found: Sequence[CoverageSummary]) -> list[str]:
    """Render what the models come to: means, the most graphs, reasons, and what to fix first."""
    counted = [(each.case.model, each.coverage) for each in found if each.coverage is not None]
    if not counted:
        return []
    seen = [each for _, each in counted]
    return [
        "",
        f"models: {len(seen)} of {sum(is_counted(each.outcome) for each in found)} counted",
        _means(seen),
        f"one graph is all of it: {sum(each.is_full_graph for each in seen)} of {len(seen)}",
        *_most_graphs(counted),
        *_reasons(seen),
        *_first_to_fix(counted),
        *_unexplained(seen),
    ]


def _overrides_lines(found: Sequence[CoverageSummary]) -> list[str]:
    """Render each model with and without: graphs, breaks, and the shares that are captured."""
    table = [
        [before.case.model, *overrides_report.changes(_cells(before), _cells(after))]
        for before, after in overrides_report.pairs(found)
    ]
    headers = ["model", "graphs", "breaks", "ops captured", "of time", "outcome"]
    return overrides_report.table([each.case for each in found], table, headers)


def _cells(found: CoverageSummary) -> list[str]:
    seen = found.coverage
    if seen is None:
        return ["-", "-", "-", "-", str(found.outcome.status)]
    return [
        str(len(seen.graphs)),
        str(sum(each.times for each in seen.breaks)),
        f"{seen.captured_ops}/{seen.total_ops}",
        share_text(seen.share_of_time),
        str(found.outcome.status),
    ]


def _means(seen: Sequence[Coverage]) -> str:
    ops = share_text(_mean(each.share_of_ops for each in seen))
    time = share_text(_mean(each.share_of_time for each in seen))
    graphs = statistics.fmean(len(each.graphs) for each in seen)
    calls = statistics.fmean(each.graph_calls for each in seen)
    return (
        f"mean: {ops:>4} of ops, {time:>4} of time, {graphs:.1f} graphs, {calls:.1f} calls of them"
    )


def _most_graphs(counted: Sequence[tuple[str, Coverage]]) -> list[str]:
    several = [(name, len(each.graphs)) for name, each in counted if len(each.graphs) > 1]
    most = sorted(several, key=lambda pair: -pair[1])[:_SHOWN]
    return _table(
        "most graphs", [[name, str(graphs)] for name, graphs in most], ["model", "graphs"]
    )


def _reasons(seen: Sequence[Coverage]) -> list[str]:
    rows = [
        [each.text, str(each.models), str(each.times), str(each.not_captured_ops),
         _milliseconds(each.not_captured_s)]
        for each in reasons(seen)[:_SHOWN]
    ]  # fmt: skip
    headers = ["reason", "models", "breaks", "ops not captured", "time not captured"]
    return _table("why graphs end", rows, headers, {0: _TEXT_WIDTH})


def _first_to_fix(counted: Sequence[tuple[str, Coverage]]) -> list[str]:
    """List what costs most: the share of its model's operators, then of its time."""
    rows = [
        (each.not_captured_ops / (seen.total_ops or 1), _share_of_time(each, seen), name, each)
        for name, seen in counted
        for each in seen.not_captured
    ]
    worth = [entry for entry in rows if entry[0] or (entry[1] or 0.0) > _VISIBLE]
    worth.sort(key=lambda entry: (-entry[0], -(entry[1] or 0.0)))
    return _table(
        "fix these first",
        [
            [
                name,
                *_place(each),
                share_text(of_ops, 1),
                share_text(time, 1),
                each.hint or each.reason,
            ]
            for of_ops, time, name, each in worth[:_SHOWN]
        ],
        ["model", "where", "line", "ops", "time", "what Dynamo says"],
        {2: _CODE_WIDTH, 5: _TEXT_WIDTH},
    )


def _unexplained(seen: Sequence[Coverage]) -> list[str]:
    """Return how much of what is not captured is in no table."""
    ops = sum(each.unexplained_ops for each in seen)
    text = f"operators outside graphs that are put down to no line and no function: {ops}"
    return ["", text] if ops else []


def _share_of_time(missed: GraphBreak | SkippedFrame, seen: Coverage) -> float | None:
    return (
        missed.not_captured_s / seen.total_s
        if missed.not_captured_s is not None and seen.total_s
        else None
    )


_VISIBLE = 0.01
"""Of a forward's time: less is not worth a line where every operator is captured."""


def _place(missed: GraphBreak | SkippedFrame) -> tuple[str, str]:
    """Return where something is not captured: the file and line, and what is there."""
    if isinstance(missed, GraphBreak):
        return place(missed.file, missed.line), missed.code or ""
    function = f"{in_source(missed.function)} ({place(missed.file, missed.line)})"
    return place(*missed.cause), f"left as it is: {function}"


_CODE_WIDTH = 40
_TEXT_WIDTH = 60


def _table(
    title: str, rows: list[list[str]], headers: list[str], widths: Mapping[int, int] | None = None
) -> list[str]:
    """Render rows below a title; longer text than a column's width goes on in a further line."""
    if not rows:
        return []
    limits = [(widths or {}).get(index) for index in range(len(headers))]
    table = tabulate(rows, headers=headers, disable_numparse=True, maxcolwidths=limits)
    return ["", f"{title}:", *table.splitlines()]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.2f} ms"
