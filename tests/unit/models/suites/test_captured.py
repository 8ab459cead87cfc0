from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import graph_files
import msgspec
import pytest

from dynamometer.models.suites.captured import opened
from dynamometer.results.store.graphs.corpus import Corpus
from dynamometer.results.values.graphs import (
    Origin,
    Part,
    RecordedGraph,
    RecordedModel,
    ScalarInput,
)

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = (ScalarInput(value=3),)
KEY = graph_files.key(1, INPUTS)


def corpus_of(folder: Path, model: str) -> Corpus:
    """Make a corpus of one graph, which is called with a number."""
    corpus = Corpus.made(folder)
    graph_files.write_graph(corpus.path(KEY), 1, INPUTS, origin=Origin(suite="mine", model=model))
    return corpus


def test_a_graph_is_found_though_other_models_have_it_by_now(tmp_path: Path) -> None:
    """A run that is resumed knows it as it was; one that is gone is said to be."""
    corpus = corpus_of(tmp_path / "corpus", "first")
    (spec,) = opened(str(corpus.folder)).specs()
    graph = RecordedGraph(key=KEY, part=Part.INFERENCE, op_count=0, calls=1)
    corpus.add(RecordedModel(origin=Origin(suite="mine", model="second"), graphs=(graph,)))
    suite = opened(str(corpus.folder))
    assert suite.specs() != [spec]
    assert suite.load(spec, factories.case()).args == (3,)
    with pytest.raises(LookupError, match=r"no graph mine\.third"):
        suite.load(msgspec.structs.replace(spec, name="mine.third"), factories.case())


def test_a_name_is_one_plain_word(tmp_path: Path) -> None:
    """It is typed, printed, and put into names of files, whoever chose it."""
    corpus = corpus_of(tmp_path / "corpus", "a/b c\x1b]0;hit\x07\n../d")
    (spec,) = opened(str(corpus.folder)).specs()
    assert spec.name == f"mine.a--b-c-0-hit-..--d.{KEY[:12]}"
