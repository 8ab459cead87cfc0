"""The compiler's graph caches of the cases that are being run, each in a directory of its own."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamometer.results.values.cases import Case


class GraphCaches:
    """Directories below one root, which are empty at first and kept for later replicates."""

    def __init__(self, root: Path) -> None:
        """Remove what is there, as a run that was killed leaves it."""
        self._root = root
        self._directories: dict[str, Path] = {}
        shutil.rmtree(root, ignore_errors=True)

    def has(self, case: Case) -> bool:
        """Return whether a case has caches already."""
        return _key(case) in self._directories

    def of(self, case: Case) -> Path:
        """Return the directory of a case, made when first asked for."""
        key = _key(case)
        if key not in self._directories:
            self._root.mkdir(exist_ok=True)
            self._directories[key] = Path(tempfile.mkdtemp(dir=self._root))
        return self._directories[key]

    def forget(self, case: Case) -> None:
        """Remove those of a case."""
        path = self._directories.pop(_key(case), None)
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)

    def clear(self) -> None:
        """Remove all."""
        shutil.rmtree(self._root, ignore_errors=True)
        self._directories.clear()


def _key(case: Case) -> str:
    """Return the same for later replicates, which may have fewer arms."""
    return case.id_without_arms
