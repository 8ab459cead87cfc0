"""Parts of graphs as a corpus, and as an arm."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cut_graphs
import cut_points
import factories
import msgspec
import pytest
import torch
from cut_arm import PLAN, in_parts
from cut_plans import FOLDER, CutGraph, CutPart, CutPoint, PlannedPart, read, write
from torch import nn

from dynamometer.common.measuring.arm_backends import load_backend
from dynamometer.dynamo.graphs.inputs import draw
from dynamometer.dynamo.graphs.key import graph_key
from dynamometer.dynamo.graphs.recorder import recorder
from dynamometer.dynamo.graphs.saved import load
from dynamometer.dynamo.placeholders import is_weight, placeholders
from dynamometer.models.suites.replay import load_graph
from dynamometer.results.store import store
from dynamometer.results.store.decisions import Decisions
from dynamometer.results.store.graphs.corpus import Corpus
from dynamometer.results.values.decisions import Evidence
from dynamometer.results.values.graphs import Origin, TensorInput
from dynamometer.results.values.records import PASSED, Ratio

pytestmark = pytest.mark.filterwarnings("ignore")  # torch warns of itself


class Net(nn.Module):
    """Layers of one size, with what came in added to what comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute, and return something early as well."""
        early = torch.relu(self.layers[0](x))
        for each in self.layers:
            x = torch.relu(each(x)) * scale + x
        return x, early


def recorded(folder: Path, module: nn.Module, *args: Any) -> Corpus:
    """Record the graphs of a module."""
    corpus = Corpus.made(folder)
    torch.compiler.reset()
    compiled: Any = torch.compile(
        module, backend=recorder(corpus, Origin(suite="mine", model="net")).compiler
    )
    with torch.no_grad():
        compiled(*args)
    return corpus


def asked(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    """Call the script."""
    monkeypatch.setattr(sys, "argv", ["cut_graphs.py", *map(str, words)])
    assert cut_graphs.main() == 0


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Record a model."""
    folder = tmp_path_factory.mktemp("recorded") / "corpus"
    return recorded(folder, Net().eval(), torch.randn(32, 64), torch.randn(64))


@pytest.fixture
def parts(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """Cut its graph, of which all operators take as long as each other."""
    clock = SimpleNamespace(perf_counter=itertools.count().__next__)
    monkeypatch.setattr(cut_points, "time", clock)
    asked(monkeypatch, "cut", corpus.folder, tmp_path / "parts", "--least-ms", "0")
    return Corpus(tmp_path / "parts")


def only(parts: Corpus) -> CutGraph:
    """Return the one graph that was cut."""
    (found,) = read(parts.folder / FOLDER)
    return found


def test_parts_are_graphs_of_a_corpus(corpus: Corpus, parts: Corpus) -> None:
    """With keys, weights, and inputs as they are in the graph; equal parts are one."""
    found = only(parts)
    assert found.why_not is None
    assert found.name == "mine/net"
    assert found.points
    assert {each.key for each in found.parts} == set(parts.keys())
    assert [each.why_not for each in found.parts] == [None] * len(found.parts)
    pieces = found.pieces
    assert len(found.parts) == pieces * (pieces + 1) / 2 - 1
    for path in map(parts.path, parts.keys()):
        graph, description = load(path)
        assert graph_key(graph, draw(description.inputs, 0)) == path.stem
        assert description.origin.model.startswith("net-")
        assert any(map(is_weight, placeholders(graph)))
    firsts = [load(parts.path(each.key))[1] for each in found.parts if each.first]
    for each in firsts:  # an activation is no normal noise: what is drawn is as the model has it
        (crossing, *_) = (one for one in each.inputs if isinstance(one, TensorInput)
                          and one.shape == (32, 64))  # fmt: skip
        assert crossing.spread.std is not None
        assert crossing.spread.std > 0


def test_what_was_cut_is_not_cut_again(
    corpus: Corpus,
    parts: Corpus,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever is asked of it."""
    capsys.readouterr()
    asked(monkeypatch, "cut", corpus.folder, parts.folder, "--least-ms", "1000")
    assert capsys.readouterr().out == ""


def test_a_short_graph_is_not_cut(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason says how short that is."""
    asked(monkeypatch, "cut", corpus.folder, tmp_path / "parts", "--least-ms", "1e6")
    found = only(Corpus(tmp_path / "parts"))
    assert found.why_not == "it takes less than 1e+06 ms"
    assert found.parts == found.points == ()


@pytest.mark.parametrize("arms", [("eager", "aot_eager"), ("aot_eager", "eager", "aot_eager")])
def test_the_arm_computes_a_graph_by_its_plan(
    arms: tuple[str, ...], corpus: Corpus, parts: Corpus, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What it computes is what the graph does."""
    graph = only(parts)
    edges = (0, *(each.place for each in graph.points[: len(arms) - 1]), graph.operations)
    planned = [PlannedPart(*each) for each in zip(edges, edges[1:], arms, strict=False)]
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(planned))
    monkeypatch.setenv(PLAN, str(tmp_path / "plan.json"))
    loaded = load_graph(corpus.path(graph.key), "cpu")
    used: list[str] = []

    def load_noted(arm: str) -> Any:
        used.append(arm)
        return load_backend(arm)

    monkeypatch.setattr("cut_arm.load_backend", load_noted)
    torch.compiler.reset()
    compiled: Any = torch.compile(loaded.module, backend=in_parts)
    with torch.no_grad():
        expected = loaded.module(*loaded.args)
        for _ in range(2):
            torch.testing.assert_close(compiled(*loaded.args), expected)
    assert used == [each for each in arms if each != "eager"]


def test_what_leaves_a_gain_open_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the best backend, on as many threads as it was tuned with."""
    (tmp_path / "parts").mkdir()
    parts = (CutPart(0, 1, "one"), CutPart(1, 2, "two"))
    graph = CutGraph("w" * 64, "mine/net", 10, 0.01, (CutPoint(3, 0.3, ()),), parts)
    write(tmp_path / "parts" / FOLDER, graph)
    file = Decisions(tmp_path / "decisions.sqlite")
    fast = Ratio(value=4.0, low=3.9, high=4.1, n=3, p_value=0.001)
    quick = Evidence(arm="onnxrt", outcome=PASSED, speedup=fast)
    file.put(
        factories.decision(key=graph.key),
        factories.decision(key="one"),
        factories.decision(key="two", evidence=(quick,)),
    )
    commands: list[list[str]] = []

    def run(command: list[str], *, check: bool, env: dict[str, str]) -> SimpleNamespace:
        planned = msgspec.json.decode(Path(env[PLAN]).read_bytes(), type=list[PlannedPart])
        assert planned == [PlannedPart(0, 3, "inductor"), PlannedPart(3, 10, "onnxrt")]
        commands.append(command)
        folder = Path(command[command.index("--output-dir") + 1]) / "run"
        store.create(folder, factories.manifest(factories.plan(replicates=5)))
        with store.RunStore(folder) as events:
            for replicate in range(5):
                events.append(factories.record(replicate=replicate))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr("subprocess.run", run)
    for _ in range(2):
        asked(monkeypatch, "measure", tmp_path / "corpus", tmp_path / "parts", "--decisions",
              file.path, "--runs", tmp_path / "runs")  # fmt: skip
    (command,) = commands
    text = " ".join(command)
    assert f"run {tmp_path}/corpus/graphs/{graph.key}.graph --backend inductor --backend" in text
    assert "--backend cut_arm:in_parts -r 5" in text
    assert text.endswith("-t 2")


def test_the_plan_of_another_graph_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says how they differ."""
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode([PlannedPart(0, 7, "eager")]))
    monkeypatch.setenv(PLAN, str(tmp_path / "plan.json"))
    graph = torch.fx.symbolic_trace(nn.Sigmoid())
    with pytest.raises(ValueError, match="of a graph of 7 operations; this one has 1"):
        in_parts(graph, [torch.ones(1)])
