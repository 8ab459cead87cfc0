"""A corpus some files of which say where their modules are imported from."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.models.parity.corpus import Corpus, files_of
from dynamometer.models.parity.roots import provided_by, roots_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.results.values.cases import ModelSpec


class RootedCorpus(Corpus):
    """A corpus as any; what one of its files has a root for isn't imported before it is known."""

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import what nearly every file imports, but for what the files' own roots hold."""
        if specs:
            from dynamometer.models.parity.importing import preload

            preload(self._provided())

    def _provided(self) -> set[str]:
        roots: set[Path] = set()
        for file in files_of(Path(self.target)):
            with suppress(OSError):  # whoever loads a case of it says so
                roots.update(roots_of(file))
        return {name for root in roots for name in provided_by(root)}
