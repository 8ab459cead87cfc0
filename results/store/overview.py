"""Run directories at a glance: which there are, how far each came, what it takes on the disk."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.store import EVENTS, MANIFEST, read_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.values.records import Manifest


class RunState(StrEnum):
    """How far a run came."""

    DONE = "done"
    INTERRUPTED = "interrupted"
    RUNNING = "running"


@dataclass(frozen=True)
class Overview:
    """What is known of a run without reading its samples.

    Attributes:
        directory: its run directory.
        manifest: of the run.
        finished: cases that had all their replicates.
        size_bytes: what its files take.
        is_locked: whether a process is writing to it.
    """

    directory: Path
    manifest: Manifest
    finished: int
    size_bytes: int
    is_locked: bool

    @property
    def planned(self) -> int:
        """How many cases it was to have."""
        return len(self.manifest.plan.cases)

    @property
    def state(self) -> RunState:
        """How far it came."""
        if self.is_locked:
            return RunState.RUNNING
        return RunState.DONE if self.finished >= self.planned else RunState.INTERRUPTED

    @property
    def progress(self) -> str:
        """Its state, with the cases that have ended where some have not."""
        if self.state is RunState.DONE:
            return str(self.state)
        return f"{self.state}, {self.finished} of {self.planned}"


def run_directories(folder: Path) -> list[Path]:
    """Return the run directories in a folder, or the folder itself if it is one, sorted by name.

    Raises:
        StoreError: there is no such folder.
    """
    if (folder / MANIFEST).is_file():
        return [folder]
    try:
        return sorted(each for each in folder.iterdir() if (each / MANIFEST).is_file())
    except OSError as error:
        msg = f"{folder} can't be read: {error.strerror}"
        raise StoreError(msg) from error


def read_overview(directory: Path) -> Overview:
    """Look at a run directory.

    Raises:
        StoreError: it is none, or what it holds is damaged.
    """
    manifest = read_manifest(directory)
    return Overview(
        directory=directory,
        manifest=manifest,
        finished=_finished(directory / EVENTS, manifest.plan.protocol.most_replicates),
        size_bytes=size_on_disk(directory),
        is_locked=is_locked(directory),
    )


def size_on_disk(directory: Path) -> int:
    """Return how many bytes the files below a directory take; of a link its own."""
    return sum(
        os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118  a tenth of what Path takes
        for folder, _, names in os.walk(directory)
        for name in names
    )


def is_locked(directory: Path) -> bool:
    """Return whether a process is writing to a run directory."""
    try:
        with (directory / EVENTS).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class _Line(msgspec.Struct):
    """What of a record says whether its case has ended; the rest is not decoded."""

    case: msgspec.Raw
    stopped: str | None = None


def _finished(events: Path, most_replicates: int) -> int:
    """Count the cases that have had all their replicates; earlier formats don't always say so."""
    seen: dict[bytes, int] = {}
    stopped: set[bytes] = set()
    try:
        with events.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break  # a dying process left it
                found = _decoded(line, f"{events}:{number}")
                case = bytes(found.case)
                seen[case] = seen.get(case, 0) + 1
                if found.stopped:
                    stopped.add(case)
    except OSError as error:
        msg = f"{events} can't be read: {error.strerror}"
        raise StoreError(msg) from error
    return sum(case in stopped or count >= most_replicates for case, count in seen.items())


def _decoded(line: bytes, place: str) -> _Line:
    try:
        return msgspec.json.decode(line, type=_Line)
    except msgspec.MsgspecError as error:
        msg = f"{place} is damaged: {error}"
        raise StoreError(msg) from error
