"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STREAMS = {"stdin", "stdout", "stderr", "fd"}
"""What `/dev` has that may be a file, whose name is elsewhere or nowhere."""
_LONGEST_NAME = 200
"""Bytes of a file's name that what is written beside it has in its own, of 255 there may be."""

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{16}\.part", re.DOTALL)
"""Names of files that are being written."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the name of a file to write, which then takes the place of what is at a path.

    A reader finds the old or the new one, and a full disk leaves the old. Of two writers the last
    to end has its file there. A link stays a link, and a file keeps its mode. What can't be
    replaced is written itself: a pipe or device, standard output by any of its names, and a file in
    a folder where nothing can be made.

    Raises:
        OSError: it can't take its place, or whatever else the context raises; nothing is left of
            it then.
    """
    file = Path(os.path.realpath(path))  # `resolve` raises no OSError of links that go in a circle
    if _is_written_itself(path, file):
        yield path
        return
    named = os.fsencode(file.name)[:_LONGEST_NAME].decode(errors="ignore")
    unfinished = file.with_name(f".{named}.{secrets.token_hex(8)}.part")
    try:
        yield unfinished
        if file.exists():
            shutil.copymode(file, unfinished)
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def remove_unfinished(folder: Path) -> None:
    """Remove what is left, in a folder and those below it, of writers that were killed."""
    for path in folder.rglob(".*.part"):
        if _UNFINISHED.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()


def _is_written_itself(path: Path, file: Path) -> bool:
    """Return whether a path, which leads to a file, holds nothing to lose or can't be replaced."""
    names = Path(os.path.abspath(path)).parts  # noqa: PTH100  keeps links
    if names[1:2] == ("proc",) or (names[1:2] == ("dev",) and names[2] in _STREAMS):
        return True
    return path.exists() and (not path.is_file() or not os.access(file.parent, os.W_OK))


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all, in UTF-8; folders on the way to it are made.

    Raises:
        OSError: it can't be written.
    """
    folder = Path(os.path.realpath(path)).parent
    if not folder.exists():  # what is there and no folder, opening it says better
        folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
