"""Small modules that runtimes trip over, and what to call them with."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Net(nn.Module):
    """One input, one output, weights of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute something."""
        y: torch.Tensor = self.body(x)
        return y


class Several(nn.Module):
    """Several inputs, a nested structure of outputs, one of them twice, a number and nothing."""

    def forward(self, pair: tuple[torch.Tensor, torch.Tensor], scale: torch.Tensor) -> Any:
        """Compute something."""
        one, two = pair
        total = one + two * scale
        return {"total": total, "more": [total, one.argmax(-1), (two > 0, None)], "count": 3}


class Aliases(nn.Module):
    """Outputs that are an input, a view of one, and views of one another."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute something."""
        y = x * 2
        return x, x[1:], y, y.t(), y


class Adds(nn.Module):
    """Changes its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute something."""
        x.add_(1)
        return x * 2


class Counts(nn.Module):
    """Changes a buffer, and reads a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.weight = nn.Parameter(torch.ones(3))
        self.count: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute something."""
        self.count.add_(1)
        return x * self.count * self.weight


class Kinds(nn.Module):
    """Takes integers and booleans, and a number."""

    def forward(self, index: torch.Tensor, mask: torch.Tensor, power: int) -> torch.Tensor:
        """Compute something."""
        return torch.where(mask, index, index * power).to(torch.float32)


class Passes(nn.Module):
    """Computes nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input."""
        return x


class Windows(nn.Module):
    """Reads by strides what eager lays out in another order than that of its dimensions."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute windows that overlap, of what was transposed and of the input."""
        y = (x * 2).transpose(0, 1)
        return y.as_strided((2, 3, 2), (3, 2, 1)) + 1, x.as_strided((3, 2), (1, 4), 1) * 3


def cases() -> dict[str, tuple[nn.Module, tuple[Any, ...], dict[str, Any]]]:
    """Return modules with positional and keyword inputs, by what is special about them."""
    torch.manual_seed(0)
    a, b = torch.randn(4, 3), torch.randn(4, 3)
    return {
        "weights": (Net(), (torch.randn(2, 3, 8, 8),), {}),
        "structures": (Several(), ((a, b),), {"scale": torch.tensor(2.0)}),
        "by name": (Several(), (), {"scale": torch.tensor(2.0), "pair": (a, b)}),
        "non-contiguous": (Several(), ((a.t(), b.t()),), {"scale": torch.ones(1, 8)[:, ::2]}),
        "aliases": (Aliases(), (a,), {}),
        "kinds": (Kinds(), (torch.arange(4), torch.tensor([True, False] * 2), 3), {}),
        "nothing": (Passes(), (a,), {}),
        "strides": (Windows(), (a,), {}),
        "strides of another order": (Windows(), (a.t(),), {}),
        "empty": (Aliases(), (torch.ones(1, 0),), {}),
    }
