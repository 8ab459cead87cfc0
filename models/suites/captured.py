"""Captured graphs as models: those of a corpus, or of one file."""

from __future__ import annotations

import importlib
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.corpus import Corpus, is_corpus, read_description
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.cases import ModelSpec
from dynamometer.results.values.graphs import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.graphs import Origin, SavedGraph

NAME = "corpus"
_SHOWN = 12
"""Digits of a key that are in a name."""


@dataclass(frozen=True)
class CapturedGraphs:
    """Graphs by the names they are selected by.

    Attributes:
        files: of the graphs.
        origins: names of the models that have each graph, by its key.
    """

    files: tuple[Path, ...]
    origins: Mapping[str, tuple[str, ...]]

    def specs(self) -> list[ModelSpec]:
        """Describe the graphs, by their files alone."""
        return sorted(map(self._spec, self.files), key=lambda spec: spec.name)

    def preload(self, specs: Iterable[ModelSpec]) -> None:
        """Import what reads graphs."""
        if specs:
            with suppress(ImportError):
                importlib.import_module("dynamometer.models.suites.replay")

    def load(self, spec: ModelSpec, case: Case) -> LoadedModel:
        """Build a graph, and draw its inputs from the seed of the case.

        Raises:
            NotImplementedError: it was captured on another type of device.
        """
        from dynamometer.models.suites.replay import load_graph

        path = next(each for each in self.files if self._spec(each) == spec)
        return load_graph(path, case.device)

    def _spec(self, path: Path) -> ModelSpec:
        try:
            found = read_description(path)
        except StoreError as error:
            raise ValueError(str(error)) from error
        first = name_of(found.origin)
        others = [each for each in self.origins.get(found.key, ()) if each != first]
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
        msg = "the suite corpus is run by naming a corpus' folder: dynamometer run FOLDER"
        raise ValueError(msg)
    path = Path(target)
    if not is_corpus(path):
        graphs = CapturedGraphs((path,), {})
        graphs.specs()
        return graphs
    corpus = Corpus(path)
    files = tuple(map(corpus.path, corpus.keys()))
    if not files:
        msg = f"{path} holds no graphs yet: dynamometer corpus record SUITE -o {path}"
        raise ValueError(msg)
    try:
        return CapturedGraphs(files, origins_of(corpus))
    except StoreError as error:
        raise ValueError(str(error)) from error


def origins_of(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Return the names of the models that have each graph of a corpus, by its key."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for model in corpus.models():
        for graph in model.graphs:
            found[graph.key][name_of(model.origin, graph.part)] = None
    return {key: tuple(names) for key, names in found.items()}


def name_of(origin: Origin, part: Part | None = None) -> str:
    """Name a model, and the part of it that a graph is of, as one word."""
    which = origin.part if part is None else part
    words = (origin.suite, origin.model, *([] if which is Part.INFERENCE else [which]))
    return ".".join(word.replace("/", "--") for word in words)


def _name(origin: str, graph: SavedGraph) -> str:
    return f"{origin}.{graph.key[:_SHOWN]}"
