"""Backends that are right pass where they were once accused, as whoever types the command sees it.

The rules themselves have tests with `judge` (tests/unit/common/checking); here workers apply them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dynamometer.common.command_line import cli
from dynamometer.results.store import store
from dynamometer.results.values.records import Record, Status

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
import torch
from torch import nn

class Normalised(nn.Module):
    # The gradient of the first bias, and the mean of what a normalisation normalised, are rounding.
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)
        )

    def forward(self, x):
        return self.layers(x)

class DetachedHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        chosen = self.head(x).detach().argmax()
        torch._dynamo.graph_break()
        return self.layer(x) * (chosen >= 0)

class OldWeightNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.utils.weight_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.layer(x)

class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.calls += 1
        return self.layer(x) + self.calls

def normalised(batch_size=8):
    return Normalised(), torch.randn(batch_size, 3, 12, 12)

def detached(batch_size=2):
    return DetachedHead(), torch.randn(batch_size, 4)

def weight_norm(batch_size=2):
    return OldWeightNorm(), torch.randn(batch_size, 4)

def counts(batch_size=2):
    return Counts(), torch.randn(batch_size, 4)
"""


def run(folder: Path, *words: str) -> dict[str, Record]:
    """Check models of a file, and give their records by model."""
    path, runs = folder / "mine.py", folder / "runs"
    path.write_text(FILE)
    assert cli.main(None, ["run", str(path), "--accuracy", *words, "--output-dir", str(runs)]) == 0
    (directory,) = runs.iterdir()
    return {each.case.model: each for each in store.read_records(directory)}


def assert_passed(record: Record) -> None:
    """Expect that every arm is right."""
    assert [each.outcome.status for each in record.arms] == [Status.PASS] * len(record.arms), record


@pytest.mark.parametrize("model", ["normalised", "detached", "weight_norm"])
def test_inductor_trains(model: str, tmp_path: Path) -> None:
    """Of normalisations, with a head that has no gradient, and with weights that are computed."""
    words = ("--training", "--backend", "inductor", "--backend", "aot_eager", "-k", model)
    assert_passed(run(tmp_path, *words)[model])


@pytest.mark.parametrize("dtype", ["--float32", "--bfloat16"])
def test_gradients_that_are_rounding_at_several_sizes(dtype: str, tmp_path: Path) -> None:
    """Their paths begin otherwise there, which once hid them from the rule for them."""
    words = ("--training", "--dynamic-shapes", dtype, "--backend", "aot_eager", "-k", "normalised")
    assert_passed(run(tmp_path, *words)["normalised"])


def test_tracing_does_not_count_as_a_call(tmp_path: Path) -> None:
    """TorchScript runs the module while it traces it, which changes its buffers."""
    assert_passed(run(tmp_path, "--backend", "ts", "-k", "counts")["counts"])
