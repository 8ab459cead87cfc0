"""How one leaf of an arm deviates from what is expected, and whether rounding explains it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from dynamometer.dynamo.numbers import (
    distances,
    finite,
    magnitudes_of,
    root_mean_square,
    typical,
)

if TYPE_CHECKING:
    from dynamometer.dynamo.expected import Rounding

ROUNDING_MULTIPLE = 32.0
"""An element may be off by this many times what rounding changes there, or in others of its
magnitude, in any of the runs of eager.

Right arms need up to 30 of three runs and 16 of nine, in the convolutional networks that are worst
(docs/decisions/0011-correctness.md).
"""

MEAN_SQUARE_MULTIPLE = 4.0
"""And elements of one magnitude by this many times in the mean square: many errors that are small
one by one are no rounding. PyTorch's harness allows 2 to 3 times eager's error against float64
(`same` in `torch/_dynamo/utils.py`)."""

LARGEST_MEAN_SQUARE, LEAST_MULTIPLE = 0.5, 1.5
"""But by no more than this share of their size, or this many times what rounding changes if that is
more: a result that is missing is no rounding."""

MEAN_SQUARE_SHARE = 0.3
"""Of the tolerance, which they may be off by in the mean square whatever eager's rounding."""

MOST_ROUNDING = 0.05
"""Where rounding is a larger share of the values, only large errors show, and that is said."""

_TINY = float(torch.finfo(torch.float32).tiny)

_ALL = 0.5
"""A share of the values that makes rounding all there is to see."""

_FEWEST = 8
"""Elements whose mean square says something."""


@dataclass(frozen=True)
class Deviation:
    """One leaf of an arm beside the values it is compared with.

    Attributes:
        values: expected.
        distances: of the arm's from these; infinite where only one is finite.
        actual: the arm's.
        spread: largest deviation of each element in any run of eager.
        magnitudes: which elements are of one magnitude: an index for each, 0 for zero and for
            whatever is not finite.
        typical: root mean square of `spread` for each magnitude.
        least: what a zero may be off by: a rounding of 1, or of the largest value if that is less.
    """

    values: torch.Tensor
    distances: torch.Tensor
    actual: torch.Tensor
    spread: torch.Tensor
    magnitudes: torch.Tensor
    typical: torch.Tensor
    least: float

    @classmethod
    def of(cls, rounding: Rounding, path: str, actual: torch.Tensor) -> Deviation:
        """Take a leaf out of what is expected."""
        values = rounding.centre[path].value
        away = distances(values, actual)
        spread = rounding.spread.get(path, torch.zeros_like(away))
        # Where rounding is as large as the values, its size has nothing to do with theirs.
        is_rounding = root_mean_square(spread) >= _ALL * root_mean_square(values)
        magnitudes = (
            torch.ones_like(away, dtype=torch.long) if is_rounding else magnitudes_of(values)
        )
        largest = float(finite(values).abs().max()) if values.numel() else 0.0
        eps = torch.finfo(actual.dtype).eps
        return cls(
            values=values,
            distances=away,
            actual=actual,
            spread=spread,
            magnitudes=magnitudes,
            typical=typical(spread, magnitudes),
            least=eps * (min(1.0, largest) if largest else 1.0),
        )

    @property
    def rounding_share(self) -> float:
        """What share of the values rounding changes, in the mean square; infinite of zeros."""
        rounding, size = root_mean_square(self.spread), root_mean_square(self.values)
        return rounding / size if size else math.inf if rounding else 0.0

    def problem(self, tolerance: float) -> str | None:
        """Say what is wrong with the arm's values, if anything is."""
        noise = torch.maximum(self.spread, self.typical[self.magnitudes])
        allowed = ROUNDING_MULTIPLE * noise + tolerance * finite(self.values).abs()
        allowed[self.values == 0] += self.least
        over = self.distances > allowed
        if bool(over.any()):
            return self._worst(over, allowed)
        return self._on_average(tolerance)

    def _worst(self, over: torch.Tensor, allowed: torch.Tensor) -> str:
        excess = torch.where(over, self.distances / allowed.clamp_min(_TINY), 0.0)
        index = int(excess.flatten().argmax())
        place = [int(each) for each in torch.unravel_index(torch.tensor(index), over.shape)]
        expected, found, most = (
            float(each.flatten()[index]) for each in (self.values, self.actual, allowed)
        )
        return (
            f"{int(over.sum())} of {over.numel()} elements are wrong, the worst at {place}: "
            f"{found:.6g} where {expected:.6g} is expected, give or take {most:.2g}"
        )

    def _on_average(self, tolerance: float) -> str | None:
        """Look at all elements of a magnitude together."""
        sizes = typical(self.values, self.magnitudes)
        errors = typical(self.distances, self.magnitudes)
        most = torch.maximum(LARGEST_MEAN_SQUARE * sizes, LEAST_MULTIPLE * self.typical)
        allowed = MEAN_SQUARE_MULTIPLE * self.typical + MEAN_SQUARE_SHARE * tolerance * sizes
        allowed = torch.minimum(allowed, most)
        counts = torch.bincount(self.magnitudes.flatten(), minlength=len(sizes))
        judged = (counts >= _FEWEST) & (self.typical <= sizes)
        judged[0] = False
        if not bool((judged & (errors > allowed)).any()):
            return None
        worst = int(torch.where(judged, errors / allowed.clamp_min(_TINY), 0.0).argmax())
        size = float(sizes[worst])
        return (
            f"{int(counts[worst])} elements are off by {float(errors[worst]) / size:.2g} of their "
            f"size in the mean square, where {float(allowed[worst]) / size:.2g} is allowed"
        )
