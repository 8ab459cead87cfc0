"""Networks of which it depends on the width how a backend goes wrong on them, and on which size.

Workers import the file as that of the models and, by `PYTHONPATH`, as the backend's module
`swept_nets:by_width`. On their clock every call takes the same.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import torch
from simulated_machine import install
from torch import nn
from wrong_backends import is_called_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Compiled = Callable[..., Any]

install(reading_s=0.002)


class Net(nn.Module):
    """A layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Call the layer."""
        return self.fc(x).relu()


class OneSize(nn.Module):
    """Takes batches of eight only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add one."""
        return x + torch.ones(8, 16)


def one_size(batch_size: int = 8) -> tuple[nn.Module, torch.Tensor]:
    """Can't be given another size."""
    return OneSize(), torch.randn(batch_size, 16)


def own_calls(batch_size: int = 8) -> tuple[nn.Module, list[tuple[torch.Tensor]]]:
    """Has sizes of its own."""
    return nn.ReLU(), [(torch.ones(3),), (torch.ones(4),)]


def net(batch_size: int = 8) -> tuple[nn.Module, torch.Tensor]:
    """Is compiled rightly."""
    return Net(16), torch.randn(batch_size, 16)


def wrong(batch_size: int = 8) -> tuple[nn.Module, torch.Tensor]:
    """Is compiled wrongly."""
    return Net(17), torch.randn(batch_size, 17)


def fails(batch_size: int = 8) -> tuple[nn.Module, torch.Tensor]:
    """Can't be compiled."""
    return Net(18), torch.randn(batch_size, 18)


def no_fives(batch_size: int = 8) -> tuple[nn.Module, torch.Tensor]:
    """Can't be compiled for five alone."""
    return Net(19), torch.randn(batch_size, 19)


def wrong_fives(batch_size: int = 8) -> tuple[nn.Module, torch.Tensor]:
    """Is compiled wrongly for five alone."""
    return Net(20), torch.randn(batch_size, 20)


def tired_fives(batch_size: int = 8) -> tuple[nn.Module, torch.Tensor]:
    """Is compiled rightly for five alone, until that is timed."""
    return Net(21), torch.randn(batch_size, 21)


def fatal_fives(batch_size: int = 8) -> tuple[nn.Module, torch.Tensor]:
    """Ends the process that compiles it for five alone."""
    return Net(22), torch.randn(batch_size, 22)


def by_width(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Go wrong as the functions above say."""
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    width = tensors[0].shape[-1]
    is_five = any(type(each.shape[0]) is int and each.shape[0] == 5 for each in tensors)
    if width == 18:
        msg = "not today"
        raise NotImplementedError(msg)
    if width == 19 and is_five:
        msg = "no fives"
        raise NotImplementedError(msg)
    if width == 22 and is_five:
        os.kill(os.getpid(), signal.SIGSEGV)
    if width == 21 and is_five:
        return _tiring(graph)
    if width == 17 or (width == 20 and is_five):
        return lambda *args: tuple(each + 1 for each in graph(*args))
    return graph.forward


def _tiring(graph: torch.fx.GraphModule) -> Compiled:
    def call(*args: Any) -> Any:
        if is_called_by("time_in_blocks"):
            msg = "tired"
            raise RuntimeError(msg)
        return graph(*args)

    return call
