"""A user's own models, through the command line and real workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from dynamometer.common.command_line import cli
from dynamometer.models.builders.torchvision_schemas import define_missing_schemas
from dynamometer.results.store import store
from dynamometer.results.values.records import Record, Status

ROOT = Path(__file__).resolve().parents[2]
FILE = """
import torch
from neighbour import WIDTH

def works():
    print("matrices:", torch.get_float32_matmul_precision())
    return torch.nn.Linear(WIDTH, 2), torch.randn(4, WIDTH)

def broken():
    return [1, 2][3]

@torch.compile(backend="eager")
def _fused(x):
    return x.sin() + x.cos()

class Compiles(torch.nn.Module):
    def forward(self, x):
        return _fused(x)

def compiles():
    return Compiles(), torch.randn(4, WIDTH)
"""
FAULT_LINE = 10


def run(target: Path | str, *words: str, runs: Path) -> dict[str, Record]:
    """Run `dynamometer run` and give the records by model."""
    asked = ["run", str(target), *words, "--accuracy", "--output-dir", str(runs)]
    assert cli.main(None, asked) == 0
    (directory,) = runs.iterdir()
    return {record.case.model: record for record in store.read_records(directory)}


def test_a_file_and_its_project(tmp_path: Path) -> None:
    """The file's neighbours are importable; a fault is reported in the user's own line."""
    (tmp_path / "neighbour.py").write_text("WIDTH = 3\n")
    (tmp_path / "mine.py").write_text(FILE)
    table = '[tool.dynamometer]\nmodels = "mine.py"\nbackend = ["eager", "aot_eager"]\n'
    table += 'matmul-precision = "high"\n'
    (tmp_path / "pyproject.toml").write_text(table)
    # As a program, which is in the project's folder.
    done = subprocess.run(
        [sys.executable, "-m", "dynamometer", "run", "--accuracy"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (directory,) = (tmp_path / "runs").iterdir()
    records = {record.case.model: record for record in store.read_records(directory)}
    assert records["works"].outcome.status is Status.PASS
    assert records["works"].case.arms == ("baseline", "eager", "aot_eager")
    assert "matrices: high" in (directory / str(records["works"].log)).read_text()
    assert records["broken"].outcome.status is Status.FAIL
    reason = f"IndexError: list index out of range (mine.py:{FAULT_LINE})"
    assert records["broken"].outcome.reason == reason
    assert records["works"].notes == ()
    note = "eager is not all eager: Dynamo compiles parts of the model there, too"
    assert records["compiles"].notes == (note,)


TELLING = """
import torch

def told():
    print("convolutions in TF32:", torch.backends.cudnn.allow_tf32)
    return torch.nn.Linear(2, 2), torch.randn(4, 2)
"""


@pytest.mark.parametrize(
    ("words", "in_tf32"),
    [("--accuracy", False), ("-r 1", True), ("--accuracy --matmul-precision high", True)],
)
def test_tf32_is_left_out_where_nothing_is_timed(
    tmp_path: Path, words: str, *, in_tf32: bool
) -> None:
    """Unless it is asked for: what is timed has what users have."""
    (tmp_path / "mine.py").write_text(TELLING)
    command = ["run", str(tmp_path / "mine.py"), "--backend", "eager", *words.split()]
    assert cli.main(None, [*command, "--output-dir", str(tmp_path / "runs")]) == 0
    (log,) = (tmp_path / "runs").glob("*/logs/told.log")
    assert f"convolutions in TF32: {in_tf32}" in log.read_text()


PARSES = """
import argparse
import queue
import sys
import torch
from this import WIDTH
from tabulate import tabulate

argparse.ArgumentParser().parse_args()
TOLD = [*sys.argv]

def net():
    print("told:", TOLD, "and then:", sys.argv)
    return torch.nn.Linear(WIDTH, 2), torch.randn(4, WIDTH), queue.Queue()

def _net():
    return net()[:2]
"""


@pytest.mark.parametrize("name", ["mine", "queue", "torch"])
def test_a_file_is_imported_as_if_it_had_been_run(name: str, tmp_path: Path) -> None:
    """Alone on the command line, its neighbours come before modules elsewhere.

    Who imports a module of its own name has the other one, as torch does.
    """
    (tmp_path / "this.py").write_text("WIDTH = 3\n")
    (tmp_path / "tabulate").mkdir()
    path = tmp_path.resolve() / f"{name}.py"
    path.write_text(PARSES)
    (record,) = run(f"{path}::_net", "--backend", "eager", runs=tmp_path / "runs").values()
    assert record.outcome.status is Status.PASS, record.outcome
    (log,) = (tmp_path / "runs").glob("*/logs/_net.log")
    told = [str(path)]
    assert f"told: {told} and then: {told}" in log.read_text()


def test_a_saved_program(tmp_path: Path) -> None:
    """What `torch.export.save` wrote runs with the inputs it was exported with."""
    module = nn.Sequential(nn.Linear(4, 5), nn.Dropout()).eval()
    path = tmp_path / "saved.pt2"
    torch.export.save(torch.export.export(module, (torch.rand(2, 4),)), path)
    records = run(path, "--backend", "eager", runs=tmp_path / "runs")
    assert records["saved"].outcome.status is Status.PASS


def test_a_folder_of_transformers(tmp_path: Path) -> None:
    """A model as `save_pretrained` leaves it loads like one of the hub."""
    define_missing_schemas()
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    (record,) = run(f"hub:{tmp_path}/bert", "--backend", "eager", runs=tmp_path / "runs").values()
    assert record.outcome.status is Status.PASS, record.outcome


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["user", "parity"])
def test_folders_may_have_any_name(suite: str, tmp_path: Path) -> None:
    """Inductor compiles wherever the run and temporary files are; nothing is left elsewhere."""
    folder = tmp_path / "My 'Project"
    (folder / "a b").mkdir(parents=True)
    (folder / "test_mine.py").write_text(
        "import torch\nclass Works(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "    def forward(self, x):\n        return x.sin() + x.cos()\n"
        "def works():\n    return Works(), torch.randn(4, 3)\n"
        "TESTCASES = [(Works, lambda: ([], {}), lambda: ([torch.ones(2)], {}))]\n"
    )
    words = ["test_mine.py", "--accuracy"] if suite == "user" else [".", "--parity"]
    done = subprocess.run(
        [sys.executable, "-m", "dynamometer", "run", *words, "--backend", "inductor"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "a b")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "could not be made ready" not in done.stderr
    (directory,) = (folder / "runs").iterdir()
    (record,) = store.read_records(directory)
    assert record.outcome.status is Status.PASS, record.outcome
    assert not (directory / "cache").exists()
    assert not [*(folder / "a b").iterdir()]
