"""`dynamometer index [DIR...]`: an index over any number of runs, and what keeps it up to date."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common.command_line.stored.runs import side_of
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Arguments, Flag, Valued
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
OPTIONS = (REBUILD, INDEX, RUNS, FOLDERS)


def run(asked: Request, _: Invocation) -> int:
    """Bring the index up to date, and say what that came to.

    Raises:
        UsageError: the index can't be used.
    """
    folders = asked[FOLDERS]
    with opened(asked, folders) as index:
        if asked[REBUILD]:
            index.clear()
        found = refreshed(index)
        total = len({each.run_id for each in index.directories().values()} - {None})
        click.echo(
            f"{index.path}: {total} run(s) in {len(index.folders())} folder(s); read {found.read}"
            f" ({found.rows} rows), copies {found.copies}, gone {found.gone},"
            f" unreadable {len(found.unreadable)}"
        )
    return 0


@contextmanager
def opened(asked: Request, folders: Sequence[Path] = ()) -> Iterator[Index]:
    """Open the index, which knows of the folder of runs and of those that are named.

    Raises:
        UsageError: it can't be used.
    """
    # These import SQLite.
    from dynamometer.results.store.index.index import INDEX_FILE, Index
    from dynamometer.results.store.index.index_file import IndexFile

    home = asked[RUNS]
    with store_errors_as_usage():
        if not (asked[INDEX] or home.is_dir() or folders):
            msg = f"there is no {home}: name where runs are, dynamometer index DIR..."
            raise UsageError(msg)
        with IndexFile(asked[INDEX] or home / INDEX_FILE) as file:
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
