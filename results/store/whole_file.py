"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the name of a file to write, which then takes the place of what is at a path.

    A reader finds the old or the new one, and a full disk leaves the old. Of two writers the last
    to end has its file there. A link stays a link, and a file keeps its mode. What can't be
    replaced is written itself: a pipe, whatever `/dev` and `/proc` have, and a file in a folder
    where nothing can be made.

    Raises:
        OSError: it can't take its place, or whatever else the context raises; nothing is left of
            it then.
    """
    file = Path(os.path.realpath(path))  # `resolve` raises no OSError of links that go in a circle
    if _is_written_itself(path, file):
        yield path
        return
    unfinished = file.with_name(f".{secrets.token_hex(8)}.part")
    try:
        yield unfinished
        if file.exists():
            shutil.copymode(file, unfinished)
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _is_written_itself(path: Path, file: Path) -> bool:
    """Return whether a path, which leads to a file, holds nothing to lose or can't be replaced."""
    if Path(os.path.abspath(path)).parts[1:2] in {("dev",), ("proc",)}:  # noqa: PTH100  keeps links
        return True
    return path.exists() and (not path.is_file() or not os.access(file.parent, os.W_OK))


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all, in UTF-8; folders on the way to it are made.

    Raises:
        OSError: it can't be written.
    """
    if not path.parent.exists():  # what is there and no folder, opening it says better
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
