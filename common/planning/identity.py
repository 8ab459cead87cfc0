"""What is measured, as far as it is in files of the user's: whether it is still what it was."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import file_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def sources_of(files: Iterable[Path]) -> dict[str, str]:
    """Return a hash of what each file holds, by its path; of one that can't be read, nothing."""
    found = {str(path): _hash(path) for path in files}
    return {path: known for path, known in found.items() if known}


def changes(sources: Mapping[str, str]) -> list[str]:
    """Name the files that don't hold any more what they held; none where nothing is known."""
    return [
        f"{path} {'has changed' if now else 'is gone'}"
        for path, known in sources.items()
        if (now := _hash(Path(path))) != known
    ]


def _hash(path: Path) -> str | None:
    try:
        return hashlib.sha256(file_bytes(path)).hexdigest()
    except OSError:
        return None
