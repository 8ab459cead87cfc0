"""`dynamometer rm RUN...`: remove runs, saying what that frees."""

from __future__ import annotations

import shutil
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from dynamometer.common.command_line.stored.listing import megabytes
from dynamometer.common.command_line.stored.runs import RUN_OR_SEVERAL, RUNS, run_directory
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Flag
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.listing import first_of
from dynamometer.results.store.errors import FormatError, StoreError
from dynamometer.results.store.overview import is_locked, read_overview, size_on_disk
from dynamometer.results.store.reading import file_bytes, from_json
from dynamometer.results.store.store import EVENTS, MANIFEST, RunStore, read_manifest
from dynamometer.results.values.records import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request

YES = Flag(("--yes",), group="Execution", help="Don't ask.")
DAMAGED = Flag(
    ("--damaged",), group="Selection",
    help="Remove damaged runs, too, and what is left of half-removed ones.",
)  # fmt: skip
OPTIONS = (YES, DAMAGED, RUNS, RUN_OR_SEVERAL)
HELP = """Remove runs, and say what that frees.

RUN is a run's directory, or its name below --output-dir. Whatever isn't one is refused, and so
is a run that is going on, or damaged.
"""


class _Found(NamedTuple):
    """A run directory that may be removed, how far its run came, and its size."""

    directory: Path
    progress: str
    size_bytes: int


def run(asked: Request, _: Invocation) -> int:
    """Say what would be removed, ask, and remove it.

    Nothing is removed unless everything that is named can be.

    Raises:
        UsageError: something that is named must not be removed; says which and why.
    """
    named = [run_directory(each, asked[RUNS]) for each in asked[RUN_OR_SEVERAL]]
    found = list({each.resolve(): _removable(each, asked) for each in named}.values())
    for each in found:
        click.echo(f"{each.directory}: {each.progress}, {megabytes(each.size_bytes)}")
    total = megabytes(sum(each.size_bytes for each in found))
    if not asked[YES]:
        if not sys.stdin.isatty():
            msg = "nobody can be asked here, as standard input is no terminal: say --yes"
            raise UsageError(msg)
        click.confirm(f"remove {len(found)} run(s), which frees {total}?", abort=True)
    with store_errors_as_usage():
        _remove_all([each.directory for each in found])
    click.echo(f"removed {len(found)} run(s): {total} freed")
    return 0


def _removable(directory: Path, asked: Request) -> _Found:
    """Look at a run directory that is to be removed.

    Raises:
        UsageError: it is no run directory, a link, in use, not what it seems, or damaged where
            only whole ones are to go.
    """
    if directory.is_symlink():
        msg = f"{directory} is a link: name what it leads to, {directory.readlink()}"
        raise UsageError(msg)
    try:
        progress = read_overview(directory).progress
    except FormatError as error:
        raise UsageError(str(error)) from error
    except StoreError as error:
        if not _is_left_of_run(directory):
            raise UsageError(str(error)) from error
        if not asked[DAMAGED]:
            msg = f"{error}; --damaged removes what is left of the run"
            raise UsageError(msg) from error
        progress = "damaged"
    if is_locked(directory):
        msg = f"{directory} is being written by another process; wait for it, or stop it"
        raise UsageError(msg)
    if Path.cwd().is_relative_to(directory.resolve()):
        msg = f"{directory} is where you are: go elsewhere first"
        raise UsageError(msg)
    if (directory / EVENTS).is_symlink():
        msg = f"{directory} is no run directory: {EVENTS} is no file of its own"
        raise UsageError(msg)
    return _Found(directory, progress, size_on_disk(directory))


def _is_left_of_run(directory: Path) -> bool:
    """Return whether a directory holds a manifest or a record of ours, of a format that we know.

    Other programs have files of these names, too, and a later version can read runs of its own.
    """
    with suppress(StoreError):
        return bool(read_manifest(directory))
    events = directory / EVENTS
    with suppress(OSError, StoreError):
        line, _, _ = file_bytes(events).partition(b"\n")
        return from_json(line, _AnyRecord, str(events)).schema <= SCHEMA_VERSION
    return False


class _AnyRecord(msgspec.Struct, frozen=True):
    """What records of every format have."""

    schema: int
    run_id: str
    replicate: int


def _remove_all(directories: Sequence[Path]) -> None:
    """Remove one directory after the other.

    Raises:
        StoreError: one can't be removed; names those that are gone.
    """
    for index, each in enumerate(directories):
        try:
            _remove(each)
        except StoreError as error:
            gone = first_of(list(map(str, directories[:index]))) or "nothing"
            msg = f"{error}; removed before: {gone}"
            raise StoreError(msg) from error


def _remove(directory: Path) -> None:
    """Remove a directory while nobody else can write to it. Links in it go, not what they lead to.

    Its manifest goes last: by that `ls runs` knows what a killed `rm` has left.

    Raises:
        StoreError: it is being written by now, or can't be removed.
    """
    with RunStore(directory) if (directory / EVENTS).is_file() else nullcontext():
        try:
            for each in sorted(directory.iterdir(), key=_is_needed):
                if each.is_dir() and not each.is_symlink():
                    shutil.rmtree(each)
                else:
                    each.unlink()
            directory.rmdir()
        except OSError as error:
            msg = f"{error.filename or directory} can't be removed: {error.strerror}"
            raise StoreError(msg) from error


def _is_needed(path: Path) -> tuple[bool, bool]:
    """Return a key by which what tells of a run comes last: its records, then its manifest."""
    return path.name == MANIFEST, path.name == EVENTS
