"""The grid that the ocean computations share: a box of cells, some of them land.

Fields are `[X, Y, Z]`, longitude by latitude by height. A rim of two cells around the horizontal
directions holds boundary values and isn't computed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

RIM = slice(2, -2)
WATER = 0.8  # share of cells


class Grid(NamedTuple):
    """Where there is water, and how far apart things are.

    Masks are 1 in water and 0 on land: for cells (`t`) and for their eastern, northern and upper
    faces (`u`, `v`, `w`). Spacings, `[X]`, `[Y]` or `[Z]`, are those of cells (`dxt`, `dyt`,
    `dzt`) and of their centres (`dxu`, `dyu`, `dzw`). `cos_t` and `cos_u`, `[Y]`, are the cosines
    of the latitudes of centres and northern faces.
    """

    mask_t: torch.Tensor
    mask_u: torch.Tensor
    mask_v: torch.Tensor
    mask_w: torch.Tensor
    dxt: torch.Tensor
    dxu: torch.Tensor
    dyt: torch.Tensor
    dyu: torch.Tensor
    dzt: torch.Tensor
    dzw: torch.Tensor
    cos_t: torch.Tensor
    cos_u: torch.Tensor


def box_shape(cells: int) -> tuple[int, int, int]:
    """Return a shape of about this many cells, eight times as wide as high."""
    edge = cells ** (1 / 3)
    return math.ceil(2 * edge), math.ceil(2 * edge), math.ceil(0.25 * edge)


def random_grid(shape: tuple[int, int, int]) -> Grid:
    """Draw a grid with positive spacings.

    TorchBench draws them from a normal distribution. Divided by what is nearly zero, one cell
    would then outweigh all others in any comparison of results.
    """
    masks = ((torch.rand(shape) < WATER).double() for _ in range(4))
    lengths = [shape[0]] * 2 + [shape[1]] * 2 + [shape[2]] * 2 + [shape[1]] * 2
    return Grid(*masks, *(uniform(0.5, 1.5, length) for length in lengths))


def uniform(low: float, high: float, *shape: int) -> torch.Tensor:
    """Draw float64 numbers between two."""
    return low + (high - low) * torch.rand(*shape, dtype=torch.float64)
