"""Expected results: a table of what each case came to, and what a run changed of it.

The table is a CSV file to keep under version control: a row for each arm of each case, sorted,
without timings, so a case that was disturbed is as good as another here. Rows of models that are no
more stay until they are deleted. Models of one's own are known by their names alone, so files that
share a name need a table each.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dynamometer.results.store.atomic_file import write_text
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import csv_table
from dynamometer.results.values.cases import Value
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from dynamometer.results.statistics.summary import ArmSummary, CaseSummary

COLUMNS = ("case", "arm", "status", "captured_ops", "graph_breaks")


class Expectation(Value, frozen=True, kw_only=True):
    """What one arm of a case is expected to come to; counts are `None` where there are none."""

    status: Status
    captured_ops: int | None = None
    graph_breaks: int | None = None


class Kind(StrEnum):
    """What a difference means."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGE = "change"
    NEW = "new"
    NOTE = "note"


@dataclass(frozen=True)
class Change:
    """One arm of a case that is not as expected.

    Attributes:
        key: the case without its arms, and the arm.
        kind: what it means; whatever is not a note is unexpected.
        text: what it was and is.
    """

    key: tuple[str, str]
    kind: Kind
    text: str

    @property
    def is_unexpected(self) -> bool:
        """Whether the table has to be updated, or something mended."""
        return self.kind is not Kind.NOTE


Expectations = dict[tuple[str, str], Expectation]
"""By case, without its arms, and arm."""


def observed(cases: Iterable[CaseSummary]) -> Expectations:
    """Return what the cases of a run came to."""
    return {
        (case.case.id_without_arms, arm.name): _expectation(arm)
        for case in cases
        for arm in case.arms
    }


def compare(expected: Mapping[tuple[str, str], Expectation], found: Expectations) -> list[Change]:
    """List what a run changed, sorted; expected cases that the run left out don't count.

    Fewer captured operators are a regression, as is a status that was a pass. More graph breaks
    with as many operators captured are a note: a graph that falls into two is no loss by itself.
    """
    return [
        change
        for key, now in sorted(found.items())
        if (change := _change(key, expected.get(key), now)) is not None
    ]


def updated(known: Expectations, found: Expectations) -> Expectations:
    """Put a run's results into a table, but for faults of the harness, which nobody expects."""
    results = {key: each for key, each in found.items() if each.status is not Status.INFRA}
    return {**known, **results}


def read_table(path: Path) -> Expectations:
    """Read a table.

    Raises:
        StoreError: there is none, or it is damaged; says in which line.
    """
    if not path.exists():
        msg = f"there is no table {path}; --update-expected makes it"
        raise StoreError(msg)
    columns, rows = csv_table(path)
    if columns != COLUMNS:
        msg = f"{path} is no table of expected results: its columns must be {COLUMNS}"
        raise StoreError(msg)
    table: Expectations = {}
    for line, row in rows:
        key, expectation = _entry(path, line, row)
        if key in table:
            msg = f"{path}, line {line}: {key[1]} of {key[0]} is there already; delete one of them"
            raise StoreError(msg)
        table[key] = expectation
    return table


def write_table(path: Path, table: Expectations) -> None:
    """Write a table, sorted.

    Raises:
        StoreError: it can't be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key, each in sorted(table.items()):
        counts = (each.captured_ops, each.graph_breaks)
        writer.writerow([*key, each.status, *("" if count is None else count for count in counts)])
    try:
        write_text(path, text.getvalue())
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror or error}"
        raise StoreError(msg) from error


def _expectation(arm: ArmSummary) -> Expectation:
    capture = arm.capture
    return Expectation(
        status=arm.outcome.status,
        captured_ops=capture.ops if capture else None,
        graph_breaks=sum(capture.breaks.values()) if capture else None,
    )


def _change(key: tuple[str, str], before: Expectation | None, now: Expectation) -> Change | None:
    if before is None:
        return Change(key, Kind.NEW, f"{now.status}, which the table doesn't have")
    if before.status is not now.status:
        kinds = {before.status: Kind.REGRESSION, now.status: Kind.IMPROVEMENT}
        kind = kinds.get(Status.PASS, Kind.CHANGE)
        return Change(key, kind, f"{before.status} became {now.status}")
    ops = f"{before.captured_ops} captured ops became {now.captured_ops}"
    breaks = f"{before.graph_breaks} graph breaks became {now.graph_breaks}"
    if before.captured_ops != now.captured_ops:
        lost = (now.captured_ops or 0) < (before.captured_ops or 0)
        return Change(key, Kind.REGRESSION if lost else Kind.IMPROVEMENT, ops)
    if before.graph_breaks != now.graph_breaks:
        return Change(key, Kind.NOTE, f"{breaks}, with as many ops captured")
    return None


def _entry(path: Path, line: int, row: Mapping[str, str]) -> tuple[tuple[str, str], Expectation]:
    try:
        if row["status"] not in set(Status):
            msg = f"{row['status']!r} is no status; there are {', '.join(Status)}"
            raise ValueError(msg)  # noqa: TRY301  caught below with the place
        counts = [int(row[name]) if row[name] else None for name in COLUMNS[3:]]
        expectation = Expectation(
            status=Status(row["status"]), captured_ops=counts[0], graph_breaks=counts[1]
        )
        return (row["case"], row["arm"]), expectation
    except KeyError as error:
        msg = f"{path}, line {line} has nothing in the column {error}"
        raise StoreError(msg) from error
    except ValueError as error:
        msg = f"{path}, line {line}: {error}"
        raise StoreError(msg) from error
