"""Logs of cases: plain while they are short, compressed when they are long."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MOST_BYTES = 16 * 2**20
"""Of what a compressed log may hold: a run that came from elsewhere may say anything."""
_TAIL_BYTES = 8_000
_GZIP = 16 + zlib.MAX_WBITS


CUT = b"\n[... cut ...]\n"
"""What is written in place of the middle of a log."""

_MOST_GROWING_BYTES = 64 * 2**20
"""Of a log that is being written. Foreign code is refused files of 256 MB."""
_END_BYTES = 2**20


def bound(path: Path) -> None:
    """Take the middle out of a log that would fill the disk; its writer adds to the end."""
    with suppress(OSError):
        if path.lstat().st_size <= _MOST_GROWING_BYTES:
            return
        # A model may have put a link to another file in its place.
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
        with open(descriptor, "r+b", buffering=0) as file:  # noqa: PTH123  it is open
            file.seek(-_END_BYTES, os.SEEK_END)
            end = file.read(_END_BYTES)
            file.truncate(_END_BYTES)
            file.write(CUT + end)


def compressed(path: Path) -> Path:
    """Return where a log is once it is long."""
    return path.with_name(f"{path.name}.gz")


def read(path: Path) -> bytes:
    """Return a log: what was compressed, then what was written since.

    Raises:
        OSError: there is neither, or it can't be read.
    """
    if not compressed(path).exists():
        return path.read_bytes()
    found = read_compressed(path)
    return found + path.read_bytes() if path.exists() else found


def read_compressed(path: Path) -> bytes:
    """Return the part of a log that was compressed.

    Raises:
        OSError: there is none, or it can't be read.
    """
    long = compressed(path)
    try:
        return zlib.decompressobj(_GZIP).decompress(long.read_bytes(), _MOST_BYTES)
    except zlib.error as error:
        raise OSError(0, f"it is no gzip file: {error}", str(long)) from error


def tail(path: Path, begin: int = 0) -> str:
    """Read the end of the part of a log that is not compressed yet; empty if there is none.

    Args:
        path: of the log.
        begin: bytes at its beginning that don't count, unless it was cut since.
    """
    try:
        with path.open("rb") as log:
            size = path.stat().st_size
            log.seek(max(begin if begin <= size else 0, size - _TAIL_BYTES))
            return log.read().decode(errors="replace").strip()
    except OSError:
        return ""


def quoted_end(path: Path) -> str:
    """Quote the end of a log: what its last traceback raises, then the text from there on."""
    _, head, text = tail(path).rpartition("Traceback (most recent call last):\n")
    lines = [line.rstrip() for line in text.splitlines() if line[:1].strip()] if head else []
    raised = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return f"{raised}{raised and '; '}{path} ends with:\n{head}{text}"
