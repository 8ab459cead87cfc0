"""Modules of a project, through `parity.py --from-source` and real workers."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from dynamometer.common.command_line import cli
from dynamometer.common.studies.parity.corpus_files import FOLDER
from dynamometer.results.store import store
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PROJECT = """
from torch import nn

class Block(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.layer = nn.Conv2d(channels, channels, kernel_size, padding=kernel_size // 2)
    def forward(self, x):
        return self.layer(x).relu()

class Ends(nn.Module):
    def __init__(self):
        import os
        os._exit(3)

class Asks(nn.Module):
    def forward(self, x):
        return x * input("what? ")
"""


def records(runs: Path) -> dict[str, Status]:
    """Return how each case of the one run ended."""
    (directory,) = runs.iterdir()
    return {each.case.model: each.outcome.status for each in store.read_records(directory)}


def test_a_project_becomes_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What runs is captured, and measured again from what is written, even by another program."""
    source = tmp_path / "net"
    source.mkdir()
    (source / "layers.py").write_text(PROJECT)
    runs, again = source / "runs", tmp_path / "again"
    words = ["--from-source", str(source), "--output-dir", str(runs)]
    assert cli.main("parity", words) == 0
    assert records(runs) == {
        "net.layers.Block": Status.PASS, "net.layers.Ends": Status.SKIP,
        "net.layers.Asks": Status.SKIP,
    }  # fmt: skip
    said = capsys.readouterr().out
    assert "modules of projects:" in said
    assert "work compiled" in said
    (directory,) = runs.iterdir()
    corpus = directory / FOLDER
    assert str(corpus / "test_net.py") in said
    assert cli.main("parity", [str(corpus), "--output-dir", str(again)]) == 0
    assert records(again) == {"net.Block": Status.PASS}
    # Files that a run writes into the project are none that it was begun with.
    assert cli.main(None, ["resume", str(directory)]) == 0
    block = next(each for each in store.read_records(directory) if "Block" in each.case.model)
    command = shlex.split(block.command)
    assert command[command.index("--from-source") + 1] == str(source)
