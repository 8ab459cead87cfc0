"""What workers write: the beginning and the end of each case's, compressed, and not without end."""

from __future__ import annotations

import gzip
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from dynamometer.results.store import logs
from dynamometer.results.store.atomic_file import replacing
from dynamometer.results.store.bounds import MOST_NAME_BYTES, name_apart

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.values.cases import Case

_CASE_LIMIT_BYTES = 2 * 2**20
_RUN_LIMIT_BYTES = 256 * 2**20
_PLAIN_BYTES = 2**16
"""A log of so many bytes stays as it is: most are read by nobody, or with `cat`."""
_ENDS_BYTES = 2**12
"""What is kept of a log's beginning and end once a run's have reached their limit."""


class Logs:
    """The folder of a run's logs; several threads may write, of one case one at a time.

    Attributes:
        of_servers: where fork servers write.
    """

    def __init__(self, folder: Path, limit_bytes: int = _RUN_LIMIT_BYTES) -> None:
        """Make the folder, and count what is there.

        Args:
            folder: of the logs.
            limit_bytes: of all cases together.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.of_servers = folder / "fork-server.log"
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._sizes = {each.name: each.lstat().st_size for each in folder.iterdir()}
        self._bytes = sum(self._sizes.values())
        self._lock = threading.Lock()

    def path(self, case: Case) -> Path:
        """Return where workers of a case write, in a folder that is there."""
        self._folder.mkdir(exist_ok=True)  # whatever a model may have deleted
        name = case.label.replace("/", "_").replace(" ", "")
        is_long = len(name.encode()) > MOST_NAME_BYTES
        # A plain name is that of the case that is called so.
        if is_long or name == self.of_servers.stem or name != case.label:
            name = name_apart(name, case.id_without_arms)
        return self._folder / f"{name}.log"

    def settle(self, case: Case) -> bool:
        """Cut and compress the log of a case whose worker has ended, or remove an empty one.

        Returns:
            Whether there is a log.
        """
        path = self.path(case)
        long = logs.compressed(path)
        with suppress(OSError):
            path.chmod(0o600)  # whatever mode a model may have given its own output
        if not _size(path):
            path.unlink(missing_ok=True)
            return long.exists()
        text = _ends(path, self._limit(path, long))
        if len(text) > _PLAIN_BYTES or long.exists():
            _replace(long, gzip.compress(text, mtime=0))
            path.unlink()
        elif len(text) < _size(path):
            _replace(path, text)
        self._count(path, long)
        return True

    def _count(self, *own: Path) -> None:
        """Take note of what a case keeps now."""
        with self._lock:
            for each in own:
                size = _size(each)
                self._bytes += size - self._sizes.get(each.name, 0)
                self._sizes[each.name] = size

    def _limit(self, *own: Path) -> int:
        """Return the most bytes that a case may keep, beside the other cases."""
        with self._lock:
            others = self._bytes - sum(self._sizes.get(each.name, 0) for each in own)
        return _CASE_LIMIT_BYTES if others < self._limit_bytes else _ENDS_BYTES


def _size(path: Path) -> int:
    """Return a file's bytes; none if there is no such file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _ends(path: Path, limit_bytes: int) -> bytes:
    """Return a log, of a long one its beginning and end: what is between may be without end."""
    half = limit_bytes // 2
    if _size(path) <= limit_bytes:
        text = logs.read(path)
        return text if len(text) <= limit_bytes else text[:half] + logs.CUT + text[-half:]
    with path.open("rb") as file:
        begin = file.read(half)
        file.seek(-half, os.SEEK_END)
        end = file.read(half)
    if logs.compressed(path).exists():
        begin = (logs.read_compressed(path) + begin)[:half]
    return begin + logs.CUT + end


def _replace(path: Path, content: bytes) -> None:
    with replacing(path) as unfinished:
        unfinished.write_bytes(content)
