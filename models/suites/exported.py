"""A program that `torch.export.save` wrote, as a module like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from pathlib import Path


def load_program(path: Path, mode: Mode) -> LoadedModel:
    """Read a program, with the example inputs it was exported with.

    Args:
        path: of its file.
        mode: it is to be run in. What it was exported in stays, which a note says.

    Raises:
        ValueError: it is no program, or was saved without example inputs.
    """
    try:
        program = torch.export.load(path)
    except Exception as error:  # by what the file holds instead
        msg = f"{path} is no program of torch.export.save that this torch reads: {error}"
        raise ValueError(msg) from error
    if program.example_inputs is None:
        msg = f"{path} holds no example inputs; export it with some"
        raise ValueError(msg)
    args, kwargs = program.example_inputs
    note = _OTHER_MODE[mode] if _is_in_other_mode(program, mode) else None
    return LoadedModel(
        module=Exported(program.module()),
        args=tuple(args),
        kwargs=dict(kwargs),
        notes=(note,) if note else (),
    )


_OTHER_MODE = {
    Mode.INFERENCE: "The program was exported in training mode, and keeps its dropout.",
    Mode.TRAINING: "The program was exported in evaluation mode, and is trained without dropout.",
}


def _is_in_other_mode(program: torch.export.ExportedProgram, mode: Mode) -> bool:
    """Return whether an operator that knows both modes, such as dropout, is in the other one."""
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        for place, argument in enumerate(schema.arguments if schema else ()):
            if argument.name in {"train", "training"}:
                given = node.args[place] if place < len(node.args) else None
                value = node.kwargs.get(argument.name, given)
                if isinstance(value, bool) and value != (mode is Mode.TRAINING):
                    return True
    return False


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
