from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
import torch
from captured import ORIGIN, Net, net_inputs
from torch import nn

from dynamometer.common.measuring.arm_backends import load_backend
from dynamometer.dynamo.ensemble.lookup import Lookup
from dynamometer.dynamo.ensemble.setting import setting_of
from dynamometer.dynamo.graphs.inputs import draw
from dynamometer.dynamo.graphs.key import graph_key
from dynamometer.dynamo.graphs.recorder import recorder
from dynamometer.dynamo.graphs.saved import load
from dynamometer.results.store.decisions import Decisions
from dynamometer.results.store.graphs.corpus import Corpus
from dynamometer.results.values.cases import Mode
from dynamometer.results.values.choices import Subject, Tuning
from dynamometer.results.values.decisions import Decision
from dynamometer.results.values.graphs import Part

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """An empty corpus."""
    torch.compiler.reset()
    return Corpus.made(tmp_path / "corpus")


TRAINING = msgspec.structs.replace(ORIGIN, mode=Mode.TRAINING)


def test_a_graph_is_recorded_once_and_computes_what_it_did(corpus: Corpus) -> None:
    """Two models of one structure share a file; results are eager's."""
    for _ in range(2):
        net, inputs = Net().eval(), net_inputs()
        torch.compiler.reset()
        recording = recorder(corpus, ORIGIN)
        compiled = torch.compile(net, backend=recording.compiler)
        with torch.no_grad():
            torch.testing.assert_close(compiled(*inputs), net(*inputs))
            compiled(*inputs)
        (graph,) = recording.model.graphs
        assert (graph.calls, graph.part, graph.reason) == (2, Part.INFERENCE, None)
        assert corpus.keys() == [graph.key]


def test_a_damaged_file_is_recorded_again(corpus: Corpus) -> None:
    """Whole ones stay as they are."""
    path, written = None, []
    for damage in (None, b"no graph", None):
        torch.compiler.reset()
        recording = recorder(corpus, ORIGIN)
        if path is not None and damage:
            path.write_bytes(damage)
        with torch.no_grad():
            torch.compile(lambda x: x.sin(), backend=recording.compiler)(torch.ones(3))
        path = corpus.path(recording.model.graphs[0].key)
        load(path)
        written.append(path.stat().st_ino)
    assert written[0] != written[1] == written[2]


def test_in_training_forward_and_backward_are_recorded_apart(corpus: Corpus) -> None:
    """Both can be loaded and run, have their keys, and gradients are eager's."""
    net, inputs = Net(), net_inputs()
    net(*inputs).sum().backward()
    wanted = [parameter.grad for parameter in net.parameters()]
    net.zero_grad()
    net.norm.reset_running_stats()
    recording = recorder(corpus, TRAINING)
    torch.compile(net, backend=recording.compiler)(*inputs).sum().backward()
    for parameter, gradient in zip(net.parameters(), wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    graphs = recording.model.graphs
    assert [each.part for each in graphs] == [Part.FORWARD, Part.BACKWARD]
    for each in graphs:
        graph, description = load(corpus.path(each.key))
        given = draw(description.inputs, 3)
        assert graph_key(graph, given) == each.key
        assert description.origin.part is each.part
        with torch.no_grad():
            graph(*given)


def test_a_graph_that_no_file_can_hold_has_a_key_and_a_reason(corpus: Corpus) -> None:
    """It is run all the same, and others are saved."""
    recording = recorder(corpus, ORIGIN)
    sparse = torch.ones(3, 3).to_sparse()
    compiled = torch.compile(lambda x: x.sin() + 1, backend=recording.compiler)
    with torch.no_grad():
        compiled(torch.ones(3))
        recording.compiler(*_graph_of_sparse(sparse))(sparse)
    saved, refused = recording.model.graphs
    assert saved.reason is None
    assert refused.reason is not None
    assert "no plain tensor" in refused.reason
    assert len(refused.key) == 64
    assert corpus.keys() == [saved.key]


def test_an_input_without_values_is_a_reason_and_no_end(corpus: Corpus) -> None:
    """Tensors on device meta are run, and left out."""
    recording = recorder(corpus, ORIGIN)
    with torch.no_grad():
        torch.compile(torch.sin, backend=recording.compiler)(torch.ones(3, device="meta"))
    (refused,) = recording.model.graphs
    assert "device meta" in (refused.reason or "")
    assert corpus.keys() == []


def _graph_of_sparse(sparse: torch.Tensor) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    graph = torch.fx.Graph()
    graph.output(graph.call_function(torch.neg, (graph.placeholder("x"),)))
    return torch.fx.GraphModule({}, graph), [sparse]


class Breaks(nn.Module):
    """A model whose layer is behind a graph break."""

    def __init__(self) -> None:
        """Draw weights."""
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute both."""
        torch._dynamo.graph_break()
        return self.linear(x.sin())


@torch.no_grad()
def test_what_is_within_autocast_is_not_recorded(corpus: Corpus) -> None:
    """Its key is that of the same graph in float32; no decision on that is followed either."""
    model, x = Breaks(), torch.ones(2, 3)

    def cast(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x)

    recording = recorder(corpus, ORIGIN)
    assert torch.compile(cast, backend=recording.compiler)(x).dtype is torch.bfloat16
    (within,) = [each for each in recording.model.graphs if each.reason]
    assert "within torch.autocast" in (within.reason or "")
    torch.compiler.reset()
    plain = recorder(corpus, ORIGIN)
    torch.compile(model, backend=plain.compiler)(x)
    assert [(each.key, each.reason) for each in plain.model.graphs] == [(within.key, None)]
    decisions = Decisions(corpus.folder / "decisions.sqlite")
    decisions.put(
        Decision(subject=Subject.GRAPH, key=within.key, label="made up", arm="aot_eager",
                 setting=setting_of("cpu"), tuning_s=1.0, decided_at="2026-01-01", run="r")
    )  # fmt: skip
    for function, is_decided in ((model, True), (cast, False)):
        torch.compiler.reset()
        lookup = Lookup(Tuning(decisions=str(decisions.path)), "cpu", load_backend)
        torch.compile(function, backend=lookup.compiler(trains=False))(x)
        (choice,) = [each for each in lookup.choices if each.key == within.key]
        assert choice.is_decided is is_decided


def test_inputs_are_described_before_they_are_changed(corpus: Corpus) -> None:
    """What a graph writes to is as it was given."""
    recording = recorder(corpus, ORIGIN)
    with torch.no_grad():
        torch.compile(lambda x: x.fill_(9.0), backend=recording.compiler)(torch.ones(3))
    (description,) = corpus.graphs()
    (drawn,) = draw(description.inputs, 0)
    assert drawn.tolist() == [1.0, 1.0, 1.0]
