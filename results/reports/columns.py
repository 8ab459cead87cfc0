"""Tables of CSV files: each column is declared once, with its value and its documentation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dynamometer.results.store.bounds import name_in_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.metrics import Better, Metric
    from dynamometer.results.values.records import Outcome

T = TypeVar("T")
Part = TypeVar("Part")


@dataclass(frozen=True)
class Rows:
    """Rows of one CSV file.

    Attributes:
        file: its name.
        columns: its columns, in order.
        rows: values in that order; `None` for what is not known.

    Raises:
        ValueError: a row has more values than there are columns, or fewer.
    """

    file: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                msg = f"{self.file}: {len(row)} values for {len(self.columns)} columns"
                raise ValueError(msg)

    def by_column(self) -> list[dict[str, object]]:
        """Return each row as its values by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column of a table.

    Attributes:
        name: its heading.
        doc: what it holds, in a sentence.
        value: what it holds of a row; `None` for what is not known.
        unit: of its values; empty for counts and text.
        better: which values are the better ones; `None` where neither is.
        is_theirs: whether PyTorch's harness writes it too, under this name.
    """

    name: str
    doc: str
    value: Callable[[T], object]
    unit: str = ""
    better: Better | None = None
    is_theirs: bool = False


@dataclass(frozen=True)
class Table(Generic[T]):
    """What stands in one kind of CSV file.

    Attributes:
        kind: how its file's name ends.
        doc: what a row is, in a sentence.
        columns: in order.
    """

    kind: str
    doc: str
    columns: tuple[Column[T], ...]

    def theirs(self) -> Table[T]:
        """Return the table with the columns of PyTorch's harness alone."""
        return replace(self, columns=tuple(each for each in self.columns if each.is_theirs))

    def rows(self, case: Case, arm: str, found: Iterable[T]) -> Rows:
        """Return rows in the file of an arm.

        Args:
            case: one of those that the file is of.
            arm: name of the arm, or of what else the file is of.
            found: what the rows are made of, in order.
        """
        return Rows(
            file=name_in_file(arm, case.arms) + file_ending(case, self.kind),
            columns=tuple(each.name for each in self.columns),
            rows=tuple(tuple(column.value(each) for column in self.columns) for each in found),
        )


def are_theirs(rows: Rows, tables: Iterable[Table[Any]]) -> bool:
    """Return whether PyTorch's harness has all the columns of some rows.

    Args:
        rows: of one of the tables.
        tables: all that the rows' study has.
    """
    theirs = {column.name for table in tables for column in table.columns if column.is_theirs}
    return theirs.issuperset(rows.columns)


def file_ending(case: Case, kind: str) -> str:
    """Return how the name of a file ends, which begins with that of an arm.

    `<arm>_<suite>_<dtype>_<mode>_<device>_<kind>.csv` is how PyTorch's dashboards parse it. Its
    scripts have `dynamic` behind the arm where inputs are of several sizes.
    """
    shapes = "_dynamic" if case.dynamic else ""
    return f"{shapes}_{case.suite}_{case.dtype}_{case.mode}_{case.device}_{kind}.csv"


def column_of(metric: Metric, value: Callable[[T], float | None]) -> Column[T]:
    """Return the column of a metric.

    Args:
        metric: which has a column.
        value: of a row, in the unit of the metric's samples.

    Raises:
        ValueError: the metric has no column.
    """
    if metric.column is None:
        msg = f"the metric {metric.name} has no column"
        raise ValueError(msg)
    return Column(
        metric.column,
        metric.doc,
        lambda found: scaled(value(found), metric.factor),
        metric.column_unit or metric.unit,
        metric.better,
    )


def of_part(
    part: Callable[[T], Part | None],
) -> Callable[[Callable[[Part], object]], Callable[[T], object]]:
    """Return what makes a column's value of a part of a row's subject; `None` where that lacks it.

    Args:
        part: of a row's subject.
    """

    def made_of(value: Callable[[Part], object]) -> Callable[[T], object]:
        def held(subject: T) -> object:
            found = part(subject)
            return None if found is None else value(found)

        return held

    return made_of


def theirs(*columns: Column[T]) -> tuple[Column[T], ...]:
    """Mark columns as those that PyTorch's harness writes too."""
    return tuple(replace(each, is_theirs=True) for each in columns)


def identity(case_of: Callable[[T], Case]) -> tuple[Column[T], ...]:
    """Return the columns that say which case a row is of, as PyTorch's harness has them."""
    return theirs(
        Column("dev", "Device.", lambda found: case_of(found).device),
        Column(
            "name",
            "Model; marked where Dynamo is told how to treat parts of it.",
            lambda found: case_of(found).label,
        ),
        Column(
            "batch_size",
            "Samples in a batch; of several sizes the largest.",
            lambda found: case_of(found).batch_size,
        ),
    )


def ending(
    outcome_of: Callable[[T], Outcome], reason: Callable[[T], str | None] | None = None
) -> tuple[Column[T], ...]:
    """Return the columns that say how it ended: see docs/statuses.md."""
    return (
        Column("status", "How it ended (statuses.md).", lambda found: outcome_of(found).status),
        Column("stage", "Where, unless it passed.", lambda found: outcome_of(found).stage),
        Column(
            "reason", "Why, or why an arm that passed was not timed.",
            reason or (lambda found: outcome_of(found).reason),
        ),
    )  # fmt: skip


def scaled(value: float | None, factor: float) -> float | None:
    """Return a value in another unit."""
    return None if value is None else value * factor
