"""`dynamometer index [DIR...]`: an index over any number of runs, and what keeps it up to date."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common.command_line.stored.runs import side_of
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Arguments, Flag, Several, Valued
from dynamometer.common.interfaces.run_options import OUTPUT_DIR
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.reports.texts import printable
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.store.index.index import Index
    from dynamometer.results.store.index.indexing import Indexed
    from dynamometer.results.values.history import IndexedRun, Row

INDEX = Valued[Path | None](
    ("--index",), reads=click.Path(dir_okay=False, path_type=Path), default=None, metavar="FILE",
    group="Output", help="The index.  [default: index.sqlite below --output-dir]",
)  # fmt: skip
RUNS = msgspec.structs.replace(OUTPUT_DIR, help="Where runs are made, which are always indexed.")
REBUILD = Flag(("--rebuild",), group="Execution", help="Read all runs again.")
FOLDERS = Arguments[Path](
    ("DIR",), reads=click.Path(exists=True, file_okay=False, path_type=Path), is_required=False
)  # fmt: skip
PARQUET = Valued[Path | None](
    ("--parquet",), reads=click.Path(path_type=Path), default=None, metavar="FILE",
    group="Output", help="Write all rows of the index, for pandas, DuckDB, Polars, other indexes.",
)  # fmt: skip
FROM_PARQUET = Several[Path](
    ("--from-parquet",), reads=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE", group="Selection",
    help="Add the runs of such a file, which are kept without a directory; may be repeated.",
)  # fmt: skip
OPTIONS = (FROM_PARQUET, REBUILD, PARQUET, INDEX, RUNS, FOLDERS)
HELP = """Keep an index of runs, for `history`.

DIR is a folder of run directories, or one of them, which is remembered: later only what is new or
has changed is read. Run directories stay the truth; the index can be removed at any time, which
loses only what it was given: folders, and runs from Parquet files.
"""


def run(asked: Request, _: Invocation) -> int:
    """Bring the index up to date, add and write files, and say what that came to.

    Raises:
        UsageError: the index can't be used, or a file can't be read or written.
    """
    _check_files(asked)
    folders, files = asked[FOLDERS], asked[FROM_PARQUET]
    with opened(asked, folders, may_be_new=bool(files)) as index:
        if asked[REBUILD]:
            index.outdate()
        found = refreshed(index)
        for path in files:
            _add(index, path)
        click.echo(
            f"{index.path}: {index.runs()} run(s) in {len(index.folders())} folder(s);"
            f" read {found.read} ({found.rows} rows), copies {found.copies}, gone {found.gone},"
            f" unreadable {len(found.unreadable)}"
        )
        if target := asked[PARQUET]:
            _write(index, target)
    return 0


def _check_files(asked: Request) -> None:
    """Refuse files before anything is done, which may take long.

    Raises:
        UsageError: what reads and writes them isn't installed, one would replace the index, or one
            can't be written.
    """
    if not (asked[PARQUET] or asked[FROM_PARQUET]):
        return
    from dynamometer.results.store.index import parquet
    from dynamometer.results.values.history import INDEX_FILE

    with store_errors_as_usage():
        parquet.arrow()
    index, path = asked[INDEX] or asked[RUNS] / INDEX_FILE, asked[PARQUET]
    if path is None:
        return
    with store_errors_as_usage():
        parquet.check_place(path)
    if path.resolve() == index.resolve():
        msg = f"{PARQUET.flag} {path} is the index itself: name another file"
        raise UsageError(msg)


def _add(index: Index, path: Path) -> None:
    """Add the runs of a file.

    Raises:
        StoreError: it can't be read, or the index can't be written; then nothing of it is added.
    """
    from dynamometer.results.history.changes import KIND  # imports numpy
    from dynamometer.results.store.index import parquet, whole_runs
    from dynamometer.results.values.history import STATUS

    found = parquet.read(path, {STATUS, *KIND})
    added = whole_runs.add(index.file, str(path), found)
    click.echo(
        f"{path}: {added.runs} run(s) added ({added.rows} rows), {added.stayed} stayed as they were"
    )


def _write(index: Index, path: Path) -> None:
    """Write all rows as a file.

    Raises:
        StoreError: the index can't be read, or the file can't be written.
    """
    from dynamometer.results.store.index import parquet, whole_runs

    with closing(whole_runs.parts(index.file)) as found:
        runs, rows = parquet.write(path, found)
    click.echo(f"{path}: {runs} run(s), {rows} rows")


@contextmanager
def opened(
    asked: Request, folders: Sequence[Path] = (), *, may_be_new: bool = False
) -> Iterator[Index]:
    """Open the index, which knows of the folder of runs and of those that are named.

    Args:
        asked: where runs and the index are.
        folders: further ones.
        may_be_new: whether it is made even where no folder of runs is there.

    Raises:
        UsageError: it can't be used.
    """
    # These import SQLite.
    from dynamometer.results.store.index.index import Index
    from dynamometer.results.store.index.index_file import IndexFile
    from dynamometer.results.values.history import INDEX_FILE

    home, index_file = asked[RUNS], asked[INDEX]
    is_known = index_file is not None and index_file.is_file() and not asked.is_set(RUNS)
    with store_errors_as_usage():
        if not (is_known or home.is_dir() or folders or may_be_new):
            msg = f"there is no {home}: name where runs are, dynamometer index DIR..."
            raise UsageError(msg)
        with IndexFile(index_file or home / INDEX_FILE) as file:
            index = Index(file)
            index.add_folders([*folders, *([home] if home.is_dir() else [])])
            yield index


def refreshed(index: Index) -> Indexed:
    """Bring an index up to date, and name what could not be read on standard error.

    Raises:
        StoreError: it can't be written.
    """
    from dynamometer.results.store.index.indexing import refresh

    found = refresh(index, read_run)
    for path, why in found.unreadable.items():
        click.echo(printable(f"left out: {path}: {why}"), err=True)
    return found


def read_run(directory: Path) -> tuple[IndexedRun, list[Row]]:
    """Return what the index holds of a run.

    Raises:
        StoreError: it can't be read, or the plugin that brings its study isn't installed.
    """
    from dynamometer.results.history.rows import indexed_run, rows  # imports scipy

    manifest = store.read_manifest(directory)
    records = store.read_records(directory)
    try:
        side = side_of(directory, manifest, records)
        return indexed_run(manifest, side), rows(side)
    except UsageError as error:
        raise StoreError(str(error)) from error
    except Exception as error:  # one odd run must not be in the way of all others
        msg = f"{directory} can't be evaluated: {type(error).__name__}: {error}"
        raise StoreError(msg) from error
