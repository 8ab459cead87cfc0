"""Captured graphs as models: those of a corpus, or of one file."""

from __future__ import annotations

import importlib
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.graphs.corpus import Corpus, is_corpus, read_description
from dynamometer.results.values.cases import ModelSpec
from dynamometer.results.values.graphs import Part, short_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.graphs import Origin, SavedGraph

NAME = "corpus"


@dataclass(frozen=True)
class CapturedGraphs:
    """Graphs by the names they are selected by.

    Attributes:
        files: of the graphs.
        origins: models that have each graph, by its key.
    """

    files: tuple[Path, ...]
    origins: Mapping[str, tuple[Origin, ...]]

    def specs(self) -> list[ModelSpec]:
        """Describe the graphs, by their files alone."""
        return sorted(map(self._spec, self.files), key=lambda spec: spec.name)

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import what reads graphs."""
        if specs:
            with suppress(Exception, SystemExit):  # its models say so when they are built
                importlib.import_module("dynamometer.models.suites.replay")

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Build a graph, and draw its inputs from the seed of the case.

        Raises:
            NotImplementedError: it was captured on another type of device.
            LookupError: the corpus has it no longer.
        """
        from dynamometer.models.suites.replay import load_graph

        # By name alone: what else is said of a graph changes as models are recorded that have it.
        path = next((each for each in self.files if self._spec(each).name == spec.name), None)
        if path is None:
            msg = f"the corpus holds no graph {spec.name} any more"
            raise LookupError(msg)
        return load_graph(path, case.device)

    def _spec(self, path: Path) -> ModelSpec:
        try:
            found = read_description(path)
        except StoreError as error:
            raise ValueError(str(error)) from error
        first = name_of(found.origin)
        every = dict.fromkeys(map(name_of, self.origins.get(found.key, ())))
        others = [each for each in every if each != first]
        return ModelSpec(
            suite=NAME,
            name=_name(first, found),
            aliases=tuple(_name(each, found) for each in others),
            task="captured graph",
            origin=", ".join((first, *others)),
            build="captured:CapturedGraphs",
        )


def opened(target: str) -> CapturedGraphs:
    """Open a corpus, or the file of a graph.

    Raises:
        ValueError: there is none, or it is damaged; says what to do.
    """
    if not target:
        msg = (
            "the suite corpus is run by naming a corpus' folder, and ./corpus is none: dynamometer"
            " run FOLDER; `dynamometer corpus record SUITE -o FOLDER` makes one"
        )
        raise ValueError(msg)
    path = Path(target)
    if not is_corpus(path):
        graphs = CapturedGraphs((path,), {})
        graphs.specs()
        return graphs
    try:
        corpus = Corpus.opened(path)
        files = tuple(map(corpus.path, corpus.keys()))
        if not files:
            msg = f"{path} holds no graphs yet: dynamometer corpus record SUITE -o {path}"
            raise ValueError(msg)
        return CapturedGraphs(files, corpus.origins())
    except StoreError as error:
        raise ValueError(str(error)) from error


def name_of(origin: Origin) -> str:
    """Name a model, and the part of it that a graph is of, as one word."""
    part = [] if origin.part is Part.INFERENCE else [origin.part]
    words = (origin.suite, origin.model, *part)
    return re.sub(r"[^\w.+-]+", "-", ".".join(word.replace("/", "--") for word in words))


def _name(origin: str, graph: SavedGraph) -> str:
    return f"{origin}.{short_key(graph.key)}"
