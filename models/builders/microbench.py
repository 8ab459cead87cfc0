"""Computations that probe one ability of a compiler each."""

from __future__ import annotations

import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel


class PickedSum(nn.Module):
    """Scales by a sum over elements whose places are known only when it runs.

    A compiler has to reason about as many integers as there are elements without their values.
    """

    def __init__(self) -> None:
        """Draw the one weight."""
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1))

    def forward(
        self, factor: torch.Tensor, places: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Scale `factor`, `[B]`, by the sum of `values`, `[V]`, at `places`, `[P]`."""
        total = 0.0
        for place in places.tolist():
            _promise(place >= 0)
            _promise(place < values.shape[0])
            total = total + values[place].item()
        return factor * self.weight * total


def _promise(condition: bool) -> None:  # noqa: FBT001  # a promise is one condition
    """Tell a compiler what it can't know; fails where it doesn't hold."""
    torch._check(condition)  # type: ignore[no-untyped-call]  # noqa: SLF001  # torch documents it, and leaves it untyped


def build_picked_sum(*, batch_size: int, elements: int) -> LoadedModel:
    """Build the sum over all elements of a vector of ones.

    Args:
        batch_size: number of factors.
        elements: length of the vector.
    """
    factor = torch.randn(batch_size)
    places = torch.arange(elements, dtype=torch.int32)
    values = torch.ones(elements, dtype=torch.int32)
    return LoadedModel(module=PickedSum(), args=(factor, places, values))
