"""Where temporary files go that nobody removes."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEMPORARY = "temporary"
"""Of a case's graph caches, the folder for what is no graph. `backends.exported` uses it, too."""


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
