"""An index over any number of runs, in a file of SQLite. It can always be built again.

Each run is one transaction under SQLite's write-ahead log: a process that is killed leaves the run
in it or not, and whoever reads meanwhile sees it or doesn't. One process writes at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dynamometer.results.store.index import series

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from sqlite3 import Connection

    from dynamometer.results.store.index.index_file import IndexFile
    from dynamometer.results.values.history import IndexedRun, Row, StoredSeries


class IndexedDirectory(NamedTuple):
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


class Place(NamedTuple):
    """Where a run is from.

    Attributes:
        path: of the directory that its rows were made of; empty where a file brought them.
        size: bytes of the records they were made of.
        is_kept: whether a file brought the run, so that it stays without a directory.
    """

    path: str
    size: int
    is_kept: bool


class Index:
    """The index in a file."""

    def __init__(self, file: IndexFile) -> None:
        """Take the file, which is open."""
        self._file = file

    @property
    def file(self) -> IndexFile:
        """The file it is in."""
        return self._file

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file.path

    def outdate(self) -> None:
        """Have all directories read again, of whose rows others may be made now.

        Of a folder that can't be read all stays as it was; a run that is damaged goes.

        Raises:
            StoreError: the file can't be written.
        """
        with self._file.writing() as file:
            file.execute("UPDATE directories SET stamp = ''")
            file.execute("DELETE FROM series WHERE id NOT IN (SELECT series FROM points)")

    def add_folders(self, folders: Iterable[Path]) -> None:
        """Remember folders of runs.

        Raises:
            StoreError: the file can't be written.
        """
        new = sorted({str(each.absolute()) for each in folders} - set(map(str, self.folders())))
        if new:
            with self._file.writing() as file:
                file.executemany(
                    "INSERT OR IGNORE INTO folders VALUES (?)", [(each,) for each in new]
                )

    def folders(self) -> list[Path]:
        """Return the folders it was told of."""
        return [Path(path) for (path,) in self._file.read("SELECT path FROM folders ORDER BY path")]

    def directories(self) -> dict[str, IndexedDirectory]:
        """Return the run directories it has seen, by path."""
        found = self._file.read("SELECT path, stamp, size, run_id FROM directories")
        return {each[0]: IndexedDirectory(*each) for each in found}

    def forget(self, paths: Iterable[str]) -> None:
        """Forget directories that are gone; a run of which there is another copy is read from that.

        Raises:
            StoreError: the file can't be written.
        """
        given = [(each,) for each in paths]
        if not given:
            return
        with self._file.writing() as file:
            file.executemany("DELETE FROM directories WHERE path = ?", given)
            _drop_orphans(file)

    def add(self, directory: IndexedDirectory, run: IndexedRun, rows: Sequence[Row]) -> bool:
        """Put in a run as it is now, and return whether it is this copy of it that counts.

        Raises:
            StoreError: the file can't be written.
        """
        with self._file.writing() as file:
            _put_directory(file, directory)
            _drop_orphans(file)
            [best] = file.execute(
                "SELECT path FROM directories WHERE run_id = ? ORDER BY size DESC, path LIMIT 1",
                (run.run_id,),
            )
            if best[0] != directory.path:
                counts = file.execute(
                    "SELECT 1 FROM runs WHERE run_id = ? AND path = ?",
                    (run.run_id, directory.path),
                ).fetchone()
                if not counts:
                    return False
                # It has become smaller: as it is now it counts until the other is read again.
                file.execute("UPDATE directories SET stamp = '' WHERE path = ?", (best[0],))
            kept = file.execute(
                "SELECT size FROM runs WHERE run_id = ? AND is_kept", (run.run_id,)
            ).fetchone()
            if kept and kept[0] > directory.size:
                file.execute("UPDATE runs SET path = '' WHERE run_id = ?", (run.run_id,))
                return False
            place = Place(directory.path, directory.size, is_kept=kept is not None)
            put_rows(file, put_run(file, run, place), run, rows)
        return True

    def runs(self) -> int:
        """Return how many runs it holds."""
        [[found]] = self._file.read("SELECT count(*) FROM runs")
        return int(found)

    def version_key(self) -> tuple[int, ...]:
        """Return a value that differs once any run has been put in, for who keeps what it read."""
        [found] = self._file.read("SELECT count(*), total(size), max(id) FROM runs")
        return tuple(found)

    def places(self) -> dict[str, Path]:
        """Return the directory of each run that has one, by the run's id."""
        found = self._file.read("SELECT run_id, path FROM runs WHERE path != ''")
        return {run_id: Path(path) for run_id, path in found}

    def put_unreadable(self, directory: IndexedDirectory) -> None:
        """Note a directory that can't be read.

        Raises:
            StoreError: the file can't be written.
        """
        with self._file.writing() as file:
            _put_directory(file, directory)
            _drop_orphans(file)

    def names(self, column: str) -> list[str]:
        """Return which models, suites, arms or metrics there are.

        Args:
            column: model, suite, arm or metric.
        """
        if column not in series.SELECTED:
            msg = f"there is no {column} in an index"
            raise ValueError(msg)
        found = self._file.read(
            f"SELECT DISTINCT {column} FROM series"  # noqa: S608  from above
            " WHERE EXISTS (SELECT 1 FROM points WHERE points.series = series.id) ORDER BY 1"
        )
        return [name for (name,) in found]

    def read(
        self, wanted: Mapping[str, Sequence[str]], asked: series.Asked = series.ALL
    ) -> tuple[dict[int, IndexedRun], list[StoredSeries]]:
        """Return all runs by their numbers, in the order of time, and series.

        Args:
            wanted: which of model, suite, arm and metric; what is not named may be any.
            asked: what of these series.

        Raises:
            StoreError: the file can't be read.
        """
        return series.read(self._file, wanted, asked)


def _put_directory(file: Connection, directory: IndexedDirectory) -> None:
    file.execute("INSERT OR REPLACE INTO directories VALUES (?, ?, ?, ?)", directory)


def _drop_orphans(file: Connection) -> None:
    """Remove runs that are not where they were read; what copies there are is to be read.

    Those that a file brought stay, as they were read.
    """
    file.execute(
        f"UPDATE directories SET stamp = '' WHERE run_id IN (SELECT run_id FROM runs {_ORPHANED})"  # noqa: S608  from below
    )
    file.execute(f"UPDATE runs SET path = '' {_ORPHANED} AND is_kept")  # noqa: S608  from below
    file.execute(f"DELETE FROM runs {_ORPHANED}")  # noqa: S608  from below


def put_run(file: Connection, run: IndexedRun, place: Place) -> int:
    """Put in a run without its rows, in place of what there is of it, and return its number."""
    file.execute("DELETE FROM runs WHERE run_id = ?", (run.run_id,))
    number = file.execute(
        "INSERT INTO runs (run_id, path, created_at, value, size, is_kept)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (run.run_id, place.path, run.created_at, _text(run), place.size, place.is_kept),
    ).lastrowid
    return number or 0  # it is there once something was put in


def put_rows(file: Connection, number: int, run: IndexedRun, rows: Sequence[Row]) -> None:
    """Put in rows of a run that is there, by its number."""
    setting = _text(run.setting)
    keys = [
        (
            each.identity.get("suite", ""), each.identity["model"], each.metric, each.arm,
            run.study, _text(each.identity), each.condition or "", setting,
        )
        for each in rows
    ]  # fmt: skip
    columns = "suite, model, metric, arm, study, identity, condition, setting"
    file.executemany(
        f"INSERT OR IGNORE INTO series ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  names from above
        keys,
    )
    file.executemany(
        "INSERT OR REPLACE INTO points SELECT id, ?, ?, ?, ?, ?, ?, ?, ? FROM series"
        " WHERE suite = ? AND model = ? AND metric = ? AND arm = ? AND study = ?"
        " AND identity = ? AND condition = ? AND setting = ?",
        [
            (number, each.status, each.value, each.low, each.high, each.error, each.n,
             each.doubt, *key)
            for each, key in zip(rows, keys, strict=True)
        ],
    )  # fmt: skip


_ORPHANED = (
    "WHERE path != '' AND NOT EXISTS"
    " (SELECT 1 FROM directories d WHERE d.path = runs.path AND d.run_id = runs.run_id)"
)


def _text(value: object) -> str:
    """Write a value so that equal ones are equal texts."""
    return msgspec.json.encode(value, order="sorted").decode()
