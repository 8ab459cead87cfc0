"""Indices, counts and truth values of an arm beside those of eager's runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from dynamometer.dynamo.accuracy.deviation import MOST_ROUNDING

if TYPE_CHECKING:
    from dynamometer.dynamo.accuracy.expected import Known

_FEWEST_COUNTS = 3
"""Different values from which on a whole number is taken for a count, not for an index."""


_FEWEST_THAT_VARY = 0.5
"""Share of the elements of a leaf of counts that are others in some run."""


@dataclass(frozen=True)
class Judged:
    """How an arm's whole numbers came out.

    Attributes:
        wrong: how many elements are wrong.
        share: of the elements, that rounding decides.
        is_loose: whether that hides errors.
    """

    wrong: int = 0
    share: float = 0.0
    is_loose: bool = False

    @classmethod
    def of(cls, known: Known, actual: torch.Tensor, *, is_half: bool) -> Judged:
        """Judge them: right is what some run gave, or might have given.

        Args:
            known: what runs of eager gave, of the same shape.
            actual: the arm's.
            is_half: whether the computation rounds in half precision.
        """
        eager = known.eager.value
        differs = eager != actual
        if not bool(differs.any()):
            return cls()
        decided = torch.zeros_like(differs)
        for other in known.others:
            differs &= other != actual
            decided |= other != eager
        wrong, share = int(differs.sum()), float(decided.double().mean())
        if not wrong:
            return cls(0, share, share > MOST_ROUNDING)
        is_right = (
            (is_half and _is_as_near(known, actual))
            or _are_as_few(known, actual, wrong)
            or _are_in_range(known, actual, differs)
        )
        return cls(0, share, is_loose=True) if is_right else cls(wrong, share)


def _is_as_near(known: Known, actual: torch.Tensor) -> bool:
    """Return whether no more whole numbers are one off float64's than eager's are.

    What is rounded to half precision before it is rounded to a whole number is often another one
    than what is rounded once, as in a fused kernel, which is the nearer of the two. Of truth values
    and indices, whose distance means nothing, that says nothing.
    """
    if known.exact is None or actual.dtype is torch.bool:
        return False
    off, eagers = (
        (each.double() - known.exact.double()).abs() for each in (actual, known.eager.value)
    )
    return bool((off > 0).sum() <= (eagers > 0).sum()) and bool(off.max() <= 1 >= eagers.max())


def _are_as_few(known: Known, actual: torch.Tensor, wrong: int) -> bool:
    """Return whether truth values that no run gave are as few as a further run might give.

    How many places a further run decides otherwise than all before is estimated by how many one
    run alone decided so, over the number of runs (I. J. Good, Biometrika 40, 1953). An arm sums in
    another order than any run, so it may have as many as all runs. It may be off float64's in no
    more places than eager is.
    """
    if actual.dtype is not torch.bool or known.exact is None:
        return False
    often = torch.zeros(actual.shape, dtype=torch.int64)
    for run in known.others:
        if not torch.equal(run, known.exact):  # eager is off that again and again
            often += run != known.eager.value
    off, eagers = (int((each != known.exact).sum()) for each in (actual, known.eager.value))
    return wrong <= int((often == 1).sum()) and off <= eagers


def _are_in_range(known: Known, actual: torch.Tensor, differs: torch.Tensor) -> bool:
    """Return whether counts lie where runs' do, half of their range on either side included.

    How many elements are beyond a threshold differs from run to run. Where most elements are the
    same in all runs, or one is below zero, they are indices or something else.

    Args:
        known: what runs gave.
        actual: the arm's.
        differs: where no run gave that.
    """
    if actual.dtype is torch.bool or len(known.others) < _FEWEST_COUNTS - 1:
        return False
    runs = torch.stack((known.eager.value, *known.others)).double()
    values = (runs.sort(dim=0).values.diff(dim=0) != 0).sum(0) + 1
    lowest, highest, found = runs.amin(0), runs.amax(0), actual.double()
    are_counts = values >= _FEWEST_COUNTS
    if bool((runs < 0).any()) or float(are_counts.double().mean()) < _FEWEST_THAT_VARY:
        return False
    margin = (highest - lowest) / 2
    is_in = (found >= (lowest - margin).clamp_min(0)) & (found <= highest + margin) & are_counts
    return bool(is_in[differs].all())
