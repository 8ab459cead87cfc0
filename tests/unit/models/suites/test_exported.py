"""Saved programs: what is none is named, and the mode that one was exported in is noted."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from dynamometer.models.suites.exported import load_program
from dynamometer.models.suites.user_models import SUITE
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", ["text", "empty", "zip", "weights"])
def test_a_file_that_is_no_program_is_named(kind: str, tmp_path: Path) -> None:
    """Whatever it is instead."""
    path = tmp_path / "odd.pt2"
    path.write_text("hello" if kind == "text" else "")
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a", "b")
    elif kind == "weights":
        torch.save(nn.Linear(2, 2).state_dict(), path)
    with pytest.raises(ValueError, match=r"odd.pt2 is no program of torch.export.save"):
        load_program(path, Mode.INFERENCE)


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("layer", [nn.Dropout(), nn.BatchNorm1d(4), nn.ReLU()], ids=str)
def test_a_program_of_the_other_mode_is_noted(
    layer: nn.Module,
    is_training: bool,  # noqa: FBT001  pytest gives it by name
    tmp_path: Path,
) -> None:
    """Where an operator knows both."""
    module = nn.Sequential(nn.Linear(4, 4), layer).train(is_training)
    path = tmp_path / "saved.pt2"
    torch.export.save(torch.export.export(module, (torch.rand(2, 4),)), path)
    notes = {mode: load_program(path, mode).notes for mode in Mode}
    own, other = Mode.TRAINING, Mode.INFERENCE
    if not is_training:
        own, other = other, own
    assert notes[own] == ()
    assert len(notes[other]) == (not isinstance(layer, nn.ReLU))


def test_a_program_has_no_parts(tmp_path: Path) -> None:
    """None can be named."""
    path = tmp_path / "saved.pt2"
    path.touch()
    with pytest.raises(ValueError, match="holds one program: leave out ::part"):
        SUITE.open({"target": f"{path}::part"})
