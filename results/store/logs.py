"""Logs of cases: plain while they are short, compressed when they are long."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MOST_BYTES = 16 * 2**20
"""Of what a compressed log may hold: a run that came from elsewhere may say anything."""
_GZIP = 16 + zlib.MAX_WBITS


def compressed(path: Path) -> Path:
    """Return where a log is once it is long."""
    return path.with_name(f"{path.name}.gz")


def read(path: Path) -> bytes:
    """Return a log: what was compressed, then what was written since.

    Raises:
        OSError: there is neither, or it can't be read.
    """
    long = compressed(path)
    if not long.exists():
        return path.read_bytes()
    try:
        found = zlib.decompressobj(_GZIP).decompress(long.read_bytes(), _MOST_BYTES)
    except zlib.error as error:
        raise OSError(0, f"it is no gzip file: {error}", str(long)) from error
    return found + path.read_bytes() if path.exists() else found
