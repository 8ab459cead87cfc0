"""What studies bring to the page, whatever they ask: how cases ended, and their tables. Pure."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from dynamometer.results.reports import overrides_report, texts
from dynamometer.results.reports.page.values import (
    Group,
    Look,
    Part,
    ShownArm,
    ShownColumn,
    ShownTable,
)
from dynamometer.results.reports.sinks import OnPage
from dynamometer.results.statistics.summary import is_counted
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.reports.page.values import Cell
    from dynamometer.results.reports.sinks import Reporter
    from dynamometer.results.values.records import Outcome, Record

T = TypeVar("T")
NO_ORDERS: Mapping[str, str] = MappingProxyType({})
DYNAMIC = "Dynamic"
"""As PyTorch's weekly table calls the cases whose sizes vary."""


def beside_lines(reporter: Reporter, cases: Sequence[Sequence[Record]], part: Part) -> OnPage:
    """Return what a study shows of cases beside what it prints of them."""
    return OnPage(
        part=part,
        lines=[reporter.lines(records) for records in cases],
        closing_lines=reporter.closing_lines(cases) if cases else [],
    )


def part_of_any(
    reporter: Reporter, cases: Sequence[Sequence[Record]], orders: Mapping[str, str] = NO_ORDERS
) -> Part:
    """Return what any study can show: how its cases ended, and its tables.

    Args:
        reporter: the study.
        cases: of a run, each with its records.
        orders: by which column a table of some kind is sorted at first (`ShownTable.order`).
    """
    outcomes = [reporter.ending(records) for records in cases]
    usual = _usual(cases)
    groups = _groups(
        [(records, outcome) for records, outcome, counts in zip(cases, outcomes, usual, strict=True)
         if counts]
    )  # fmt: skip
    places = {(each.suite, each.mode, each.dtype): n for n, each in enumerate(groups)}
    arms = [
        ShownArm(
            case=index,
            arm=records[0].study,
            status=outcome.status,
            line=None if outcome.status is Status.PASS else outcome.line,
            group=places[group_of(records[0])] if counts else None,
        )
        for index, (records, outcome, counts) in enumerate(zip(cases, outcomes, usual, strict=True))
    ]
    return Part(
        arms=tuple(arms),
        groups=tuple(groups),
        looks=tuple(failures(arms)),
        tables=tuple(_tables_of(reporter, cases, orders)),
    )


def failures(arms: Iterable[ShownArm]) -> list[Look]:
    """Return the arms that need a look since they did not pass."""
    fine = {Status.PASS, Status.SKIP}
    return [
        Look(kind=each.status, text=each.line or "", case=each.case, arm=each.arm)
        for each in arms
        if each.status not in fine
    ]


def _tables_of(
    reporter: Reporter, cases: Sequence[Sequence[Record]], orders: Mapping[str, str]
) -> list[ShownTable]:
    """Return a study's tables, those of all files of one kind as one; none without a row."""
    by_file: dict[str, list[Rows]] = {}
    for records in cases:
        for each in reporter.rows(records, compatible=False):
            by_file.setdefault(each.file, []).append(each)
    closing: dict[str, list[Rows]] = {}
    for each in reporter.closing_rows(cases) if cases else ():
        closing.setdefault(each.file, []).append(each)
    files = {**by_file, **closing}
    found = []
    for table in reporter.tables():
        own = [
            row
            for file, parts in files.items()
            if file.endswith(f"_{table.kind}.csv")
            for part in parts
            for row in part.rows
        ]
        if own:
            found.append(_shown(table, own, orders.get(table.kind, "")))
    return found


def table_of(table: Table[T], subjects: Iterable[T]) -> ShownTable:
    """Return a table with a row for each subject."""
    return _shown(
        table, [tuple(column.value(each) for column in table.columns) for each in subjects]
    )


def group_of(record: Record) -> tuple[str, str, str]:
    """Return the suite, or all whose sizes vary, the mode and the dtype that a case counts in."""
    case = record.case
    return (DYNAMIC if case.dynamic else case.suite), case.mode, case.dtype


def rounded(value: float | None) -> float | None:
    """Return a figure with as many digits as anybody reads."""
    return None if value is None else float(f"{value:.6g}")


def _shown(table: Table[T], rows: Sequence[tuple[object, ...]], order: str = "") -> ShownTable:
    """Return a table without the columns in which nothing stands."""
    kept = [
        index
        for index in range(len(table.columns))
        if any(row[index] is not None for row in rows)
    ]  # fmt: skip
    columns = [table.columns[index] for index in kept]
    return ShownTable(
        title=table.kind.replace("_", " "),
        doc=table.doc,
        columns=tuple(
            ShownColumn(name=each.name, doc=each.doc, unit=each.unit) for each in columns
        ),
        rows=tuple(tuple(_cell(row[index]) for index in kept) for row in rows),
        order=order,
    )


def _cell(value: object) -> Cell:
    if value is None or isinstance(value, int):
        return value
    return rounded(value) if isinstance(value, float) else str(value)


def _usual(cases: Sequence[Sequence[Record]]) -> list[bool]:
    """Return which cases count: those without overrides, or all where none is without."""
    counted = {each.case.id for each in overrides_report.counted([each[0] for each in cases])}
    return [records[0].case.id in counted for records in cases]


def _groups(cases: Iterable[tuple[Sequence[Record], Outcome]]) -> list[Group]:
    passed: Counter[tuple[str, str, str, str]] = Counter()
    counted: Counter[tuple[str, str, str, str]] = Counter()
    for records, outcome in cases:
        key = (*group_of(records[0]), records[0].study)
        passed[key] += outcome.status is Status.PASS
        counted[key] += is_counted(outcome)
    return [
        Group(
            suite=suite, mode=mode, dtype=dtype, arm=arm, passed=passed[suite, mode, dtype, arm],
            counted=number, pass_rate=pass_rate(passed[suite, mode, dtype, arm], number),
        )
        for (suite, mode, dtype, arm), number in sorted(counted.items())
    ]  # fmt: skip


def pass_rate(passed: int, counted: int) -> str | None:
    """Return the share of models that passed as the terminal has it; `None` of none."""
    return texts.pass_rate(passed, counted) if counted else None
