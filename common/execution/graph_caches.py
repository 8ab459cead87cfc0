"""The compiler's graph caches of the cases that are being run, each in a directory of its own.

Inductor's compilers can't be given any path: where the root's would split their command lines,
workers get at it by a link.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.machine.temporary import link_without_spaces, needs_quoting

if TYPE_CHECKING:
    from dynamometer.results.values.cases import Case


class GraphCaches:
    """Directories below one root, which are empty at first and kept for later replicates."""

    def __init__(self, root: Path) -> None:
        """Remove what is there, as a run that was killed leaves it."""
        self._root = root
        self._link: Path | None = None
        self._directories: dict[str, Path] = {}
        shutil.rmtree(root, ignore_errors=True)

    def has(self, case: Case) -> bool:
        """Return whether a case has caches already."""
        return _key(case) in self._directories

    def of(self, case: Case) -> Path:
        """Return the directory of a case, made when first asked for.

        Raises:
            UsageError: compilers couldn't use it, and no link to it can be made.
        """
        key = _key(case)
        if key not in self._directories:
            self._root.mkdir(exist_ok=True)
            if self._link is None and needs_quoting(str(self._root)):
                self._link = link_without_spaces(self._root)
            made = Path(tempfile.mkdtemp(dir=self._root))
            self._directories[key] = (self._link or self._root) / made.name
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
        if self._link is not None:
            self._link.unlink(missing_ok=True)
            self._link = None


def _key(case: Case) -> str:
    """Return the same for later replicates, which may have fewer arms."""
    return case.id_without_arms
