"""How the index is brought up to what run directories hold, which are the truth."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.index.index import IndexedDirectory
from dynamometer.results.store.overview import run_directories
from dynamometer.results.store.store import EVENTS, MANIFEST
from dynamometer.results.values.history import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from dynamometer.results.store.index.index import Index
    from dynamometer.results.values.history import IndexedRun, Row

    Reader = Callable[[Path], tuple[IndexedRun, Sequence[Row]]]


@dataclass(frozen=True)
class Indexed:
    """What bringing an index up to date came to.

    Attributes:
        read: directories that were new or had changed.
        rows: of these.
        copies: of them those of runs of which another directory, or a file, holds more.
        gone: directories that are there no more.
        unreadable: what could not be read, each with the reason.
    """

    read: int
    rows: int
    copies: int
    gone: int
    unreadable: Mapping[str, str]


def refresh(index: Index, read: Reader) -> Indexed:
    """Read what is new or has changed in the folders that the index knows of.

    Of a folder that can't be read all stays as it was.

    Args:
        index: which is brought up to date.
        read: what makes rows of a run directory; raises a `StoreError` where it can't.

    Raises:
        StoreError: the index can't be written.
    """
    known = index.directories()  # before looking: what another process adds meanwhile is not gone
    found, unreadable = _found(index)
    gone = [
        path
        for path in known
        if path not in found and not any(_is_in(path, folder) for folder in unreadable)
    ]
    index.forget(gone)
    counts = Counter[str]()
    pending = _outdated(found, index.directories())
    while pending:
        for path in pending:
            stamp, size = _stamp(found[path])
            try:
                run, rows = read(found[path])
            except StoreError as error:
                unreadable[path] = str(error)
                index.put_unreadable(IndexedDirectory(path, stamp, size, None))
                continue
            is_best = index.add(IndexedDirectory(path, stamp, size, run.run_id), run, rows)
            counts.update(read=1, rows=len(rows) * is_best, copies=int(not is_best))
        # What was read is not read again, however it grows: only copies of what has vanished.
        pending = [
            path for path, each in index.directories().items() if not each.stamp and path in found
        ]
    return Indexed(
        read=counts["read"],
        rows=counts["rows"],
        copies=counts["copies"],
        gone=len(gone),
        unreadable=unreadable,
    )


def put(index: Index, directory: Path, read: Reader) -> str:
    """Put one run into an index, unless it is there as it is now, and return its id.

    Args:
        index: which is written to.
        directory: of the run.
        read: what makes rows of it.

    Raises:
        StoreError: the run can't be read, or the index can't be written.
    """
    path = os.path.abspath(directory)  # noqa: PTH100  without `..`, which would be a second place
    if not _is_text(directory):
        msg = f"{path!a}: its name is not UTF-8: rename it"
        raise StoreError(msg)
    stamp, size = _stamp(directory)
    directories = index.directories()
    known = directories.get(path)
    if known and known.run_id is not None and known.stamp == stamp:
        return known.run_id
    run, rows = read(directory)
    is_copy = any(
        each.run_id == run.run_id and place != path for place, each in directories.items()
    )
    if not is_copy:
        index.add(IndexedDirectory(path, stamp, size, run.run_id), run, rows)
    return run.run_id


def _outdated(found: Mapping[str, Path], known: Mapping[str, IndexedDirectory]) -> list[str]:
    """Return the directories that are not as they were when they were read."""
    return [
        path
        for path, directory in found.items()
        if not (before := known.get(path))
        or before.run_id is None
        or before.stamp != _stamp(directory)[0]
    ]


def _found(index: Index) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the run directories that are there, and which folders can't be read."""
    found: dict[str, Path] = {}
    unreadable: dict[str, str] = {}
    for folder in index.folders():
        try:
            there = run_directories(folder)
        except StoreError as error:
            unreadable[str(folder)] = str(error)
            continue
        for each in there:
            if _is_text(each):
                found[str(each)] = each
            else:
                name = os.fsencode(each).decode(errors="backslashreplace")
                unreadable[name] = "its name is not UTF-8: rename it"
    return found, unreadable


def _is_text(path: Path) -> bool:
    """Return whether a path can be written as UTF-8, which Linux doesn't ask for."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _stamp(directory: Path) -> tuple[str, int]:
    """Return by what a changed run is told, and how much it holds.

    It is taken before the run is read: what is written meanwhile is read the next time.
    """
    parts = [f"rows {ROWS}"]
    size = 0
    for name in (MANIFEST, EVENTS):
        try:
            found = (directory / name).stat()
        except OSError:
            parts.append("none")
            continue
        parts.append(f"{found.st_size} {found.st_mtime_ns}")
        size = found.st_size
    return ", ".join(parts), size
