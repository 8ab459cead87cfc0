"""An index over any number of runs, in a file of SQLite. It can always be built again.

Each run is one transaction under SQLite's write-ahead log: a process that is killed leaves the run
in it or not, and whoever reads meanwhile sees it or doesn't. One process writes at a time.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.history import IndexedRun, Point, StoredSeries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from dynamometer.results.values.history import Row

INDEX_FILE = "index.sqlite"
_FORMAT = 1
_APPLICATION = 0x44594E4F
"""By which SQLite's files tell whose they are."""

_WAIT_S = 60.0
"""For another process that is writing."""

_TABLES = """
CREATE TABLE folders (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL,
    created_at TEXT NOT NULL,
    value TEXT NOT NULL
);
CREATE TABLE directories (
    path TEXT PRIMARY KEY,
    stamp TEXT NOT NULL,
    size INTEGER NOT NULL,
    run_id TEXT
) WITHOUT ROWID;
CREATE INDEX directories_by_run ON directories (run_id);
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    suite TEXT NOT NULL,
    model TEXT NOT NULL,
    metric TEXT NOT NULL,
    arm TEXT NOT NULL,
    study TEXT NOT NULL,
    identity TEXT NOT NULL,
    condition TEXT NOT NULL,
    setting TEXT NOT NULL,
    UNIQUE (model, metric, arm, identity, study, condition, setting)
);
CREATE INDEX series_by_suite ON series (suite, metric);
CREATE TABLE points (
    series INTEGER NOT NULL REFERENCES series (id),
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    status TEXT NOT NULL,
    value REAL,
    low REAL,
    high REAL,
    error REAL,
    n INTEGER NOT NULL,
    doubt TEXT,
    PRIMARY KEY (series, run)
) WITHOUT ROWID;
CREATE INDEX points_by_run ON points (run);
"""


class Known(NamedTuple):
    """A run directory, as the index has it.

    Attributes:
        path: of the directory.
        stamp: sizes and times of its files when it was read.
        size: bytes of its records: of two copies of a run the one with more is taken.
        run_id: `None` where it could not be read.
    """

    path: str
    stamp: str
    size: int
    run_id: str | None


class Index:
    """The index of a file; use it in a `with`."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it where there is none.

        Raises:
            StoreError: it can't be opened, or is no index.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"{path} can't be made: {error.strerror}; choose another with --index"
            raise StoreError(msg) from error
        with self._named():
            self._file = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
        try:
            self._set_up()
        except StoreError:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        """Return the index itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._file.close()

    def clear(self) -> None:
        """Forget all but the folders, so that all is read again.

        Raises:
            StoreError: the file can't be written.
        """
        with self._writing():
            for table in ("points", "series", "runs", "directories"):
                self._file.execute(f"DELETE FROM {table}")  # noqa: S608  names from above

    def add_folders(self, folders: Iterable[Path]) -> None:
        """Remember folders of runs.

        Raises:
            StoreError: the file can't be written.
        """
        new = sorted({str(each.absolute()) for each in folders} - set(map(str, self.folders())))
        if new:
            with self._writing():
                self._file.executemany(
                    "INSERT OR IGNORE INTO folders VALUES (?)", [(each,) for each in new]
                )

    def folders(self) -> list[Path]:
        """Return the folders it was told of."""
        return [Path(path) for (path,) in self._read("SELECT path FROM folders ORDER BY path")]

    def directories(self) -> dict[str, Known]:
        """Return the run directories it has seen, by path."""
        found = self._read("SELECT path, stamp, size, run_id FROM directories")
        return {each[0]: Known(*each) for each in found}

    def forget(self, paths: Iterable[str]) -> None:
        """Forget directories that are gone; a run of which there is another copy is read from that.

        Raises:
            StoreError: the file can't be written.
        """
        given = [(each,) for each in paths]
        if not given:
            return
        with self._writing():
            self._file.executemany("DELETE FROM directories WHERE path = ?", given)
            self._drop_orphans()

    def add(self, directory: Known, run: IndexedRun, rows: Sequence[Row]) -> bool:
        """Put in a run as it is now, and return whether it is this copy of it that counts.

        Raises:
            StoreError: the file can't be written.
        """
        with self._writing():
            self._put_directory(directory)
            self._drop_orphans()
            [best] = self._file.execute(
                "SELECT path FROM directories WHERE run_id = ? ORDER BY size DESC, path LIMIT 1",
                (run.run_id,),
            )
            if best[0] != directory.path:
                return False
            self._file.execute("DELETE FROM runs WHERE run_id = ?", (run.run_id,))
            number = self._file.execute(
                "INSERT INTO runs (run_id, path, created_at, value) VALUES (?, ?, ?, ?)",
                (run.run_id, directory.path, run.created_at, _text(run)),
            ).lastrowid
            self._put_rows(number, run, rows)
        return True

    def put_unreadable(self, directory: Known) -> None:
        """Note a directory that can't be read.

        Raises:
            StoreError: the file can't be written.
        """
        with self._writing():
            self._put_directory(directory)
            self._drop_orphans()

    def names(self, column: str) -> list[str]:
        """Return which models, suites, arms or metrics there are.

        Args:
            column: model, suite, arm or metric.
        """
        if column not in _SELECTED:
            msg = f"there is no {column} in an index"
            raise ValueError(msg)
        found = self._read(f"SELECT DISTINCT {column} FROM series ORDER BY 1")  # noqa: S608  from above
        return [name for (name,) in found]

    def read(
        self, wanted: Mapping[str, Sequence[str]]
    ) -> tuple[dict[int, IndexedRun], list[StoredSeries]]:
        """Return all runs by their numbers, in the order of time, and series with their points.

        Args:
            wanted: which of model, suite, arm and metric; what is not named may be any.
        """
        names = sorted(_SELECTED & wanted.keys())
        where = " AND ".join(f"{name} IN ({', '.join('?' * len(wanted[name]))})" for name in names)
        values = [value for name in names for value in wanted[name]]
        with self._snapshot():
            runs = self._read("SELECT id, value FROM runs ORDER BY created_at, run_id")
            heads = self._read(
                "SELECT id, study, identity, arm, metric, condition, setting FROM series"  # noqa: S608  names from below
                f" WHERE {where or 1}",
                values,
            )
            points = self._read(
                "SELECT series, run, status, value, low, high, error, n, doubt FROM points"  # noqa: S608  names from below
                f" WHERE series IN (SELECT id FROM series WHERE {where or 1}) ORDER BY series",
                values,
            )
        places = {number: place for place, (number, _) in enumerate(runs)}
        heads_by_number = {number: head for number, *head in heads}
        found = [
            _series(heads_by_number[number], sorted(map(_point, rows), key=lambda p: places[p.run]))
            for number, rows in groupby(points, key=itemgetter(0))
        ]
        return {number: msgspec.json.decode(text, type=IndexedRun) for number, text in runs}, found

    def _put_directory(self, directory: Known) -> None:
        self._file.execute("INSERT OR REPLACE INTO directories VALUES (?, ?, ?, ?)", directory)

    def _drop_orphans(self) -> None:
        """Remove runs that are not where they were read; what copies there are is to be read."""
        self._file.execute(
            f"UPDATE directories SET stamp = '' WHERE run_id IN (SELECT run_id {_ORPHANS})"  # noqa: S608  from below
        )
        self._file.execute(f"DELETE {_ORPHANS}")

    def _put_rows(self, number: int | None, run: IndexedRun, rows: Sequence[Row]) -> None:
        setting = _text(run.setting)
        keys = [
            (
                each.identity.get("suite", ""), each.identity["model"], each.metric, each.arm,
                run.study, _text(each.identity), each.condition or "", setting,
            )
            for each in rows
        ]  # fmt: skip
        columns = "suite, model, metric, arm, study, identity, condition, setting"
        self._file.executemany(
            f"INSERT OR IGNORE INTO series ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  names from above
            keys,
        )
        self._file.executemany(
            "INSERT OR REPLACE INTO points SELECT id, ?, ?, ?, ?, ?, ?, ?, ? FROM series"
            " WHERE suite = ? AND model = ? AND metric = ? AND arm = ? AND study = ?"
            " AND identity = ? AND condition = ? AND setting = ?",
            [
                (number, each.status, each.value, each.low, each.high, each.error, each.n,
                 each.doubt, *key)
                for each, key in zip(rows, keys, strict=True)
            ],
        )  # fmt: skip

    def _set_up(self) -> None:
        with self._named():
            [[application]] = self._file.execute("PRAGMA application_id")
            [[form]] = self._file.execute("PRAGMA user_version")
            [[tables]] = self._file.execute("SELECT count(*) FROM sqlite_master")
        if tables and application != _APPLICATION:
            msg = f"{self.path} is no index of runs; choose another with --index"
            raise StoreError(msg)
        if form > _FORMAT:
            msg = f"{self.path} was made by a later version; choose another with --index"
            raise StoreError(msg)
        with self._named():
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute("PRAGMA foreign_keys = ON")
        if form < _FORMAT:
            with self._writing():
                self._make_tables()

    def _make_tables(self) -> None:
        """Make tables in an empty file, unless another process just has."""
        [[form]] = self._file.execute("PRAGMA user_version")
        if form == _FORMAT:
            return
        for statement in filter(str.strip, _TABLES.split(";")):
            self._file.execute(statement)
        self._file.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._file.execute(f"PRAGMA user_version = {_FORMAT}")

    def _read(self, query: str, values: Sequence[str] = ()) -> list[Any]:
        with self._named():
            return self._file.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Do all of it or nothing."""
        with self._named():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._file.execute("ROLLBACK")
                raise
            self._file.execute("COMMIT")

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Read several times of what there is at the first."""
        with self._named():
            self._file.execute("BEGIN")
            try:
                yield
            finally:
                self._file.execute("COMMIT")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in what goes wrong with it."""
        try:
            yield
        except sqlite3.Error as error:
            msg = (
                f"{self.path} can't be used as an index: {error}; remove it, which loses nothing as"
                " it is made of the runs, or choose another with --index"
            )
            raise StoreError(msg) from error


_ORPHANS = (
    "FROM runs WHERE NOT EXISTS"
    " (SELECT 1 FROM directories d WHERE d.path = runs.path AND d.run_id = runs.run_id)"
)
_SELECTED = {"arm": "", "metric": "", "model": "", "suite": ""}.keys()
"""Columns by which series are selected."""


def _series(head: Sequence[str], points: Sequence[Point]) -> StoredSeries:
    study, identity, arm, metric, condition, setting = head
    return StoredSeries(
        study=study,
        identity=msgspec.json.decode(identity, type=dict[str, str]),
        arm=arm,
        metric=metric,
        condition=condition or None,
        setting=msgspec.json.decode(setting, type=dict[str, str]),
        points=tuple(points),
    )


def _point(row: Sequence[Any]) -> Point:
    return Point._make(row[1:])


def _text(value: object) -> str:
    """Write a value so that equal ones are equal texts."""
    return msgspec.json.encode(value, order="sorted").decode()
