"""What the columns of a Parquet file of runs hold, and what of such a file is believed. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import BAD_JSON, utc_time
from dynamometer.results.values.cases import IDENTITY
from dynamometer.results.values.history import DEVICE_NAME, STATUS, IndexedRun, Row
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dynamometer.results.store.index.whole_runs import Part

TEXT, INTEGER, NUMBER, TIME = "string", "int64", "double", "timestamp[us, tz=UTC]"
"""Types, as pyarrow writes them."""


class Column(NamedTuple):
    """A column of the file.

    Attributes:
        name: of it.
        kind: one of the types above.
        may_lack: whether a row may have nothing there.
        is_read: whether it is read back; what is not says again what others do.
    """

    name: str
    kind: str = TEXT
    may_lack: bool = False
    is_read: bool = True


_SAID_AGAIN = {
    "commit": "commit", "dynamometer_commit": "commit of dynamometer", "machine": "machine",
    "cpu": "cpu", "threads": "threads", "device_name": DEVICE_NAME, "torch": "torch",
    "python": "python",
}  # fmt: skip
"""Columns for what is asked for often, and what `run_conditions` or `run_setting` call it."""

COLUMNS = (
    Column("run_id"),
    Column("created_at"),
    Column("time", TIME, may_lack=True, is_read=False),
    Column("study"),
    *(Column(each, may_lack=True, is_read=False) for each in _SAID_AGAIN),
    *(Column(each, may_lack=each != "model") for each in IDENTITY),
    Column("arm"),
    Column("metric"),
    Column("condition", may_lack=True),
    Column("status"),
    Column("value", NUMBER, may_lack=True),
    Column("low", NUMBER, may_lack=True),
    Column("high", NUMBER, may_lack=True),
    Column("error", NUMBER, may_lack=True),
    Column("n", INTEGER),
    Column("doubt", may_lack=True),
    Column("records_bytes", INTEGER),
    Column("rows_of_run", INTEGER),
    Column("run_conditions"),
    Column("run_setting"),
)
READ = tuple(each for each in COLUMNS if each.is_read)
_OF_RUN = (
    "run_id", "created_at", "study", "records_bytes", "rows_of_run", "run_conditions", "run_setting"
)  # fmt: skip
_OF_ROW = ("arm", "metric", "condition", "status", "value", "low", "high", "error", "n", "doubt")


def told(part: Part) -> Iterator[list[object]]:
    """Return the rows of a run, each with a value for every column.

    Raises:
        StoreError: a case is known by something that has no column.
    """
    run = part.run
    known = {**run.conditions, **run.setting}
    of_run: dict[str, object] = {
        "run_id": run.run_id,
        "created_at": run.created_at,
        "time": utc_time(run.created_at),
        "study": run.study,
        **{name: _known(known.get(source)) for name, source in _SAID_AGAIN.items()},
        "records_bytes": part.size,
        "rows_of_run": part.all_rows,
        "run_conditions": msgspec.json.encode(run.conditions, order="sorted").decode(),
        "run_setting": msgspec.json.encode(run.setting, order="sorted").decode(),
    }
    for row in part.rows:
        if odd := row.identity.keys() - set(IDENTITY):
            msg = f"the run {run.run_id} has no column for {', '.join(sorted(odd))}"
            raise StoreError(msg)
        values = {**of_run, **row.identity, **{name: getattr(row, name) for name in _OF_ROW}}
        yield [values.get(each.name) for each in COLUMNS]


def _known(text: str | None) -> str | None:
    return None if text == "not known" else text


class RunOfRow(NamedTuple):
    """What a row says of its run: the run, bytes of its records, and how many rows it has."""

    run: IndexedRun
    size: int
    all_rows: int


class RowReader:
    """Makes rows of the index of rows of a file, which anybody may have written."""

    def __init__(self, source: str, metrics: Collection[str]) -> None:
        """Take the name of the file, for messages, and the metrics that are known."""
        self._source = source
        self._metrics = metrics
        self._said: tuple[object, ...] = ()
        self._run: RunOfRow | None = None
        self._number = 0

    def row(self, values: Sequence[object]) -> tuple[RunOfRow, Row]:
        """Return the next row, with its run; rows of one run that follow each other share it.

        Args:
            values: one for each column that is read, of its type; or `None`.

        Raises:
            StoreError: it is none that the index can hold; says which and why.
        """
        self._number += 1
        given = dict(zip((each.name for each in READ), values, strict=True))
        try:
            _check_is_whole(given)
            row = msgspec.convert(
                {
                    "identity": {each: given[each] for each in IDENTITY if given[each] is not None},
                    **{name: given[name] for name in _OF_ROW},
                },
                Row,
            )
            run = self._run_of(given)
            _check(row, self._metrics)
        except (ValueError, *BAD_JSON) as error:
            msg = f"{self._source} is damaged, or no file of runs: row {self._number}: {error}"
            raise StoreError(msg) from error
        return run, row

    def _run_of(self, given: Mapping[str, object]) -> RunOfRow:
        """Return what a row says of its run.

        Raises:
            ValueError: it is none.
        """
        said = tuple(given[each] for each in _OF_RUN)
        if self._run is None or said != self._said:
            run_id, created_at, study, size, all_rows, *texts = said
            conditions, setting = (
                msgspec.json.decode(str(each), type=dict[str, str]) for each in texts
            )
            msgspec.json.encode((conditions, setting))  # what is no text can't be
            fields = {
                "run_id": run_id, "created_at": created_at, "study": study,
                "conditions": conditions, "setting": setting,
            }  # fmt: skip
            run = msgspec.convert(fields, IndexedRun)
            created = utc_time(run.created_at)
            if not run.run_id or created is None:
                msg = f"the run {run.run_id!r} was made at {run.created_at!r}, which can't be"
                raise ValueError(msg)
            if not run.created_at.endswith("+00:00"):  # runs are sorted by it
                run = msgspec.structs.replace(run, created_at=created.isoformat())
            amounts = msgspec.convert((size, all_rows), tuple[int, int])
            if min(amounts) < 0:
                msg = "a count is negative"
                raise ValueError(msg)
            self._said, self._run = said, RunOfRow(run, *amounts)
        return self._run


def _check_is_whole(given: Mapping[str, object]) -> None:
    """Refuse a row that lacks something.

    Raises:
        ValueError: it does; says what.
    """
    lacking = [each.name for each in READ if given[each.name] is None and not each.may_lack]
    if lacking:
        msg = f"it has no {', '.join(lacking)}"
        raise ValueError(msg)


def _check(row: Row, metrics: Collection[str]) -> None:
    """Refuse what no run comes to, and what no history can be made of.

    Raises:
        ValueError: it is of the kind; says why.
    """
    interval = row.low, row.value, row.high, row.error
    if row.metric not in metrics:
        msg = f"nothing is known of the metric {row.metric!r}"
    elif row.status not in _STATUSES:
        msg = f"nothing ends {row.status!r}"
    elif row.n < 0:
        msg = "a count is negative"
    elif row.metric == STATUS and interval != (None,) * 4:
        msg = "a status has no value"
    elif row.metric != STATUS and not _is_interval(*interval):
        msg = "value, low, high and error are no positive value with its interval"
    else:
        return
    raise ValueError(msg)


_STATUSES = frozenset(Status)


def _is_interval(
    low: float | None, value: float | None, high: float | None, error: float | None
) -> bool:
    if low is None or value is None or high is None or error is None:
        return False
    return 0 <= low <= value <= high < math.inf and value > 0 and 0 <= error < math.inf
