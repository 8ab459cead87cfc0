"""Files that are written whole or not at all."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def replacing(path: Path, beside: Path | None = None) -> Iterator[Path]:
    """Give the name of a file to write, which then takes the place of what is at a path.

    A reader finds the old or the new one, and a full disk leaves the old. A link stays one. A pipe
    or a device holds nothing that could be lost, and is written itself.

    Args:
        path: of the file.
        beside: what is written first, on the same file system; by default the path with `.part`
            at its end, so that two writers of one file must each name their own.

    Raises:
        OSError: it can't take its place, or whatever else the context raises; nothing is left of
            it then.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    file = path.resolve()
    unfinished = file.with_name(f"{file.name}.part") if beside is None else beside
    try:
        yield unfinished
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all, in UTF-8; folders on the way to it are made.

    Raises:
        OSError: it can't be written.
    """
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
