"""Run directories at a glance: which there are, how far each came, what it takes on the disk."""

from __future__ import annotations

import fcntl
import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dynamometer.results.store.belonging import Judge
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.formats import upgraded_record
from dynamometer.results.store.reading import BAD_JSON, from_json, opened
from dynamometer.results.store.store import EVENTS, MANIFEST, read_manifest
from dynamometer.results.values.cases import Case
from dynamometer.results.values.records import Status, had_last

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
        infra: cases with a replicate that a fault of the harness ended, which `resume` attempts
            again.
        size_bytes: what its files take.
        is_locked: whether a process is writing to it.
    """

    directory: Path
    manifest: Manifest
    finished: int
    infra: int
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
        """Its state, with the cases that have ended where some have not, and with our faults."""
        infra = f", {self.infra} {Status.INFRA}" if self.infra else ""
        if self.state is RunState.DONE:
            return f"{self.state}{infra}"
        return f"{self.state}, {self.finished} of {self.planned}{infra}"


def run_directories(folder: Path) -> list[Path]:
    """Return the run directories in a folder, or the folder itself if it is one, sorted by name.

    Raises:
        StoreError: there is no such folder.
    """
    if (folder / MANIFEST).is_file():
        return [folder]
    try:
        return sorted(each for each in folder.iterdir() if _is_run(each))
    except OSError as error:
        msg = f"{folder} can't be read: {error.strerror}; name the folder that runs were written to"
        raise StoreError(msg) from error


def _is_run(directory: Path) -> bool:
    try:
        return (directory / MANIFEST).is_file()
    except OSError:  # one that nobody may look into is none of ours
        return False


def read_overview(directory: Path) -> Overview:
    """Look at a run directory.

    Raises:
        StoreError: it is none, or what it holds is damaged.
    """
    manifest = read_manifest(directory)
    cases = _endings(directory / EVENTS, manifest)
    return Overview(
        directory=directory,
        manifest=manifest,
        finished=sum(had_last([end.stopped for end in each], manifest.plan) for each in cases),
        infra=sum(any(end.is_infra for end in each) for each in cases),
        size_bytes=size_on_disk(directory),
        is_locked=is_locked(directory),
    )


def size_on_disk(directory: Path) -> int:
    """Return how many bytes the files below a directory take; of a link its own."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):  # a run that is going on removes what it has used
                path = os.path.join(folder, name)  # noqa: PTH118  a tenth of what Path takes
                total += os.lstat(path).st_size
    return total


def is_locked(directory: Path) -> bool:
    """Return whether a process is writing to a run directory."""
    try:
        with opened(directory / EVENTS) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class _Outcome(msgspec.Struct):
    """What of an outcome is looked at."""

    status: str


class _Line(msgspec.Struct):
    """What of a record says whether its case has ended; the rest is not decoded."""

    schema: int
    run_id: str
    case: msgspec.Raw
    replicate: int
    outcome: _Outcome
    stopped: str | None = None
    earlier: tuple[msgspec.Raw, ...] = ()


class _Ending(NamedTuple):
    """How a replicate ended.

    Attributes:
        stopped: why there is none after it.
        is_infra: whether by a fault of the harness.
    """

    stopped: str | None
    is_infra: bool


def _endings(events: Path, manifest: Manifest) -> list[list[_Ending]]:
    """Read how the replicates of each case ended; of each the last attempt counts."""
    judge, ids = Judge(manifest), dict[tuple[int, bytes], str]()
    ends: defaultdict[str, dict[int, _Ending]] = defaultdict(dict)
    try:
        with opened(events) as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break  # a dying process left it
                place = f"{events}:{number}"
                found = from_json(line, _Line, place)
                key = (found.schema, bytes(found.case))
                if key not in ids:
                    ids[key] = _id_of(found, place)
                attempt = len(found.earlier)
                if judge.fault(found.run_id, ids[key], found.replicate, attempt) is None:
                    is_infra = found.outcome.status == Status.INFRA
                    ends[ids[key]][found.replicate] = _Ending(found.stopped, is_infra)
    except OSError as error:
        msg = f"{events} can't be read: {error.strerror}"
        raise StoreError(msg) from error
    return [[*each.values()] for each in ends.values()]


def _id_of(line: _Line, place: str) -> str:
    """Return the id of a record's case, of whatever format."""
    case = from_json(line.case, object, place)
    try:
        text = msgspec.json.encode(upgraded_record({"schema": line.schema, "case": case})["case"])
    except BAD_JSON as error:
        msg = f"{place} is damaged: {error}"
        raise StoreError(msg) from error
    return from_json(text, Case, place).id
