"""A corpus of modules, through `parity.py`'s command line and real workers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.studies.parity.summary import ParitySummary, summarize
from dynamometer.results.store import store
from dynamometer.results.values.parity import Parity
from dynamometer.results.values.records import PASSED, Status

if TYPE_CHECKING:
    from pathlib import Path

ONE = """
from _paritybench_helpers import _mock_config, _mock_layer
import os, signal, traceback, no_such_package
import torch
from torch import nn

class Whole(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
    def forward(self, x):
        return self.layer(x).relu() + 1

class Prints(nn.Module):
    def forward(self, x):
        x = x + 1
        print('here')
        return x * 2

class Empty(nn.Module):
    def forward(self, x):
        return x

class Missing(nn.Module):
    def forward(self, x):
        return no_such_package.scale(x)

class KilledInEager(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGKILL)

class KilledInCompiled(nn.Module):
    def forward(self, x):
        if torch.compiler.is_dynamo_compiling():
            torch._dynamo.graph_break()
            return kill(x)
        return x + 1

def kill(x):
    os.kill(os.getpid(), signal.SIGKILL)

class DiesWhenCounted(nn.Module):
    def forward(self, x):
        die_when_counted()
        return x + 1

@torch.compiler.disable
def die_when_counted():
    if any(each.name == "_counted" for each in traceback.extract_stack()):
        os._exit(5)

class DiesWhenJudged(nn.Module):
    def forward(self, x):
        if torch.compiler.is_compiling():
            return x + 2
        if any(each.name == "_judge" for each in traceback.extract_stack()):
            os._exit(6)
        return x + 1

class Differs(nn.Module):
    def forward(self, x):
        return x + 2 if torch.compiler.is_compiling() else x + 1

class Wanders(nn.Module):
    def forward(self, x):
        return x + id(object()) % 7 + float.fromhex(os.urandom(4).hex())

X = lambda: ([torch.rand([4, 3])], {})
TESTCASES = [
    # (nn.Module, init_args, forward_args)
    (Whole, lambda: ([3], {}), X),
    (Prints, lambda: ([], {}), X),
    (Empty, lambda: ([], {}), X),
    (Missing, lambda: ([], {}), X),
    (KilledInEager, lambda: ([], {}), X),
    (KilledInCompiled, lambda: ([], {}), X),
    (DiesWhenCounted, lambda: ([], {}), X),
    (DiesWhenJudged, lambda: ([], {}), X),
    (Differs, lambda: ([], {}), X),
    (Wanders, lambda: ([], {}), X),
]
"""
TWO = """
from _paritybench_helpers import _paritybench_base
import torch
class Net(torch.nn.Module):
    def forward(self, x, *, scale):
        return x * scale
TESTCASES = [(Net, lambda: ([], {}), lambda: ([torch.rand([2])], {'scale': 3}), True)]
class Test_of_another_runner(_paritybench_base): ...
"""
BAD = "import torch\nraise OSError('gone')\nTESTCASES = [(Net, f, f)]\n"


COMPILED_BEFORE = """
import torch
from dynamometer.models.parity import compiling
KEPT = any(compiling._kept.values())

class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        if not KEPT:
            raise RuntimeError("compiled by its worker")
    def forward(self, x):
        return x + 1

class Second(First): ...

X = lambda: ([torch.rand([2])], {})
TESTCASES = [(First, lambda: ([], {}), X), (Second, lambda: ([], {}), X)]
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three projects, of which one can't be imported and one not to its end."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in (("one", ONE), ("two", TWO), ("bad", BAD)):
        (folder / f"test_{name}.py").write_text(text)
    return folder


def run(corpus: Path, *words: str, runs: Path) -> dict[str, ParitySummary]:
    """Run `parity.py` and give what became of each test case."""
    asked = [str(corpus), *words, "--output-dir", str(runs)]
    assert cli.main("parity", asked) == 0
    (directory,) = runs.iterdir()
    records = store.read_records(directory)
    assert len(records) == len(store.read_manifest(directory).plan.cases)
    return {each.case.model: found for each in records for found in summarize(each)}


def test_workers_find_a_file_compiled(tmp_path: Path) -> None:
    """The first one, too: the process that they are forked from has done it."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "test_net.py").write_text(COMPILED_BEFORE)
    found = run(folder, runs=tmp_path / "runs")
    assert {name: each.outcome for name, each in found.items()} == {
        "net.First": PASSED,
        "net.Second": PASSED,
    }


def test_each_test_case_has_a_record(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it does; what eager can't run is not held against Dynamo."""
    found = run(corpus, runs=tmp_path / "runs")
    ended = {name: (each.outcome.status, each.full_graph.status) for name, each in found.items()}
    same = {name: status for name, (status, full) in ended.items() if status is full}
    assert same == {
        "one.Whole": Status.PASS,
        "one.Empty": Status.PASS,
        "one.Missing": Status.SKIP,
        "one.KilledInEager": Status.SKIP,
        "one.KilledInCompiled": Status.CRASH,
        "one.DiesWhenJudged": Status.CRASH,  # a wrong result is not hidden by a slow eager
        "one.Differs": Status.FAIL_ACCURACY,
        "one.Wanders": Status.NONDETERMINISTIC,
        "bad.Net": Status.SKIP,
        "two.Net": Status.PASS,
    }
    assert ended["one.Prints"] == (Status.PASS, Status.FAIL)
    assert ended["one.DiesWhenCounted"] == (Status.PASS, Status.FAIL)  # what was known stands
    whole, prints = found["one.Whole"], found["one.Prints"]
    assert (whole.graphs, whole.largest_graph, whole.share_of_ops) == (1, whole.ops, 1.0)
    assert (prints.graphs, found["one.Empty"].graphs) == (2, 0)
    assert prints.coverage is not None
    (ended_graph,) = prints.coverage.breaks
    assert ended_graph.code == "print('here')"
    assert "no_such_package.scale is needed" in (found["one.Missing"].outcome.reason or "")
    assert "OSError: gone" in (found["bad.Net"].outcome.reason or "")
    text = capsys.readouterr().out
    assert re.search(r"projects, default +2 +1 +50\.0%", text)
    assert re.search(r"tests, default +8 +5 +62\.5%", text)
    assert re.search(r"tests, full graph +8 +3 +37\.5%", text)


def test_a_real_run_agrees_with_what_was_inferred(corpus: Path, tmp_path: Path) -> None:
    """`--nopython` compiles as one graph what the usual run took for one, and fails where it did.

    Training too, of what has something to train.
    """
    only = ("-k", "Whole|Prints|Empty", "--backend", "aot_eager")
    usual = run(corpus, *only, runs=tmp_path / "usual")
    strict = run(corpus, *only, "--nopython", runs=tmp_path / "strict")
    assert {name: each.works for name, each in strict.items()} == {
        name: each.works_as_one for name, each in usual.items()
    }
    trained = run(corpus, "-k", "Whole", "--training", runs=tmp_path / "training")
    assert trained["one.Whole"].works_as_one


def test_inductor_compiles_in_a_container(corpus: Path, tmp_path: Path) -> None:
    """It writes nowhere but where a worker may."""
    found = run(corpus, "-k", "Whole", "--backend", "inductor", runs=tmp_path / "runs")
    assert found["one.Whole"].works_as_one, found["one.Whole"].outcome


def test_any_suite_can_be_asked(tmp_path: Path) -> None:
    """The question is not the corpus' alone; another can be asked of a corpus."""
    words = ["--parity", "--only", "alexnet", "--scale", "tiny", "--output-dir", str(tmp_path)]
    assert cli.main("torchbench", words) == 0
    (directory,) = tmp_path.iterdir()
    (record,) = store.read_records(directory)
    (found,) = msgspec.json.decode(record.found, type=Parity).full_graph
    assert (found.arm, found.outcome.status, found.is_inferred) == ("eager", Status.PASS, True)
    assert "--parity" in record.command


ENDS = """
import os
from torch import nn
from own_package.beside import Base
class Works(Base):
    def forward(self, x): return x + 1
class ExitsInInit(Base):
    def __init__(self):
        os._exit(3)
    def forward(self, x): ...
class InterruptsInInit(Base):
    def __init__(self):
        raise KeyboardInterrupt
    def forward(self, x): ...
class ExitsInForward(Base):
    def forward(self, x):
        os._exit(3)
def made(): return object
class NoModule(made()): ...
"""


def test_how_far_classes_of_a_project_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As their workers told, whatever ended these; what runs is found again in what was written.

    The project's package is below `src`, and has the name of one that is there already.
    """
    for name in ("own_package", "yaml"):
        package = tmp_path / "project" / "src" / name
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "beside.py").write_text("from torch import nn\nclass Base(nn.Module): ...\n")
    (package.parent / "own_package" / "ends.py").write_text(ENDS)
    (package / "net.py").write_text(ENDS.partition("class Exits")[0])
    (tmp_path / "project" / "ends.py").write_text(f"{ENDS}raise KeyboardInterrupt\n")
    words = ["--from-source", str(tmp_path / "project"), "--output-dir", str(tmp_path / "runs")]
    assert cli.main("parity", [*words, "-k", "ends|net"]) == 0
    text = capsys.readouterr().out
    for what, number in (
        ("classes of nn.Module with a forward", 10), ("imported", 5), ("built", 3),
        ("run in eager", 2), ("work compiled", 2),
    ):  # fmt: skip
        assert re.search(rf"{what} +{number}\n", text), text
    (directory,) = (tmp_path / "runs").iterdir()
    again = run(directory / "corpus", runs=tmp_path / "again")
    assert {name: each.works for name, each in again.items()} == {
        "project.Works": True, "project_2.Works": True,
    }  # fmt: skip


def test_a_corpus_can_be_asked_otherwise(corpus: Path, tmp_path: Path) -> None:
    """By the command of every suite, too, and the command that repeats a case runs it."""
    runs = tmp_path / "runs"
    words = ["run", str(corpus), "--accuracy", "--only", "one.Whole", "--output-dir", str(runs)]
    assert cli.main(None, [*words, "--backend", "aot_eager"]) == 0
    (directory,) = runs.iterdir()
    (record,) = store.read_records(directory)
    assert (record.study, record.outcome.status) == ("accuracy", Status.PASS)
    assert f"run {corpus}" in record.command
