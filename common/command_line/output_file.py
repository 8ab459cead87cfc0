"""The file that a command writes where it is told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.errors import UsageError
from dynamometer.results.store import atomic_file

if TYPE_CHECKING:
    from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises:
        UsageError: it can't be written.
    """
    try:
        atomic_file.write_text(path, text)
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror or error}; name another file"
        raise UsageError(msg) from error
