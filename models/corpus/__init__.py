"""The suite of a corpus: captured graphs, each run as a model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.suite_source import SuiteSource
from dynamometer.common.interfaces.workload_options import (
    CHANNELS_LAST,
    DTYPE,
    SCALE,
    TARGET,
    TRAINING,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.suite import Suite

_AS_CAPTURED = (SCALE, TRAINING, DTYPE, CHANNELS_LAST)


class CorpusSource(SuiteSource):
    """The graphs of a folder that `dynamometer corpus record` wrote, or of one file of it."""

    def target(self, text: str) -> str | None:
        """Return a corpus' folder, or the file of a graph, from the root."""
        from dynamometer.results.store.graphs.corpus import (  # takes 10 ms: zip files
            SUFFIX,
            is_corpus,
        )

        path = Path(text)
        found = path.suffix == SUFFIX or is_corpus(path)
        return str(path.resolve()) if found else None

    def opening(self, request: Request) -> dict[str, str]:
        """Name the target.

        Raises:
            UsageError: graphs were to be run otherwise than they were captured.
        """
        typed = request.with_defaults((TARGET,))[TARGET]
        target = self.target(typed or "")
        if target is None:
            return {}
        for option in _AS_CAPTURED:
            if request.is_set(option):
                flag = " ".join(request.argv((option,)))
                msg = f"graphs of a corpus are run as they were captured: leave out {flag}"
                raise UsageError(msg)
        return {"target": target}

    def measured_files(self, opening: Mapping[str, str]) -> tuple[Path, ...]:
        """Return the files of the graphs."""
        from dynamometer.results.store.graphs.corpus import Corpus, is_corpus

        path = Path(opening["target"])
        return tuple(map(Corpus(path).path, Corpus(path).keys())) if is_corpus(path) else (path,)

    def open(self, opening: Mapping[str, str]) -> Suite:
        """Look for the graphs.

        Args:
            opening: `target`: the folder, or a file.

        Raises:
            ValueError: there are none; says what to do.
        """
        from dynamometer.models.suites.captured import opened

        return opened(opening.get("target", ""))


SUITE = CorpusSource()
