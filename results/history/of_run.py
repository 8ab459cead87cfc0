"""A run among earlier ones, by the index that lies beside it. Reads and writes it; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.values.history import INDEX_FILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dynamometer.results.store.index.indexing import Reader
    from dynamometer.results.values.history import History

_WAIT_S = 1.0
"""For another process that is writing: a run that ends must not hang."""


def index_beside(directory: Path) -> Path | None:
    """Return the index of the folder that a run is in; `None` where there is none."""
    path = directory.absolute().parent / INDEX_FILE
    return path if path.is_file() else None


def among_earlier(
    path: Path, directory: Path, read: Reader, complain: Callable[[str], None]
) -> History | None:
    """Put a run into an index, and return what became of all it measured, up to it.

    Other runs are not looked for, so it takes no longer the more there are.

    Args:
        path: of the index.
        directory: of the run.
        read: what makes rows of it.
        complain: is told what went wrong, which costs nothing else: an index is no part of a run.

    Returns:
        `None` where no earlier run has any of it, and where something went wrong.
    """
    try:
        return _among_earlier(path, directory, read)
    except Exception as error:  # noqa: BLE001  whatever it is, there is a page without it
        complain(str(error) or type(error).__name__)
        return None


def _among_earlier(path: Path, directory: Path, read: Reader) -> History | None:
    # These import SQLite, which a Python may lack, and numpy.
    from dynamometer.results.history.of_index import history_until
    from dynamometer.results.store.index.index import Index
    from dynamometer.results.store.index.index_file import IndexFile
    from dynamometer.results.store.index.indexing import put

    with IndexFile(path, wait_s=_WAIT_S, may_be_new=False) as file:
        index = Index(file)
        return history_until(index, put(index, directory, read))
