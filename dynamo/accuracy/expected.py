"""What a call is to come to, and how far rounding takes it, from several runs of eager."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from dynamometer.dynamo.accuracy.deviation import NOTHING, ZERO
from dynamometer.dynamo.accuracy.numbers import all_finite, all_same, distances, root_mean_square
from dynamometer.dynamo.accuracy.spread import Centre, Distance, Spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.dynamo.accuracy.leaves import Leaf, Leaves

CHANGE = "change of "
"""How the paths of changes begin. What doesn't change has no such leaf: its change is zero."""


_UNLIKE, _UNLIKE_TOLERANCES = 30.0, 10.0
"""If float64 is this many times farther from eager than rounding takes it, and this many
tolerances, in the mean square, the two did not compute the same thing: it is no referee."""


@dataclass(frozen=True)
class Known:
    """What is known of one leaf.

    Attributes:
        eager: eager's.
        centre: what an arm's is compared with: float64's values, or eager's where one of the two
            has no number there, or float64 computed something else; `None` of what is not of
            floating point.
        spread: how far runs of eager are from the centre; `None` without any.
        coarse: how far coarse runs are (`deviation.Multiples.coarse`); `None` without any.
        others: of integers, what runs gave that differ from eager's; not coarse ones.
        exact: of integers, what the run in float64 gave.
        unlike: what would have been the centre, where float64 is no referee: low precision may be
            off by the same again and again, and an arm that isn't is right.
        beyond: float64's values, if eager overflows somewhere: of these any number is right.
    """

    eager: Leaf
    centre: Centre | None = None
    spread: Spread | None = None
    coarse: Spread | None = None
    others: tuple[torch.Tensor, ...] = ()
    exact: torch.Tensor | None = None
    unlike: Centre | None = None
    beyond: torch.Tensor | None = None

    @property
    def is_zero(self) -> bool:
        """Whether it is zero in exact arithmetic, so that only rounding is to be seen."""
        if self.centre is None or self.spread is None or not self.has_truth:
            return False
        return self.centre.size < ZERO * self.spread.overall

    @property
    def has_truth(self) -> bool:
        """Whether it is compared with float64's values."""
        return self.centre is not None and self.centre.values is not self.eager.value

    def with_run(self, run: Leaf | None, *, coarse: bool = False) -> Known:
        """Take a run into account that has the leaf in the same form.

        Args:
            run: its leaf.
            coarse: whether it is off by more than by rounding.
        """
        if run is None or not _are_alike(self.eager.value, run.value):
            return self
        if self.centre is None:
            if coarse:
                return self
            same_again = torch.equal(self.eager.value, run.value)
            return self if same_again else replace(self, others=(*self.others, run.value))
        if coarse and not torch.equal(run.value.isfinite(), self.centre.values.isfinite()):
            return self  # what overflows there says nothing of what may be NaN in an arm
        found = Distance.between(self.centre, run.value)
        before = self.coarse if coarse else self.spread
        spread = before.with_run(found) if before else Spread.of(found)
        return replace(self, coarse=spread) if coarse else replace(self, spread=spread)


@dataclass(frozen=True)
class Expected:
    """What a call is to come to, from several runs of eager.

    Attributes:
        leaves: what is known of each.
    """

    leaves: Mapping[str, Known]

    @classmethod
    def of(
        cls,
        eager: Leaves,
        truth: Leaves | None = None,
        runs: Sequence[Leaves] = (),
        tolerance: float = 0.0,
    ) -> Expected:
        """Learn from some runs what to expect.

        Args:
            eager: eager's own result.
            truth: the result in float64.
            runs: other results that are as right as eager's.
            tolerance: what share of itself an element may be off by.
        """
        found = {
            path: _known(
                leaf,
                (truth or {}).get(path),
                [run.get(path) or no_change(path, leaf) for run in runs],
                tolerance,
            )
            for path, leaf in eager.items()
        }
        return cls(found)

    def with_run(self, run: Leaves, *, coarse: bool = False) -> Expected:
        """Take another run of eager into account, which may be off by more than by rounding."""
        return Expected(
            {
                path: known.with_run(run.get(path) or no_change(path, known.eager), coarse=coarse)
                for path, known in self.leaves.items()
            }
        )

    def and_unchanged(self, actual: Leaves) -> Expected:
        """Expect what an arm changes, and eager does not, to change by zero."""
        still = {
            path: _known(zero, None, [], 0.0)
            for path, leaf in actual.items()
            if path not in self.leaves and (zero := no_change(path, leaf))
        }
        return Expected({**self.leaves, **still}) if still else self


def _known(eager: Leaf, truth: Leaf | None, runs: Sequence[Leaf | None], tolerance: float) -> Known:
    if not isinstance(eager.value, torch.Tensor) or not eager.value.is_floating_point():
        is_known = truth is not None and _are_alike(eager.value, truth.value)
        known = Known(eager, exact=truth.value if truth is not None and is_known else None)
        for run in (truth, *runs):
            known = known.with_run(run)
        return known
    known = Known(eager, Centre(eager.value))
    for run in runs:
        known = known.with_run(run)
    if truth is None or not _are_alike(eager.value, truth.value):
        return known
    # Where a number overflows, what is computed with it may be another number, too.
    beyond = None if all_finite(eager.value) else truth.value
    are_numbers = eager.value.isfinite() & _is_in_range(truth.value, eager.value.dtype)
    if not bool(are_numbers.any()):
        return replace(known, beyond=beyond)
    values = truth.value
    if not bool(are_numbers.all()):
        values = torch.where(are_numbers, values, eager.value.double())
    if not _is_like(known, values, tolerance):
        return replace(known, unlike=Centre(values, beside=known.centre), beyond=beyond)
    known = Known(eager, Centre(values), beyond=beyond)
    for run in (eager, *runs):
        known = known.with_run(run)
    return known


def _is_in_range(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return where there are numbers that a dtype has, too: float64's lowest is none of float32."""
    return values.abs() <= torch.finfo(dtype).max


def _is_like(known: Known, truth: torch.Tensor, tolerance: float) -> bool:
    """Return whether float64 computed what eager did."""
    if known.centre is None:
        return False
    size = known.centre.size
    if size < NOTHING and root_mean_square(truth) < ZERO * size:
        return True  # zero in exact arithmetic, of which eager may leave the same again and again
    distance = root_mean_square(distances(truth, known.eager.value))
    usual = known.spread.overall if known.spread else 0.0
    return distance <= max(_UNLIKE * usual, _UNLIKE_TOLERANCES * tolerance * size)


def are_identical(one: Leaves, other: Leaves) -> bool:
    """Return whether two results have the same leaves, bit for bit but for the sign of zero."""
    return one.keys() == other.keys() and all(
        leaf.kind == other[path].kind and are_equal(leaf, other[path]) for path, leaf in one.items()
    )


def are_equal(one: Leaf, other: Leaf) -> bool:
    """Return whether two leaves of one kind are equal; what can't be compared counts as equal."""
    if not isinstance(one.value, torch.Tensor):
        if one.value is other.value or not one.is_comparable or one.value == other.value:
            return True
        return bool(one.value != one.value) and bool(other.value != other.value)
    return all_same(one.value, other.value)


def no_change(path: str, leaf: Leaf) -> Leaf | None:
    """Return a change of zero beside another; `None` beside what is no change."""
    if not path.startswith(CHANGE) or not isinstance(leaf.value, torch.Tensor):
        return None
    return replace(leaf, value=torch.zeros_like(leaf.value))


def _are_alike(one: object, other: object) -> bool:
    """Return whether two leaves can be subtracted, or compared element by element."""
    return (
        isinstance(one, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and one.shape == other.shape
        and one.is_floating_point() == other.is_floating_point()
    )
