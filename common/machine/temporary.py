"""Where temporary files go that nobody removes, and by which paths compilers get at theirs."""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPORARY = "temporary"
"""Of a case's graph caches, the folder for what is no graph. `backends.exported` uses it, too."""
_USUAL = ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108  where `tempfile` looks as well


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Have Python's `tempfile` use a folder, which is made; whoever owns it removes it.

    torch_geometric writes the code of its layers to files, and leaves them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def needs_quoting(path: str) -> bool:
    """Return whether a command line that holds a path as it is would be split within it.

    Inductor writes its compilers' command lines so. Source: torch._inductor.cpp_builder.
    """
    try:
        return shlex.split(path) != [path]
    except ValueError:  # a quote is opened, and never closed
        return True


def can_hold_caches(path: str) -> bool:
    """Return whether compilers can have their caches in a folder, which is made."""
    if needs_quoting(path):
        return False
    with suppress(OSError):
        Path(path).mkdir(parents=True, exist_ok=True)
        return os.access(path, os.W_OK | os.X_OK)
    return False


def folder_without_spaces() -> Path:
    """Return the folder of temporary files, or another one where a command line would be split.

    Raises:
        UsageError: there is none; says what to set.
    """
    usual = tempfile.gettempdir()
    for folder in (usual, *_USUAL):
        if not needs_quoting(folder) and os.access(folder, os.W_OK | os.X_OK):
            return Path(folder)
    msg = (
        f"compilers can't use {usual}, as spaces, quotes or backslashes in a path split their"
        " command lines: set TMPDIR to a folder without them"
    )
    raise UsageError(msg)


def link_without_spaces(folder: Path) -> Path:
    """Return a link to a folder, by which compilers can get at it; whoever asks for it removes it.

    It has the same name each time: one that a killed process left is used again.

    Raises:
        UsageError: it can't be made; says why.
    """
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    link = folder_without_spaces() / f"dynamometer-{os.getuid()}-{digest}"
    try:
        link.symlink_to(folder)
    except FileExistsError as error:
        if not link.is_symlink() or link.readlink() != folder or link.lstat().st_uid != os.getuid():
            msg = f"{link} is in the way of a link to {folder}: remove it, or set TMPDIR"
            raise UsageError(msg) from error
    except OSError as error:
        msg = f"no link to {folder} can be made, which compilers need: {error}; set TMPDIR"
        raise UsageError(msg) from error
    return link
