"""Graphs that are recorded from models, and run as models, by real workers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from dynamometer.common.command_line import cli
from dynamometer.results.store import store
from dynamometer.results.store.graphs.corpus import Corpus
from dynamometer.results.values.graphs import Part
from dynamometer.results.values.records import Record, Status

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
MODELS = """
import os
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, breaks):
        super().__init__()
        self.table, self.linear, self.breaks = nn.Embedding(9, 4), nn.Linear(4, 3), breaks

    def forward(self, places):
        found = self.table(places)
        if self.breaks:
            print("a break")
        return self.linear(found).relu()

def whole():
    return Net(False), torch.randint(0, 9, (5,))

def alike():
    return Net(False), torch.randint(0, 9, (5,))

def broken_in_two():
    return Net(True), torch.randint(0, 9, (5,))

def dies():
    os.kill(os.getpid(), 11)
"""


def dynamometer(folder: Path, *words: str) -> dict[str, Record]:
    """Run the program, and give the records by model if it made some."""
    runs = folder / "runs"
    assert cli.main(None, [*words, "--output-dir", str(runs)]) == 0
    newest = max(runs.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    return {record.case.model: record for record in store.read_records(newest)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of ours, and a corpus of their graphs."""
    found = tmp_path_factory.mktemp("corpus")
    (found / "mine.py").write_text(MODELS)
    asked = ("corpus", "record", str(found / "mine.py"), "-o", str(found / "corpus"), "-t", "1")
    records = dynamometer(found, *asked)
    statuses = {name: record.outcome.status for name, record in records.items()}
    passed = dict.fromkeys(("whole", "alike", "broken_in_two"), Status.PASS)
    assert statuses == {**passed, "dies": Status.CRASH}
    return found


def test_a_graph_that_models_share_is_there_once(folder: Path) -> None:
    """A model that crashes loses its own graphs alone."""
    corpus = Corpus(folder / "corpus")
    graphs = {model.origin.model: model.graphs for model in corpus.models()}
    assert {name: len(each) for name, each in graphs.items()} == {
        "whole": 1,
        "alike": 1,
        "broken_in_two": 2,
    }
    assert graphs["whole"] == graphs["alike"]
    assert [each.calls for each in graphs["broken_in_two"]] == [2, 2]
    assert len(corpus.keys()) == 3


def test_each_graph_is_run_as_a_model_is(folder: Path) -> None:
    """With indices that are valid in its tables; a backend that is wrong on one is told so there.

    Its weights are weights again: Dynamo captures the graph, and the model is copied for each arm.
    """
    words = ("--backend", "wrong_backends:wrong_on_embeddings", "--accuracy", "-t", "1")
    records = dynamometer(folder, "corpus", "run", str(folder / "corpus"), *words)
    assert len(records) == 3
    right = {
        graph.key[:12]: "torch.nn.functional.embedding" not in graph.ops
        for graph in Corpus(folder / "corpus").graphs()
    }
    assert sorted(right.values()) == [False, False, True]
    for name, record in records.items():
        wanted = Status.PASS if right[name.rpartition(".")[2]] else Status.FAIL_ACCURACY
        assert record.outcome.status is wanted, record.outcome


def test_forward_and_backward_are_graphs_of_their_own(folder: Path) -> None:
    """In training both are recorded, and both can be run."""
    trained = str(folder / "trained")
    words = (f"{folder / 'mine.py'}::whole", "--training", "-o", trained, "-t", "1")
    dynamometer(folder, "corpus", "record", *words)
    parts = {graph.origin.part for graph in Corpus(folder / "trained").graphs()}
    assert parts == {Part.FORWARD, Part.BACKWARD}
    words = (trained, "--backend", "eager", "--accuracy", "-t", "1")
    records = dynamometer(folder, "run", *words)
    assert {each.outcome.status for each in records.values()} == {Status.PASS}


def test_a_plain_script_replays_it(folder: Path) -> None:
    """The example needs torch, and nothing of ours."""
    script = folder / "replay.py"
    script.write_bytes((ROOT / "examples" / "replay_corpus.py").read_bytes())
    code = """
import sys
sys.modules.update(dict.fromkeys(("dynamometer", "msgspec", "click"), None))
sys.argv = ["replay.py", "corpus", "--backend", "aot_eager", "--calls", "1"]
exec(compile(open("replay.py").read(), "replay.py", "exec"))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "3 of 3 graphs are right"
    assert done.stdout.count("user/") == 3


def plain_script() -> ModuleType:
    """Import the example."""
    spec = importlib.util.spec_from_file_location("replay", ROOT / "examples/replay_corpus.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_a_plain_script_says_what_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not with a traceback."""
    monkeypatch.setattr("sys.argv", ["replay_corpus.py", "nowhere"])
    with pytest.raises(SystemExit) as ended:
        plain_script().main()
    assert ended.value.code == 2
    assert "there is no nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [
        torch.arange(128.0).reshape(8, 16)[:, 2:7],
        torch.ones(1, 4).expand(8, 4),
        torch.ones(8, 16)[:, :0],
        torch.tensor(3.0, requires_grad=True),
    ],
)
def test_a_plain_script_copies_memory_as_it_is(given: torch.Tensor) -> None:
    """With gaps between elements, and where several are one."""
    (copied,) = plain_script().copied([given])
    assert copied.stride() == given.stride()
    assert copied.equal(given)
    assert copied.data_ptr() != given.data_ptr() or not given.numel()
    if given.stride() == (16, 1) and given.numel():
        reached = [each.as_strided((2, 2), (16, 1)).tolist() for each in (given, copied)]
        assert reached[0] == reached[1]


def test_a_plain_script_goes_on_where_eager_raises() -> None:
    """One graph is lost, and its line says why."""
    script = plain_script()

    def raises(*_: object) -> None:
        msg = "index out of range"
        raise IndexError(msg)

    line, is_right = script.replay(raises, [], "eager", 1)
    assert "EAGER FAILS on drawn inputs: index out of range" in line
    assert not is_right
