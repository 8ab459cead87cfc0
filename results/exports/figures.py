"""What was measured of a run, one figure at a time, whatever its study: from the rows of tables.

A figure is a value of a column that says which values are better, or that PyTorch's harness has. A
value that is not known is no figure. A study's first table holds them; others, such as that of
graph breaks, are lists of what an arm has several of.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynamometer.results.reports.columns import file_ending
from dynamometer.results.store.bounds import name_in_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dynamometer.results.exports.export import StoredRun
    from dynamometer.results.reports.columns import Column, Table
    from dynamometer.results.values.cases import Case

_IDENTITY = ("dev", "name", "batch_size")


@dataclass(frozen=True)
class Figure:
    """One value of one arm.

    Attributes:
        case: of which it is.
        arm: its name, or what else its file is of.
        size: what the size of its inputs is called, where a study has a row for each of several.
        column: where it stands in a table.
        value: in the unit of the column.
        low: the lower end of its interval, or the least of replicates; `None` where there is none.
        high: the upper end, or the most.
        doubt: why it can't be counted on, in a word; `None` if it can.
    """

    case: Case
    arm: str
    size: str | None
    column: Column[Any]
    value: float
    low: float | None = None
    high: float | None = None
    doubt: str | None = None

    @property
    def name(self) -> str:
        """The name of its column, without a unit at the end."""
        end = self.column.unit.replace("1/", "per_")
        return self.column.name.removesuffix(f"_{end}") if end else self.column.name

    @property
    def id(self) -> str:
        """Text that tells its case, its arm and its row from all others of a run."""
        return "/".join((self.case.id_without_arms, self.arm, *([self.size] if self.size else ())))


def certain_figures(run: StoredRun) -> list[Figure]:
    """Return all figures of a run that can be counted on, by file, row and column."""
    return [each for each in figures(run) if each.doubt is None]


def figures(run: StoredRun) -> list[Figure]:
    """Return all figures of a run, by file, row and column."""
    tables = run.reporter.tables()
    return [
        figure
        for file, (arm, found) in (_files(run, tables[0].kind) if tables else {}).items()
        for case, row in _rows(file, found)
        for figure in _of_row(case, arm, tables[0], row)
    ]


_Key = tuple[str, object, object, object]
_STEPS = frozenset(
    (
        "abs_latency",
        "eager_latency",
        "over_static",
        "speedup",
        "static_latency",
        "system_time_share",
    )
)
"""Columns of what steps take: doubtful where the machine was busy or arms disturbed each other."""
_TIME = frozenset({"s", "ms", "1/s"})
"""Units of what is doubtful where the machine was busy."""
_ENDS = {
    "compilation_latency": "compile",
    "breakeven_calls": "breakeven",
    "breakeven_warm_calls": "breakeven_warm",
}
"""How columns of a figure's ends begin, where not as its own."""

_Found = list[tuple["Case", dict[str, object]]]


def _files(run: StoredRun, kind: str) -> dict[str, tuple[str, _Found]]:
    """Return the arm and the rows of each file of a kind.

    Rows are those that each case had, or those that are known once all have ended.
    """
    found: dict[str, tuple[str, _Found]] = {}
    case_of: dict[_Key, Case] = {}
    for records in run.cases:
        case = records[0].case
        end = file_ending(case, kind)
        for rows in run.reporter.rows(records, compatible=False):
            if rows.file.endswith(end):
                known = found.setdefault(rows.file, (rows.file.removesuffix(end), []))[1]
                known += [(case, row) for row in rows.by_column()]
                case_of |= {_key(rows.file, row): case for row in rows.by_column()}
    for file, rows_ in _closing(run).items():
        if file in found:
            arm, _ = found[file]
            found[file] = (arm, [(case_of[_key(file, row)], row) for row in rows_])
    return found


def _closing(run: StoredRun) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for rows in run.reporter.closing_rows(run.cases) if run.records else ():
        found.setdefault(rows.file, []).extend(rows.by_column())
    return found


def _key(file: str, row: Mapping[str, object]) -> _Key:
    return file, row.get("name"), row.get("batch_size"), row.get("size")


def _rows(file: str, found: _Found) -> _Found:
    """Return the rows of a file, unless some can't be told from each other."""
    seen = Counter((case.id, *_key(file, row)) for case, row in found)
    return found if seen and max(seen.values()) == 1 else []


def _of_row(case: Case, arm: str, table: Table[Any], row: Mapping[str, object]) -> Iterator[Figure]:
    size = row.get("size")
    for column in table.columns:
        value = _number(row.get(column.name))
        counts = column.better is not None or (column.is_theirs and column.name not in _IDENTITY)
        if value is None or not counts:
            continue
        ends = _ENDS.get(column.name, column.name)
        yield Figure(
            case=case,
            arm=_arm_of(case, arm),
            size=None if size is None else str(size),
            column=column,
            value=value,
            low=_number(row.get(f"{ends}_low")),
            high=_number(row.get(f"{ends}_high")),
            doubt=_doubt(column, row),
        )


def _doubt(column: Column[Any], row: Mapping[str, object]) -> str | None:
    """Return the column that says why a value can't be counted on; `None` if it can."""
    is_of_steps = column.name in _STEPS
    if row.get("disturbed") is True and (is_of_steps or column.unit in _TIME):
        return "disturbed"
    return "interference" if row.get("interference") is True and is_of_steps else None


def _arm_of(case: Case, in_file: str) -> str:
    """Return the arm that a file is of, whose name is not quite that of the arm.

    A file of a case without other arms may be named after anything.
    """
    if len(case.arms) == 1:
        return case.arms[0]
    names = {name_in_file(arm, case.arms): arm for arm in case.arms}
    return names.get(in_file, in_file)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value
