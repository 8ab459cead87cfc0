"""A program that `torch.export.save` wrote, as a module like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel

if TYPE_CHECKING:
    from pathlib import Path


def load_program(path: Path) -> LoadedModel:
    """Read a program, with the example inputs it was exported with.

    Raises:
        ValueError: it was saved without example inputs.
    """
    program = torch.export.load(path)
    if program.example_inputs is None:
        msg = f"{path} holds no example inputs; export it with some"
        raise ValueError(msg)
    args, kwargs = program.example_inputs
    return LoadedModel(module=Exported(program.module()), args=tuple(args), kwargs=dict(kwargs))


class Exported(nn.Module):
    """Wraps an exported module, which refuses to be put into another mode than it was saved in."""

    def __init__(self, program: nn.Module) -> None:
        """Wrap it."""
        super().__init__()
        self.program = program

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        return self.program(*args, **kwargs)

    def train(self, mode: bool = True) -> Exported:  # noqa: FBT001, FBT002  as nn.Module has it
        """Stay in the mode it was exported in."""
        self.training = mode
        return self
