"""A function in which a branch depends on data, to be looked at with `dynamometer explain`."""

from __future__ import annotations

import torch


def scaled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Multiply, with signs that depend on what is in `y`."""
    x = x / (x.abs() + 1)
    if y.sum() < 0:
        y = y * -1
    return x * y


def walkthrough() -> tuple[object, object]:
    """Call it twice, so that it takes each branch once."""
    x, y = torch.ones(10), torch.ones(10)
    return scaled, [(x, y), (x, -y)]
