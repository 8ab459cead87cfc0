"""Tables of expected results as PyTorch has them, in `benchmarks/dynamo/ci_expected_accuracy`.

Theirs are of one backend, suite and mode each, and know a model by its name alone: `name,accuracy`,
`graph_breaks` and, in newer ones, other counts. Blank lines between rows keep merges from
conflicting.
Source: `check_accuracy.py` and `check_graph_breaks.py` there, which hold a change for the better
against a run as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.expected import Change, Kind
from dynamometer.results.store.reading import csv_table, unquoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_NEEDED = ("name", "accuracy")
"""The columns that every one begins with."""
_MORE_IS_BETTER = {
    "calls_captured": True,
    "fallbacks_to_eager": False,
    "graph_breaks": False,
    "unique_graphs": True,
}
"""Counts that their tables may hold beside accuracy."""

TheirTable = dict[str, dict[str, str]]
"""The cells of each row, by the model's name."""


def is_theirs(path: Path) -> bool:
    """Return whether a file begins as one of their tables does."""
    try:
        columns, _ = csv_table(path)
    except StoreError:
        return False
    return columns[: len(_NEEDED)] == _NEEDED


def read_table(path: Path) -> TheirTable:
    """Read one of their tables.

    Raises:
        StoreError: it can't be read, or a row has no name or accuracy, or one that stands there
            already; says in which line.
    """
    _, rows = csv_table(path)
    table: TheirTable = {}
    for line, row in rows:
        name, cells = _entry(f"{path}, line {line}", row)
        if name in table:
            msg = f"{path}, line {line}: {name} is there already"
            raise StoreError(msg)
        table[name] = cells
    return table


def compare(table: TheirTable, arm: str, rows: Iterable[Mapping[str, object]]) -> list[Change]:
    """List what a run changed, sorted; models that the run left out don't count.

    Args:
        table: of what is expected.
        arm: of the run.
        rows: of the run's file of accuracy, by the columns of PyTorch's harness.
    """
    changes = [change for row in rows for change in _changes(arm, table, row)]
    return sorted(changes, key=lambda change: change.key)


def _entry(place: str, row: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    cells = {key: text.strip() for key, text in row.items() if key and text.strip()}
    if not cells.keys() >= set(_NEEDED):
        msg = f"{place}: a row has no name or no accuracy"
        raise StoreError(msg)
    name = unquoted(cells["name"])
    for count in _MORE_IS_BETTER.keys() & cells.keys():
        try:
            float(cells[count])
        except ValueError as error:
            msg = f"{place}: {count} of {name} is {cells[count]!r}, which is no number"
            raise StoreError(msg) from error
    return name, cells


def _changes(arm: str, table: TheirTable, row: Mapping[str, object]) -> list[Change]:
    name, accuracy = str(row["name"]), str(row["accuracy"])
    key, expected = (name, arm), table.get(name)
    if expected is None:
        return [Change(key, Kind.NEW, f"{accuracy}, which the table doesn't have")]
    before = expected["accuracy"]
    if accuracy != before:
        is_better = accuracy == "pass"  # to them whatever else differs is a regression
        kind = Kind.IMPROVEMENT if is_better else Kind.REGRESSION
        return [Change(key, kind, f"{before} became {accuracy}")]
    return _count_changes(key, expected, row)


def _count_changes(
    key: tuple[str, str], expected: Mapping[str, str], row: Mapping[str, object]
) -> list[Change]:
    """Compare the counts that the table has; of a model without graphs they say nothing."""
    found = []
    for count, more_is_better in _MORE_IS_BETTER.items() if row.get("unique_graphs") else ():
        now, before = row.get(count), expected.get(count)
        if not isinstance(now, int) or before is None or float(before) == now:
            continue
        is_better = (now > float(before)) == more_is_better
        kind = Kind.IMPROVEMENT if is_better else Kind.REGRESSION
        found.append(Change(key, kind, f"{before} {count} became {now}"))
    return found
