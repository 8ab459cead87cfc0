"""How one leaf of an arm deviates from what is expected, and whether rounding explains it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from dynamometer.dynamo.accuracy.numbers import finite
from dynamometer.dynamo.accuracy.spread import Centre, Distance, Spread

NOTHING = 64.0 * torch.finfo(torch.float32).eps
"""What a sum of numbers of size 1 may come to in float32 of which nothing is left."""


@dataclass(frozen=True)
class Multiples:
    """By how many times what rounding does in any run of eager an arm may be off.

    Attributes:
        element: of what it changes in an element, or usually in others of its magnitude.
        mean_square: of what it changes in the elements of a magnitude, in the mean square: many
            errors that are small one by one are no rounding. PyTorch's harness allows 2 to 3 times
            eager's error against float64 (`same` in `torch/_dynamo/utils.py`).
        slope: of how far it makes a result another multiple of what is expected.
        nothing: share of the largest gradient that another may be off by which is exactly zero.
        surprise: of what runs usually change in others of a magnitude: what is farther off in a
            run was a surprise, and an arm may have as many.
        coarse: how many times as much as by rounding weights and inputs are off in coarse runs.
            What rounding does smoothly grows by about as much. What it does now and then, as where
            it decides which activation is cut off, isn't larger there, but so many times as
            frequent: a right arm may meet it in a leaf in which none of the other runs did.
        of_coarse_runs: what an arm may be off by of what these are.
        chaos: share of its size that a result may change by; of what changes by more these say
            nothing, as that would be all there is.
    """

    element: float
    mean_square: float
    slope: float
    nothing: float
    surprise: float
    coarse: float = 1.0
    of_coarse_runs: Multiples | None = None
    chaos: float = 0.5


IN_FLOAT32 = Multiples(
    element=32.0, mean_square=10.0, slope=8.0, nothing=NOTHING, surprise=32.0, coarse=16.0,
    of_coarse_runs=Multiples(
        element=2.0, mean_square=1.25, slope=1.0, nothing=NOTHING, surprise=2.0
    ),
)  # fmt: skip
"""Right arms need up to 30 of three runs and 16 of nine for an element, in the convolutional
networks that are worst, and up to 7 of 17 in the mean square: gradients of normalisations are sums
that cancel, which eager takes in float64 on CPUs (docs/decisions/0011-correctness.md). Of 48 runs
that are off by 12 roundings, not 4, and of Inductor on 8 draws of weights and inputs, 18 of the 56
are accused without coarse runs in phlippe_resnet at batch 16, and none with them."""

IN_HALF = Multiples(
    element=8.0, mean_square=2.5, slope=4.0, nothing=2.0**-6, surprise=8.0, coarse=4.0,
    of_coarse_runs=Multiples(
        element=2.0, mean_square=1.25, slope=1.0, nothing=2.0**-6, surprise=8.0,
        chaos=0.2,
    ),
)  # fmt: skip
"""Of 16 runs Inductor needs up to 2.4, 1.1 and 1.5 where rounding doesn't decide everything: it
rounds where eager does, or more rarely (likewise)."""


def multiples_of(dtype: torch.dtype) -> Multiples:
    """Return those of a computation that rounds in a dtype."""
    return IN_HALF if dtype in {torch.float16, torch.bfloat16} else IN_FLOAT32


SURPRISE_MULTIPLE = 4.0
"""As many elements as surprised in any run may be off by this many times the greatest surprise
(`Spread.surprises`), and of a leaf that is mostly rounding by what any element was off by: there,
which ones come alive is chance."""

STEP_MULTIPLE = 2.0
"""What rests in all runs may be off by this many times what anything moved by, where most rest:
they are rounded to steps, and one is a step farther or isn't."""

LEFT_OUT_SHARE = 0.5
"""Of the multiple of rounding that an element may be off by: what a zero may be off by where no run
has any (`Deviation.left_out`)."""

ZERO_MULTIPLE = 128.0
"""What is zero in exact arithmetic is rounding in an arm, too, however it sums."""

ZERO = 0.01
"""Values that are a smaller share of rounding are zero in exact arithmetic."""

MEAN_SQUARE_SHARE = 0.3
"""Of the tolerance, which elements of a magnitude may be off by in the mean square whatever eager's
rounding."""

LARGEST_MEAN_SQUARE, LEAST_MULTIPLE = 0.5, 1.5
"""But by no more than this share of their size, or this many times what rounding changes if that is
more: a result that is missing is no rounding."""

SLOPE_ERRORS = 4.0
"""A result may be another multiple of what is expected by this many standard errors of what
rounding by itself would make it, besides."""

MOST_ROUNDING = 0.05
"""Where rounding is a larger share of the values, only large errors show, and that is said."""

LEAST_SIZE = 0.5
"""Of the smallest run's root mean square, and as much less as that is than the largest's: the size
of a result that is mostly rounding."""

RARE = 4.0
"""Times the usual run: what is farther off happens in few of them."""

_LITTLE = 0.01
"""A share of the values that rounding changes, of a result that isn't chaotic."""

_MUCH_ROUNDING, _MAIN = 1e-3, 0.1
"""Where rounding changes more than this share, as in half precision, kernels differ by how they sum
what cancels: elements that are a smaller share of the size of all are judged one by one alone."""

_TINY = float(torch.finfo(torch.float32).tiny)

_FEWEST = 8
"""Elements whose mean square says as much as that of many; of fewer it varies more."""

_FEW_MULTIPLE = 2.0


@dataclass(frozen=True)
class Deviation:
    """One leaf of an arm beside the values it is compared with.

    Attributes:
        centre: what is expected.
        actual: the arm's values.
        distance: of the one from the other.
        spread: how far runs of eager are from what is expected.
        multiples: of that, which the arm may be off by.
        nothing: what it may be off by in float32 if all of it is exactly zero.
    """

    centre: Centre
    actual: torch.Tensor
    distance: Distance
    spread: Spread
    multiples: Multiples = IN_FLOAT32
    nothing: float = NOTHING

    @classmethod
    def of(
        cls,
        centre: Centre,
        spread: Spread | None,
        actual: torch.Tensor,
        multiples: Multiples = IN_FLOAT32,
        resolution: torch.Tensor | None = None,
        nothing: float = NOTHING,
    ) -> Deviation:
        """Compare a leaf with what is expected, but for differences that can't be told apart."""
        nearer = actual if resolution is None else _nearer(actual, centre.values, resolution)
        found = Distance.between(centre, nearer)
        spread = spread or Spread.none_of(centre)
        return cls(centre, actual, found, spread, multiples, nothing)

    @property
    def has_strays(self) -> bool:
        """Whether it has no number where eager has one, or the other way round."""
        return self.distance.strays is not None

    @property
    def rounding_share(self) -> float:
        """What share of the values rounding changes, in the mean square; infinite of zeros."""
        rounding, size = self.spread.overall, self.centre.size
        return rounding / size if size else math.inf if rounding else 0.0

    @property
    def is_rare(self) -> bool:
        """Whether only what rounding rarely does explains it."""
        return self.distance.overall > RARE * self.spread.median

    @property
    def is_hopeless(self) -> bool:
        """Whether no number of runs would explain it."""
        if not self.centre.size:
            return False
        is_large = self.distance.overall > LARGEST_MEAN_SQUARE * self.centre.size
        return is_large and self.rounding_share < _LITTLE

    def problem(self, tolerance: float) -> str | None:
        """Return what is wrong with the arm's values, if anything is.

        Args:
            tolerance: what share of itself an element may be off by.
        """
        allowed = self._share_of_itself(tolerance)
        allowed[self.centre.values == 0] += self._least()
        if self.has_strays and self.spread.strays is not None:
            excused = self.spread.strays.excuse(self.actual, tolerance)
            allowed[excused & self.distance.elements.isinf()] = math.inf
        if bool((self.distance.elements > allowed).any()):
            problem = self._elements(allowed)
            if problem:
                return problem
        if self.rounding_share > LARGEST_MEAN_SQUARE:
            return self._size()  # there is little to see of the values themselves, which is said
        return self._mean_square(tolerance) or self._slope(tolerance)

    def left_out(self, tolerance: float) -> str | None:
        """Look for zeros that are too far from what is expected, where no run has any.

        A kernel that leaves elements out leaves zeros. Rounding makes no zero of a number far from
        it, unless a run shows one, as where an activation is cut off.

        Args:
            tolerance: what share of itself an element may be off by.
        """
        is_zero = self.actual == 0
        has_others = self.spread.has_zeros or bool((self.centre.values == 0).any())
        if has_others or self.rounding_share > LARGEST_MEAN_SQUARE or not bool(is_zero.any()):
            return None
        rounding = torch.maximum(self.spread.largest, self.spread.usual(self.centre))
        allowed = self._share_of_itself(tolerance)
        allowed += LEFT_OUT_SHARE * self.multiples.element * rounding
        distance = self.distance.elements  # infinite where eager has no number, as judged before
        over = is_zero & distance.isfinite() & (distance > allowed)
        return self._worst(over, allowed) if bool(over.any()) else None

    def _share_of_itself(self, tolerance: float) -> torch.Tensor:
        tiny = torch.finfo(self.actual.dtype).tiny  # below it, some flush to zero
        return tolerance * finite(self.centre.values).abs() + tiny

    def _elements(self, allowed: torch.Tensor) -> str | None:
        """Look at each element, with what rounding does to it."""
        if self.rounding_share > 1 / ZERO:
            largest = self.spread.largest
            is_nothing = finite(self.centre.values).abs() <= 2 * largest
            others = torch.where(is_nothing, self.spread.overall, self.spread.usual_of_all())
            rounding = ZERO_MULTIPLE * torch.maximum(largest, others.to(largest.dtype))
            over = self.distance.elements > allowed + rounding
            return self._worst(over, allowed + rounding) if bool(over.any()) else None
        usual, multiple = self.spread.usual(self.centre), self.multiples.element
        anywhere = 0.0
        if self.rounding_share > LARGEST_MEAN_SQUARE:
            usual = usual.clamp_min(self.spread.usual_of_all())  # whatever their magnitude
            multiple = IN_FLOAT32.element  # few are far off, as in any chaotic network
            anywhere = float(self.spread.largest.max())  # which these are is chance
        rounding = torch.maximum(self.spread.largest, usual)
        steps = STEP_MULTIPLE * self.spread.farthest_at_rest()
        most = allowed + torch.minimum(multiple * rounding, steps)
        over = self.distance.elements > most
        if not bool(over.any()):
            return None
        surprises = self.spread.surprises(usual)
        as_many = int(over.sum()) <= int((surprises > self.multiples.surprise).sum())
        farthest = SURPRISE_MULTIPLE * float(surprises.max()) * rounding
        too_far = self.distance.elements > allowed + farthest.clamp_min(anywhere)
        return None if as_many and not bool(too_far.any()) else self._worst(over, most)

    def _least(self) -> float:
        """Return what a zero may be off by: a rounding of 1, or of the largest value if less.

        Where all is zero, as what cancels exactly in eager, a few roundings of the terms.
        """
        values = self.centre.values
        of_float32 = torch.finfo(torch.float32).eps
        eps = min(torch.finfo(self.actual.dtype).eps, of_float32)
        largest = float(finite(values).abs().max()) if values.numel() else 0.0
        return eps * (min(1.0, largest) or self.nothing / of_float32)

    def _worst(self, over: torch.Tensor, allowed: torch.Tensor) -> str:
        excess = torch.where(over, self.distance.elements / allowed.clamp_min(_TINY), 0.0)
        index = int(excess.flatten().argmax())
        place = [int(each) for each in torch.unravel_index(torch.tensor(index), over.shape)]
        expected, found, most = (
            float(each.flatten()[index]) for each in (self.centre.values, self.actual, allowed)
        )
        return (
            f"{int(over.sum())} of {over.numel()} elements are wrong, the worst at {place}: "
            f"{found:.6g} where {expected:.6g} is expected, give or take {most:.2g}"
        )

    def _mean_square(self, tolerance: float) -> str | None:
        """Look at all elements of a magnitude together."""
        sizes, rounding = self.centre.sizes, self.spread.by_magnitude
        multiple, share = self.multiples.mean_square, MEAN_SQUARE_SHARE
        if self.actual.numel() < _FEWEST:
            multiple, share = _FEW_MULTIPLE * multiple, 1.0
        most = torch.maximum(LARGEST_MEAN_SQUARE * sizes, LEAST_MULTIPLE * rounding)
        allowed = torch.minimum(multiple * rounding, most) + share * tolerance * sizes
        counts = torch.bincount(self.centre.magnitudes.flatten(), minlength=len(sizes))
        judged = (counts >= min(_FEWEST, self.actual.numel())) & (
            rounding <= LARGEST_MEAN_SQUARE * sizes
        )
        judged[0] = False  # zeros have no size
        if self.rounding_share > _MUCH_ROUNDING:
            judged &= sizes >= _MAIN * self.centre.size
        errors = self.distance.by_magnitude
        if not bool((judged & (errors > allowed)).any()):
            return None
        worst = int(torch.where(judged, errors / allowed.clamp_min(_TINY), 0.0).argmax())
        size = float(sizes[worst])
        return (
            f"{int(counts[worst])} elements are off by {float(errors[worst]) / size:.2g} of their "
            f"size in the mean square, where {float(allowed[worst]) / size:.2g} is allowed"
        )

    def _size(self) -> str | None:
        """Look at how large values are that are mostly rounding: of what is missing there is none.

        An arm that is more precise than eager may be as small as float64's result.
        """
        if self.actual.numel() < _FEWEST or self.rounding_share > 1 / ZERO:
            return None
        sizes, size = (*self.spread.sizes, self.centre.size), self.distance.size
        least = LEAST_SIZE * min(sizes) ** 2 / max(sizes) if min(sizes) else 0.0
        if size >= least:
            return None
        return f"its root mean square is {size:.2g}, where {least:.2g} is the least to be expected"

    def _slope(self, tolerance: float) -> str | None:
        """Look for a factor, which shows in the sum of many elements before it does in any."""
        by_chance = self.rounding_share / math.sqrt(max(1, self.actual.numel()))
        allowed = tolerance + self.multiples.slope * self.spread.slope + SLOPE_ERRORS * by_chance
        if self.distance.slope <= allowed:
            return None
        return (
            f"it is off by {self.distance.slope:.2g} of itself on average, where {allowed:.2g} is "
            "allowed"
        )


def _nearer(actual: torch.Tensor, expected: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """Move values towards what is expected, by so much or until they are there."""
    found = actual.double() + (expected.double() - actual.double()).clamp(-by, by)
    is_number = actual.isfinite() & expected.isfinite() & by.isfinite()
    return torch.where(is_number, found, actual)
