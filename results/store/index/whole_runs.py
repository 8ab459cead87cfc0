"""Whole runs out of an index, and whole runs into one that have no directory there."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.index.index import Place, put_rows, put_run
from dynamometer.results.values.history import IndexedRun, Row

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from sqlite3 import Connection

    from dynamometer.results.store.index.index_file import IndexFile


class Part(NamedTuple):
    """Rows of one run, not always all of them.

    Attributes:
        run: which.
        size: bytes of the records that all of its rows were made of.
        rows: some of it.
    """

    run: IndexedRun
    size: int
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


def parts(file: IndexFile) -> Iterator[Part]:
    """Return each run that has rows, by time, with all its rows in an order of their own.

    All are as they were when the first was taken; one run at a time is in memory.

    Raises:
        StoreError: the index can't be read.
    """
    with file.snapshot():
        runs = file.read("SELECT id FROM runs ORDER BY created_at, run_id")
        for (number,) in runs:
            [(text, size)] = file.read("SELECT value, size FROM runs WHERE id = ?", (number,))
            rows = [_row(*each) for each in file.read(_ROWS_OF_RUN, (number,))]
            if rows:
                yield Part(msgspec.json.decode(text, type=IndexedRun), size, rows)


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


class _Union:
    """Runs that are being added, which are in the index already but for some of their rows."""

    def __init__(self, connection: Connection, source: str) -> None:
        self._connection = connection
        self._source = source
        self._begun: dict[str, tuple[bytes, int | None]] = {}
        """By its id what is said of a run, and its number; `None` where that in the index stays."""
        self._rows: dict[int, int] = {}

    def add(self, part: Part) -> None:
        """Add a part of a run.

        Raises:
            StoreError: another part says other things of the run.
        """
        run_id = part.run.run_id
        said = msgspec.json.encode((part.run, part.size), order="sorted")
        if run_id not in self._begun:
            self._begun[run_id] = said, self._begin(part)
        before, number = self._begun[run_id]
        if said != before:
            msg = f"{self._source} is damaged: rows of the run {run_id} contradict each other"
            raise StoreError(msg)
        if number is not None:
            put_rows(self._connection, number, part.run, part.rows)
            self._rows[number] += len(part.rows)

    def _begin(self, part: Part) -> int | None:
        run_id = part.run.run_id
        there = self._connection.execute(
            "SELECT size FROM runs WHERE run_id = ?", (run_id,)
        ).fetchone()
        if there and there[0] >= part.size:
            self._connection.execute("UPDATE runs SET is_kept = 1 WHERE run_id = ?", (run_id,))
            return None
        number = put_run(self._connection, part.run, Place("", part.size, is_kept=True))
        self._rows[number] = 0
        return number

    def whole(self) -> Added:
        """Return what came of it.

        Raises:
            StoreError: a row was there twice.
        """
        for run_id, (_, number) in self._begun.items():
            if number is None:
                continue
            [[held]] = self._connection.execute(
                "SELECT count(*) FROM points WHERE run = ?", (number,)
            )
            if held != self._rows[number]:
                twice = self._rows[number] - held
                msg = (
                    f"{self._source} is damaged: {twice} row(s) of the run {run_id} are there twice"
                )
                raise StoreError(msg)
        return Added(len(self._rows), sum(self._rows.values()), len(self._begun) - len(self._rows))
