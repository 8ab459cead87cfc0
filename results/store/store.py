"""The run directory: `manifest.json`, `events.jsonl`, one fsynced line for each record, `logs/`.

The directory is the truth; whatever else is written beside it can be derived again.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import msgspec

from dynamometer.results.store.atomic_file import remove_unfinished
from dynamometer.results.store.belonging import RunRecords, belonging, fault_of
from dynamometer.results.store.errors import BlockedError, FormatError, StoreError
from dynamometer.results.store.formats import upgraded_manifest, upgraded_record
from dynamometer.results.store.plausibility import fault_of_record
from dynamometer.results.store.reading import BAD_JSON, file_bytes, utc_time
from dynamometer.results.values.records import SCHEMA_VERSION, Manifest, Record

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

MANIFEST = "manifest.json"
EVENTS = "events.jsonl"


class RunStore:
    """Appends records to a run directory; only one process at a time can."""

    def __init__(self, directory: Path) -> None:
        """Open an existing run directory for appending.

        What a dying process left unfinished is removed: a line, and files beside it.

        Raises:
            StoreError: another process is writing to it, or it can't be written.
        """
        self._path = directory / EVENTS
        self._manifest = _bytes_of(directory / MANIFEST)
        try:
            self._file = self._path.open("ab+", buffering=0)
        except OSError as error:
            raise _unwritable(self._path, error) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            msg = f"{directory} is being written by another process; wait for it, or stop it"
            raise BlockedError(msg) from error
        except OSError as error:
            self._file.close()
            raise _unwritable(self._path, error) from error
        try:
            self._bytes = self._file.truncate(file_bytes(self._path).rfind(b"\n") + 1)
        except OSError as error:
            self._file.close()
            raise _unwritable(self._path, error) from error
        remove_unfinished(directory)

    def append(self, record: Record) -> None:
        """Write one record so that it survives whatever happens next.

        Raises:
            StoreError: it can't be written, or somebody has moved, replaced, shortened or removed
                the file, or its folder, meanwhile; says where what was written before is.
        """
        line = memoryview(msgspec.json.encode(record) + b"\n")
        length = len(line)
        try:
            while line:
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            msg = f"{self._path} can't be written: {error.strerror}; all earlier records are safe"
            raise StoreError(msg) from error
        self._bytes += length
        if self._is_lost:
            raise StoreError(self._rescued())

    @property
    def _is_lost(self) -> bool:
        """Whether what was written no longer stands in the directory's file."""
        own = os.fstat(self._file.fileno())
        try:
            there = self._path.stat()
        except OSError:
            return True
        is_same = (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)
        return not is_same or own.st_size < self._bytes

    def _rescued(self) -> str:
        """Write a run of the records that stand in a lost file, and say where."""
        what = (
            f"{self._path} was moved, replaced, shortened or removed while the run was writing to"
            " it"
        )
        folder = self._path.parent
        numbers = itertools.count(1)
        places = (folder.with_name(f"{folder.name}-rescued-{number}") for number in numbers)
        try:
            rescued = next(each for each in places if not each.exists())
            rescued.mkdir(parents=True)  # what held the directory may be gone, too
            self._file.seek(0)
            (rescued / EVENTS).write_bytes(self._file.read())
            (rescued / MANIFEST).write_bytes(self._manifest)
        except OSError as error:
            place = error.filename or folder.parent
            return f"{what}; what still stood in it can't be kept: {place}: {error.strerror}"
        return f"{what}; what still stood in it is in {rescued}: dynamometer resume {rescued}"

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file, which lets others append.

        Raises:
            StoreError: something failed, and the file is lost; says where its records are.
        """
        try:
            is_other = isinstance(error, Exception) and not isinstance(error, StoreError)
            if is_other and self._is_lost:
                raise StoreError(self._rescued()) from error
        finally:
            self._file.close()


def _bytes_of(path: Path) -> bytes:
    """Return what is needed only if it should be lost."""
    try:
        return file_bytes(path)
    except OSError:
        return b""


def make_home(runs: Path) -> None:
    """Make the directory that run directories are made in, if it isn't there.

    Raises:
        StoreError: it can't be made.
    """
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unmakeable(runs, error) from error


def create(directory: Path, manifest: Manifest) -> None:
    """Make a run directory with its manifest and no record.

    Raises:
        StoreError: it can't be made.
    """
    try:
        directory.mkdir(parents=True)
        (directory / EVENTS).touch()
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        temporary = directory / f"{MANIFEST}.new"
        with temporary.open("wb") as file:
            file.write(text + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(directory / MANIFEST)
    except BaseException as error:
        if not isinstance(error, FileExistsError):  # half of a run would be in the way of others
            shutil.rmtree(directory, ignore_errors=True)
        if isinstance(error, OSError):
            raise _unmakeable(directory, error) from error
        raise


def discard(directory: Path) -> bool:
    """Remove a run directory without any record; return whether it was there, and is gone.

    The stages of a run with `ensemble` have records of their own, in directories below.
    """
    if not directory.exists():
        return False
    try:
        if any(b"\n" in file_bytes(each) for each in directory.rglob(EVENTS)):
            return False
    except OSError:
        return False
    shutil.rmtree(directory, ignore_errors=True)
    return True


def _unwritable(path: Path, error: OSError) -> StoreError:
    whose = ""
    if isinstance(error, PermissionError):
        with suppress(OSError, KeyError):
            is_ours = path.stat().st_uid == os.getuid()
            whose = "" if is_ours else f"; it belongs to {path.owner()}"
    return StoreError(f"{path} can't be written: {error.strerror}{whose}")


def _unmakeable(directory: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{directory} can't be made: {error.strerror}; choose another with --output-dir"
    )


def _where_runs_are(directory: Path, error: OSError) -> str:
    """Name some runs in a directory that is none itself."""
    found = directory.glob(f"*/{MANIFEST}") if isinstance(error, FileNotFoundError) else ()
    names = sorted((str(each.parent) for each in found), reverse=True)[:_MOST_NAMED]
    if names:
        return f"it holds runs, such as {', '.join(names)}: see `dynamometer ls runs {directory}`"
    return "`dynamometer ls runs` shows which there are"


_MOST_NAMED = 3
"""Runs, of which a message tells."""


def read_manifest(directory: Path) -> Manifest:
    """Read what a run was going to do, with the time when it was made as one of UTC.

    Raises:
        StoreError: there is none, it is damaged, or of another format.
    """
    path, stored = directory / MANIFEST, b""
    try:
        stored = file_bytes(path)
        decoded = msgspec.json.decode(stored.decode())
        manifest = msgspec.convert(upgraded_manifest(decoded), Manifest)
    except OSError as error:
        why = f"{MANIFEST}: {error.strerror}"
        msg = f"{directory} is not a run directory: {why}; {_where_runs_are(directory, error)}"
        raise StoreError(msg) from error
    except BAD_JSON as error:
        _refuse_later_format(path, stored)
        msg = f"{path} is damaged or not of format {SCHEMA_VERSION}: {error}; {_WITHOUT_MANIFEST}"
        raise BlockedError(msg) from error
    _check_format(path, manifest.schema)
    created = utc_time(manifest.created_at)
    no_time = f"it says that it was made at {manifest.created_at!r}, which is no time"
    fault = fault_of(manifest.plan) or (no_time if created is None else None)
    if fault:
        msg = f"{path} is damaged: {fault}; {_WITHOUT_MANIFEST}"
        raise BlockedError(msg)
    if created and not manifest.created_at.endswith("+00:00"):  # runs are sorted by it
        return msgspec.structs.replace(manifest, created_at=created.isoformat())
    return manifest


_WITHOUT_MANIFEST = f"nothing else tells what {EVENTS} holds: put a copy of it back, or run anew"


def read_records(directory: Path) -> list[Record]:
    """Read the complete records of a run, in the order they were made.

    Lines that are no records of this run are left out: `read_run` has them.

    Raises:
        StoreError: a complete line is damaged; names the line.
    """
    return read_run(directory).records


def read_run(directory: Path) -> RunRecords:
    """Read the complete records of a run, and say which lines are none of its.

    Raises:
        StoreError: a complete line is damaged; names the line.
    """
    path = directory / EVENTS
    try:
        *lines, _ = file_bytes(path).split(b"\n")
    except OSError as error:
        msg = f"{directory} is not a run directory: {EVENTS}: {error.strerror}"
        raise StoreError(msg) from error
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            record = _record_of(line)
        except BAD_JSON as error:
            _refuse_later_format(path, line, number)
            raise _damaged(path, number, str(error)) from error
        _check_format(path, record.schema, number)
        fault = fault_of_record(record)
        if fault:
            raise _damaged(path, number, fault)
        found.append(record)
    return belonging(read_manifest(directory), found)


def _damaged(path: Path, number: int, why: str) -> BlockedError:
    return BlockedError(
        f"{path}:{number} is damaged or not of format {SCHEMA_VERSION}: {why}. The other"
        " lines can be read once this one is deleted"
    )


def _record_of(line: bytes) -> Record:
    """Read a record, bringing it up to the present format where it is of an earlier one."""
    text = line.decode()  # what is kept as JSON in `found` isn't looked at until it is read
    try:
        record = msgspec.json.decode(text, type=Record)
    except msgspec.ValidationError:
        return _upgraded(line)
    if record.schema < SCHEMA_VERSION:
        return _upgraded(line)
    # What is decoded as it stands would keep the whole line alive.
    return msgspec.structs.replace(record, found=record.found.copy())


def _upgraded(line: bytes) -> Record:
    upgraded = upgraded_record(msgspec.json.decode(line))
    return msgspec.json.decode(msgspec.json.encode(upgraded), type=Record)


class _OfFormat(msgspec.Struct):
    """What manifests and records of every format have."""

    schema: int


def _refuse_later_format(path: Path, stored: bytes, number: int | None = None) -> None:
    """Refuse what can't be decoded, and says of itself that it is of a later format."""
    with suppress(*BAD_JSON):
        schema = msgspec.json.decode(stored, type=_OfFormat).schema
        _check_format(path, max(schema, SCHEMA_VERSION), number)


def _check_format(path: Path, schema: int, number: int | None = None) -> None:
    if schema != SCHEMA_VERSION:
        where = path if number is None else f"{path}:{number}"
        msg = (
            f"{where} is of format {schema}; this version reads format {SCHEMA_VERSION}: use the"
            " version that made it"
        )
        raise FormatError(msg)
