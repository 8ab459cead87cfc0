from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dynamometer.models.builders import torchvision_schemas


@pytest.mark.parametrize("name", ["_C.so", "_C_stable.so"])
def test_operators_are_looked_for_under_each_name_of_their_library(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torchvision 0.29 renamed it, and ends the process where they were declared before."""
    loaded: list[str] = []
    monkeypatch.setattr(torch.ops, "load_library", loaded.append)
    monkeypatch.setattr(torchvision_schemas, "_are_defined", lambda: bool(loaded))
    (tmp_path / name).touch()
    assert torchvision_schemas._loads_extension([str(tmp_path)])
    assert [Path(each).name for each in loaded] == [name]


def test_a_library_that_does_not_load_counts_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that is linked against CUDA, beside a torch for CPUs."""

    def load(path: str) -> None:
        msg = f"{path}: libcudart.so: cannot open shared object file"
        raise OSError(msg)

    monkeypatch.setattr(torch.ops, "load_library", load)
    monkeypatch.setattr(torchvision_schemas, "_are_defined", lambda: False)
    (tmp_path / "_C_stable.so").touch()
    assert not torchvision_schemas._loads_extension([str(tmp_path)])
