"""The file of SQLite that the index is in: its tables, and what goes wrong with it."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.history import INDEX_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

_FORMAT = 4
_APPLICATION = 0x44594E4F
"""By which SQLite's files tell whose they are."""

WAIT_S = 60.0
"""For another process that is writing, where nobody waits for something else."""

_TABLES = """
CREATE TABLE folders (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL,
    created_at TEXT NOT NULL,
    value TEXT NOT NULL,
    size INTEGER NOT NULL,
    is_kept INTEGER NOT NULL
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

_TO_FORMAT_2 = """
ALTER TABLE runs ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN is_kept INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET size = coalesce((SELECT size FROM directories d WHERE d.path = runs.path), 0);
"""
"""Format 2 knows runs that have no directory: they are kept, and of each how much it holds."""

_TO_FORMAT_3 = "UPDATE directories SET stamp = ''"
"""Format 3 has arms whose eager ended their process as eager ended: all runs are read again."""

_TO_FORMAT_4 = """
UPDATE directories SET stamp = '';
DELETE FROM points WHERE series IN (SELECT id FROM series WHERE metric = 'memory_ratio')
    AND run IN (SELECT id FROM runs WHERE is_kept);
"""
"""Format 4 counts in memory ratios what arms keep: all runs are read again, but those that can't be
lose theirs."""

_STEPS = (_TO_FORMAT_2, _TO_FORMAT_3, _TO_FORMAT_4)
"""From each format to the next, beginning with the first."""


class IndexFile:
    """An open file; what is done with it happens in `writing` or `snapshot`, or is one `read`."""

    def __init__(self, path: Path, wait_s: float = WAIT_S, *, may_be_new: bool = True) -> None:
        """Open it, or make it where there is none.

        Args:
            path: where it is.
            wait_s: for another process that is writing.
            may_be_new: whether one is made of an empty file, rather than refused.

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
            self._file = sqlite3.connect(path, timeout=wait_s, isolation_level=None)
        try:
            self._set_up(may_be_new=may_be_new)
        except StoreError:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        """Return the file itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self._file.close()

    def read(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a query.

        Raises:
            StoreError: the file can't be read.
        """
        with self._named():
            return self._file.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Do all of it or nothing.

        Raises:
            StoreError: the file can't be written; then it is as it was.
        """
        with self._named():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield self._file
                self._file.execute("COMMIT")
            finally:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read several times, of what there is at the first.

        Raises:
            StoreError: the file can't be read.
        """
        with self._named():
            self._file.execute("BEGIN")
            try:
                yield
            finally:
                self._file.execute("COMMIT")

    def _set_up(self, *, may_be_new: bool) -> None:
        with self.snapshot():  # another process may be making the tables
            [[application]] = self._file.execute("PRAGMA application_id")
            [[form]] = self._file.execute("PRAGMA user_version")
            [[tables]] = self._file.execute("SELECT count(*) FROM sqlite_master")
        if tables and application != _APPLICATION:
            msg = f"{self.path} is no index of runs; choose another with --index"
            raise StoreError(msg)
        if not (tables or form or may_be_new):
            msg = f"{self.path} is empty, and no index of runs: `dynamometer index` makes one"
            raise StoreError(msg)
        if form > _FORMAT:
            msg = f"{self.path} was made by a later version; choose another with --index"
            raise StoreError(msg)
        with self._named():
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute("PRAGMA foreign_keys = ON")
        if form < _FORMAT:
            with self.writing():
                self._make_tables()

    def _make_tables(self) -> None:
        """Make tables in an empty file, or those of an earlier format anew.

        Unless another process just has.
        """
        [[form]] = self._file.execute("PRAGMA user_version")
        if form == _FORMAT:
            return
        statements = ";".join(_STEPS[form - 1 :]) if form else _TABLES
        for statement in filter(str.strip, statements.split(";")):
            self._file.execute(statement)
        self._file.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._file.execute(f"PRAGMA user_version = {_FORMAT}")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in what goes wrong with it."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code == sqlite3.SQLITE_BUSY:
                msg = f"{self.path} is being written by another process; wait for it, or stop it"
                raise StoreError(msg) from error
            msg = f"{self.path} can't be used as an index: {error}; choose another with --index"
            is_ours = code == sqlite3.SQLITE_NOTADB and self.path.name == INDEX_FILE
            if code == sqlite3.SQLITE_CORRUPT or is_ours:
                msg += ", or remove it: it is made of the runs, but what it was given is lost"
            raise StoreError(msg) from error
