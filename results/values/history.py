"""What the index holds of runs, and what became of each series over them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from dynamometer.results.values.cases import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

HISTORY_SCHEMA = 1

INDEX_FILE = "index.sqlite"
"""Of an index, in the folder of the runs it holds."""

ROWS = 5
"""Raise it with whatever makes other rows of the same records: an index then reads all again."""

STATUS = "status"
"""What the series is called that says how an arm of a case ended in each run."""


DEVICE_NAME = "device name"
"""What the condition is called that workers alone tell: where all crash it isn't known."""


class IndexedRun(Value, frozen=True, kw_only=True):
    """A run, as the index has it."""

    run_id: str
    created_at: str
    """UTC, ISO 8601."""
    study: str
    conditions: dict[str, str]
    """What may differ from run to run within a series: versions, variables, how many replicates."""
    setting: dict[str, str]
    """What runs of one series have in common: hardware, threads, how it is measured."""


class Row(Value, frozen=True, kw_only=True):
    """One metric of one arm of one case in one run."""

    identity: dict[str, str]
    """Of the case: suite, model, mode, ..."""
    arm: str
    metric: str
    condition: str | None = None
    """Under which it was measured, such as what was in the compiler's caches."""
    status: str
    value: float | None = None
    """`None` of the status alone."""
    low: float | None = None
    high: float | None = None
    error: float | None = None
    """Standard error of the value's logarithm."""
    n: int = 0
    """Replicates."""
    doubt: str | None = None
    """Why nothing is concluded from it; `None` if it may be."""


class Point(Value, frozen=True, gc=False):  # there are many, and none holds a container
    """One run in a series; `run` is the number that the index gave it."""

    run: int
    status: str
    value: float | None
    low: float | None
    high: float | None
    error: float | None
    n: int
    doubt: str | None


class Columns(Value, frozen=True, kw_only=True):
    """What changes of a series are found by: a value for each run, in the order of time."""

    runs: tuple[int, ...]
    """The numbers that the index gave them."""
    statuses: tuple[str, ...] = ()
    """Of the status alone: its values."""
    values: tuple[float | None, ...] = ()
    """Of any other metric; `None` where nothing is concluded from it."""
    errors: tuple[float | None, ...] = ()
    """Of the values' logarithms."""

    @classmethod
    def of(cls, metric: str, points: Sequence[Point]) -> Columns:
        """Return those of a metric's points."""
        runs = tuple(each.run for each in points)
        if metric == STATUS:
            return cls(runs=runs, statuses=tuple(each.status for each in points))
        counted = [None if each.doubt or each.error is None else each for each in points]
        return cls(
            runs=runs,
            values=tuple(None if each is None else each.value for each in counted),
            errors=tuple(None if each is None else each.error for each in counted),
        )


class StoredSeries(Value, frozen=True, kw_only=True):
    """One metric of one arm of one case, over all runs that measured it in the same way."""

    study: str
    identity: dict[str, str]
    arm: str
    metric: str
    condition: str | None
    setting: dict[str, str]
    columns: Columns
    last: Point
    points: tuple[Point, ...]
    """In the order of their runs' time: the last ones, as many as were asked for."""


class Direction(StrEnum):
    """What a change made of a metric."""

    BETTER = "better"
    WORSE = "worse"


class Difference(Value, frozen=True, kw_only=True):
    """Something that was otherwise before a change; `None` on the side that lacks it."""

    name: str
    before: str | None
    after: str | None


class HistoryChange(Value, frozen=True, kw_only=True):
    """A change point of a series."""

    direction: Direction
    last_before: str = ""
    """The last run that is surely before the change."""
    first_after: str = ""
    """The first run that is surely after it."""
    at: str
    """When the run was begun that most likely is the first after it."""
    index: int
    """The number of that run in the series, from 0."""
    before: float | str
    """The level before; of a status that status."""
    after: float | str
    ratio: float | None = None
    """After over before."""
    p_value: float | None = None
    """Over all places of the series at which it might have been; `None` of a status."""
    adjusted_p: float | None = None
    """Likewise, among all series that were looked at."""
    by_eager: bool = False
    """Whether a speedup changed as eager became faster or slower, and not the compiled code."""
    differences: tuple[Difference, ...] = ()
    """What of the environment is other in the first run after than in the last before."""


class HistoryPoint(Value, frozen=True, kw_only=True):
    """One run in a series, as it is shown."""

    run_id: str
    created_at: str
    torch: str | None
    status: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    doubt: str | None = None


class Series(Value, frozen=True, kw_only=True):
    """A series with its changes."""

    study: str
    identity: dict[str, str]
    arm: str
    metric: str
    condition: str | None
    setting: dict[str, str]
    runs: int
    """How many runs it has."""
    last: HistoryPoint
    points: tuple[HistoryPoint, ...]
    """The last of these, as many as were asked for."""
    changes: tuple[HistoryChange, ...]


class History(Value, frozen=True, kw_only=True):
    """Everything that was asked of the index."""

    schema: int = HISTORY_SCHEMA
    runs: int
    """How many the index holds."""
    looked_at: int
    """Series that were asked for; `series` has those with a change where only these are wanted."""
    since: str | None = None
    """Changes before that time are left out."""
    series: tuple[Series, ...]
