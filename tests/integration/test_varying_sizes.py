"""Steps of several sizes, batch sizes that are searched for, and expected results."""

from __future__ import annotations

import csv
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.studies.batch_sizes.summary import summarize_search
from dynamometer.results.store import store
from dynamometer.results.values.records import Record, Status

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, most=None, branches=False):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.most, self.branches = most, branches

    def forward(self, x):
        if self.most and not 1 < len(x) <= self.most:
            raise MemoryError("too large a batch") if len(x) > 1 else ValueError("too small")
        if self.branches and len(x) > 3:
            return self.layer(x) + 1
        return self.layer(x)

def plain(batch_size=2):
    return Model(), torch.randn(batch_size, 3)

def branching(*, batch_size=2):
    return Model(branches=True), torch.randn(batch_size, 3)

def limited(batch_size=1):
    return Model(most=8), torch.randn(batch_size, 3)

def one_size(batch_size=2):
    return torch.nn.Bilinear(3, 3, 3), (torch.randn(2, 3), torch.randn(batch_size, 3))

def fixed():
    return Model(), torch.randn(2, 3)
"""


def run(folder: Path, *words: str) -> tuple[int, str, dict[str, list[Record]]]:
    """Run a file of models; give the exit code, standard output, and records by model."""
    path, runs = folder / "mine.py", folder / "runs"
    path.write_text(FILE)
    before = set(runs.glob("*"))
    with redirect_stdout(StringIO()) as out:
        code = cli.main(None, ["run", str(path), *words, "--output-dir", str(runs)])
    (directory,) = set(runs.glob("*")) - before
    found: dict[str, list[Record]] = {}
    for record in store.read_records(directory):
        found.setdefault(record.case.model, []).append(record)
    return code, out.getvalue(), found


def test_dynamic_shapes(tmp_path: Path) -> None:
    """Every size is compared; what is compiled for one size is compiled for all, but branches."""
    code, _, records = run(tmp_path, "--dynamic-shapes", "--accuracy", "--backend", "eager")
    assert code == 0
    recompiles = {}
    for name in ("plain", "branching"):
        (record,) = records[name]
        assert record.outcome.status is Status.PASS, record.outcome
        assert record.notes == ("Batch sizes of a step: 2, 3, 4, 5, 6.",)
        capture = record.arms[1].capture
        assert capture is not None
        recompiles[name] = capture.recompiles
    assert recompiles == {"plain": 0, "branching": 1}
    skipped = {name: records[name][0].outcome for name in ("fixed", "one_size")}
    assert {outcome.status for outcome in skipped.values()} == {Status.SKIP}
    assert "it sets the sizes of its inputs itself" in str(skipped["fixed"].reason)
    assert "it runs at one size only" in str(skipped["one_size"].reason)


@pytest.mark.parametrize(
    ("words", "backend", "path"),
    [
        ((), "errs_at_five", "output[3]"),
        (
            ("--training",),
            "drops_a_gradient_at_two",
            "gradients[0].layer.weight: 9 of 9 elements are wrong",
        ),
    ],
)
def test_what_is_wrong_at_one_size_is_found(
    tmp_path: Path, words: tuple[str, ...], backend: str, path: str
) -> None:
    """Outputs and gradients are compared at every size, and the path says at which."""
    arms = ("--backend", f"wrong_backends:{backend}", "--backend", "wrong_backends:honest")
    _, _, records = run(tmp_path, "--dynamic-shapes", "--accuracy", *words, *arms, "-k", "plain")
    (record,) = records["plain"]
    _, wrong, honest = record.arms
    assert honest.outcome.status is Status.PASS
    assert wrong.outcome.status is Status.FAIL_ACCURACY
    assert (wrong.outcome.reason or "").startswith(path)


def test_dynamic_shapes_are_timed(tmp_path: Path) -> None:
    """Latency, compile time and memory of whole steps, under autocast as well."""
    words = ("--dynamic-shapes", "--amp", "-r", "1", "-n", "3", "--backend", "aot_eager")
    code, _, records = run(tmp_path, *words, "-k", "plain")
    assert code == 0
    (record,) = records["plain"]
    assert record.outcome.status is Status.PASS, record.outcome
    found = {each.metric for each in record.measurements if each.arm == "aot_eager"}
    assert {"latency", "compile_time", "calls_memory"} <= found
    (directory,) = (tmp_path / "runs").iterdir()
    (path,) = directory.glob("*_performance.csv")
    with path.open(newline="") as file:
        (fields,) = csv.DictReader(file)
    assert (fields["shapes"], fields["recompiles"]) == ("dynamic", "0")


def test_find_batch_sizes(tmp_path: Path) -> None:
    """Batches are doubled until one does not fit; that a first one is too small is no end."""
    code, out, records = run(tmp_path, "--find-batch-sizes", "-k", "limited", "-k", "fixed")
    assert code == 0
    found = summarize_search(records["limited"])
    assert found.largest is not None
    assert found.largest.batch_size == 8
    assert found.end.status is Status.OOM
    assert [record.replicate for record in records["limited"]] == [0, 1, 2, 3, 4]
    assert "batch size 8" in out
    (record,) = records["fixed"]
    assert record.outcome.status is Status.SKIP


def test_training_with_a_compiled_optimizer(tmp_path: Path) -> None:
    """The optimizer's operators are captured beside the model's, and results stay eager's."""
    words = ("--training", "--accuracy", "--backend", "aot_eager")
    captured = {}
    for more in ((), ("--compile-optimizer",)):
        _, _, records = run(tmp_path, *words, *more)
        (record,) = records["plain"]
        assert record.outcome.status is Status.PASS, record.outcome
        capture = record.arms[1].capture
        assert capture is not None
        captured[more] = capture.graphs
    assert captured["--compile-optimizer",] > captured[()]


def test_expected_results(tmp_path: Path) -> None:
    """A table is made, agreed with, and, once it says something else, disagreed with."""
    table = tmp_path / "table.csv"
    words = ("--accuracy", "--backend", "eager", "--expect", str(table))
    code, _, _ = run(tmp_path, *words, "--update-expected")
    assert code == 0
    assert len(table.read_text().splitlines()) == 6
    assert run(tmp_path, *words)[0] == 0
    _, before, _ = run(tmp_path, *words[:3])
    directory = before.split("results: ")[1].rpartition("/")[0]
    resume = ["resume", directory, "--expect", str(table)]
    assert cli.main(None, resume) == 0
    table.write_text(table.read_text().replace("eager,pass,1,", "eager,pass,7,", 1))
    code, out, _ = run(tmp_path, *words)
    assert code == 1
    assert "regression: " in out
    assert "7 captured ops became 1" in out
    assert cli.main(None, resume) == 1
