"""What is measured, as far as it is in files of the user's: whether it is still what it was."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.bounds import encodable
from dynamometer.results.store.reading import opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def hashes_of(files: Iterable[Path]) -> dict[str, str]:
    """Return a hash of what each file holds, by its path; of one that can't be read, nothing.

    A folder stands for the Python files in it, at whatever depth. What is not UTF-8 in a path is
    escaped, as a manifest can't hold it.
    """
    found = ((encodable(str(path)), _hash(path)) for path in files)
    return {path: known for path, known in found if known}


def changed_files(sources: Mapping[str, str], measured: Iterable[Path]) -> list[str]:
    """Name the files that don't hold any more what they held; none where nothing is known.

    Args:
        sources: what was known of them.
        measured: files that would be measured now. New are modules alone, as another one may be
            imported in their place; a new graph of a corpus is none of the run's.
    """
    if not sources:
        return []
    now = hashes_of({*map(Path, sources), *measured})
    new = [path for path in sorted(now.keys() - sources) if path.endswith(_MODULE)]
    return [
        *(f"{path} {'has changed' if path in now else 'is gone'}"
          for path, known in sources.items() if now.get(path) != known),
        # What is in a folder that was known as a whole is no news.
        *(f"{path} is new" for path in new if not sources.keys() & {*map(str, Path(path).parents)}),
    ]  # fmt: skip


def is_target_gone(sources: Mapping[str, str], suite_options: Mapping[str, str]) -> bool:
    """Return whether a file is not there any more that holds the models themselves.

    Args:
        sources: the files that were known.
        suite_options: what the suite was opened with, the file or folder among it.
    """
    named = {each.partition("::")[0] for each in suite_options.values()}
    return any(not Path(each).exists() for each in named & sources.keys())


_MODULE = ".py"


def _hash(path: Path) -> str | None:
    try:
        if path.is_dir():
            return _hash_of_folder(path)
        with opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _hash_of_folder(folder: Path) -> str:
    found = {str(each.relative_to(folder)): _hash(each) for each in folder.rglob(f"*{_MODULE}")}
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()
