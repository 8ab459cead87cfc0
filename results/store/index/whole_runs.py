"""Whole runs out of an index, and whole runs into one that have no directory there."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.index.index import Place, put_rows, put_run
from dynamometer.results.values.history import IndexedRun, Row

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from sqlite3 import Connection

    from dynamometer.results.store.index.index_file import IndexFile


class Part(NamedTuple):
    """Rows of one run, not always all of them.

    Attributes:
        run: which.
        size: bytes of the records that all of its rows were made of.
        all_rows: how many these are; other parts have the rest.
        rows: some of them.
    """

    run: IndexedRun
    size: int
    all_rows: int
    rows: Sequence[Row]


class Added(NamedTuple):
    """What came of adding runs.

    Attributes:
        runs: that were not there, or with fewer records.
        rows: of these.
        stayed: runs that were there with as many records or more.
    """

    runs: int
    rows: int
    stayed: int


def parts(file: IndexFile) -> Generator[Part]:
    """Return each run that has rows, by time, with all its rows in an order of their own.

    All are as they were when the first was taken; one run at a time is in memory. Whoever may not
    take all of them closes what is returned, before the file.

    Raises:
        StoreError: the index can't be read.
    """
    with file.snapshot():
        runs = file.read("SELECT id FROM runs ORDER BY created_at, run_id")
        for (number,) in runs:
            [(text, size)] = file.read("SELECT value, size FROM runs WHERE id = ?", (number,))
            rows = [_row(*each) for each in file.read(_ROWS_OF_RUN, (number,))]
            if rows:
                yield Part(msgspec.json.decode(text, type=IndexedRun), size, len(rows), rows)


_ROWS_OF_RUN = """
SELECT identity, arm, metric, condition, status, value, low, high, error, n, doubt
FROM points JOIN series ON series.id = points.series WHERE points.run = ?
ORDER BY suite, model, identity, arm, metric, condition, study, setting
"""


def _row(identity: str, arm: str, metric: str, condition: str, *point: object) -> Row:
    names = ("status", "value", "low", "high", "error", "n", "doubt")
    fields = {
        "identity": msgspec.json.decode(identity), "arm": arm, "metric": metric,
        "condition": condition or None, **dict(zip(names, point, strict=True)),
    }  # fmt: skip
    return msgspec.convert(fields, Row)


def add(file: IndexFile, source: str, found: Iterable[Part]) -> Added:
    """Add runs as a set union: all of what is found, or nothing if anything is wrong.

    A run that is there with as many records or more stays as it is. All are kept from now on,
    whatever becomes of directories that hold them.

    Args:
        file: of the index.
        source: what the runs are from, for messages.
        found: parts of runs, in any order.

    Raises:
        StoreError: the index can't be written, or what is found contradicts itself.
    """
    with closing(_closable(found)) as each_part, file.writing() as connection:
        union = _Union(connection, source)
        for part in each_part:
            union.add(part)
        return union.whole()


def _closable(found: Iterable[Part]) -> Generator[Part]:
    yield from found


@dataclass
class _Begun:
    """A run of which a part has come.

    Attributes:
        said: what each part says of it.
        all_rows: how many it has.
        number: of the run that is being added; `None` where that in the index stays.
        rows: how many have come.
    """

    said: bytes
    all_rows: int
    number: int | None
    rows: int = 0


class _Union:
    """Runs that are being added, which are in the index already but for some of their rows."""

    def __init__(self, connection: Connection, source: str) -> None:
        self._connection = connection
        self._source = source
        self._runs: dict[str, _Begun] = {}

    def add(self, part: Part) -> None:
        """Add a part of a run.

        Raises:
            StoreError: another part says other things of the run.
        """
        run_id = part.run.run_id
        said = msgspec.json.encode((part.run, part.size, part.all_rows), order="sorted")
        found = self._runs.get(run_id)
        if found is None:
            found = self._runs[run_id] = _Begun(said, part.all_rows, self._begin(part))
        if said != found.said:
            msg = f"{self._source} is damaged: rows of the run {run_id} contradict each other"
            raise StoreError(msg)
        found.rows += len(part.rows)
        if found.number is not None:
            put_rows(self._connection, found.number, part.run, part.rows)

    def _begin(self, part: Part) -> int | None:
        run_id = part.run.run_id
        there = self._connection.execute(
            "SELECT size FROM runs WHERE run_id = ?", (run_id,)
        ).fetchone()
        if there and there[0] >= part.size:
            self._connection.execute("UPDATE runs SET is_kept = 1 WHERE run_id = ?", (run_id,))
            return None
        return put_run(self._connection, part.run, Place("", part.size, is_kept=True))

    def whole(self) -> Added:
        """Return what came of it.

        Raises:
            StoreError: a row is missing, or there twice.
        """
        for run_id, each in self._runs.items():
            if each.rows < each.all_rows:
                msg = (
                    f"{self._source} has {each.rows} of the {each.all_rows} rows of the run"
                    f" {run_id}: only whole runs can be added"
                )
                raise StoreError(msg)
            if each.rows > each.all_rows or not self._is_in(each):
                msg = f"{self._source} is damaged: some row of the run {run_id} is there twice"
                raise StoreError(msg)
        added = [each.rows for each in self._runs.values() if each.number is not None]
        return Added(len(added), sum(added), len(self._runs) - len(added))

    def _is_in(self, run: _Begun) -> bool:
        """Return whether all that came is in the index, where it is added: each row is another."""
        [[held]] = self._connection.execute(
            "SELECT count(*) FROM points WHERE run = ?", (run.number,)
        )
        return run.number is None or held == run.all_rows
