"""How far results of the same computation are from one of them, in one leaf."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from dynamometer.dynamo.accuracy.numbers import (
    all_finite,
    distances,
    finite,
    geometric_means,
    magnitudes_of,
    mean_squares,
    root_mean_square,
)


@dataclass(frozen=True)
class Centre:
    """A leaf that others are compared with.

    Attributes:
        values: of floating point, on the CPU.
        beside: the centre whose magnitudes its elements have, where that is another.
    """

    values: torch.Tensor
    beside: Centre | None = None

    @cached_property
    def magnitudes(self) -> torch.Tensor:
        """Which elements are of one magnitude (`numbers.magnitudes_of`)."""
        return magnitudes_of(self.values) if self.beside is None else self.beside.magnitudes

    @cached_property
    def sizes(self) -> torch.Tensor:
        """Root mean square of the elements of each magnitude."""
        return mean_squares(self.values, self.magnitudes)

    @cached_property
    def size(self) -> float:
        """Root mean square of all elements."""
        return root_mean_square(self.values)


@dataclass(frozen=True)
class Strays:
    """Elements of runs that are numbers where the centre's are none, or the other way round.

    Attributes:
        is_none: where some run has no number, or another kind of none.
        lowest: of the numbers that runs have there; infinite without any.
        highest: likewise.
    """

    is_none: torch.Tensor
    lowest: torch.Tensor
    highest: torch.Tensor

    @classmethod
    def of(cls, distances: torch.Tensor, values: torch.Tensor) -> Strays | None:
        """Return those of one run; `None` if it has none."""
        if all_finite(distances):
            return None
        strays, wide = distances.isinf(), values.double()
        are_numbers = strays & wide.isfinite()
        return cls(
            strays & ~are_numbers,
            torch.where(are_numbers, wide, torch.inf),
            torch.where(are_numbers, wide, -torch.inf),
        )

    def and_those(self, more: Strays | None) -> Strays:
        """Take those of another run into account."""
        if more is None:
            return self
        return Strays(
            self.is_none | more.is_none,
            self.lowest.minimum(more.lowest),
            self.highest.maximum(more.highest),
        )

    def excuse(self, values: torch.Tensor, tolerance: float) -> torch.Tensor:
        """Return where an arm may have what the centre hasn't: no number, or one as runs have it.

        Args:
            values: the arm's.
            tolerance: what share of itself a number may be off by.
        """
        wide = values.double()
        tiny = torch.finfo(values.dtype).tiny  # below it, some flush to zero
        margin = (self.highest - self.lowest) + tolerance * wide.abs() + tiny
        is_within = (wide >= self.lowest - margin) & (wide <= self.highest + margin)
        return torch.where(wide.isfinite(), is_within, self.is_none)


@dataclass(frozen=True)
class Distance:
    """How far another leaf is from a centre.

    Attributes:
        elements: absolute difference of each; infinite where only one of the two is finite.
        by_magnitude: root mean square of these for each magnitude of the centre.
        overall: root mean square of all.
        size: root mean square of the other's own values.
        slope: how far the other is from being the centre once, on average: 0.1 if it is 1.1 times
            the centre, 0 if it differs from it by chance.
        strays: what there is where the distance is infinite; `None` if it is nowhere.
        has_zeros: whether any of the other's values is zero.
    """

    elements: torch.Tensor
    by_magnitude: torch.Tensor
    overall: float
    size: float
    slope: float
    strays: Strays | None = None
    has_zeros: bool = False

    @classmethod
    def between(cls, centre: Centre, other: torch.Tensor) -> Distance:
        """Compare a leaf with a centre of the same shape."""
        elements = distances(centre.values, other)
        return cls(
            elements,
            mean_squares(elements, centre.magnitudes),
            root_mean_square(elements),
            root_mean_square(other),
            _slope(centre.values, other),
            Strays.of(elements, other),
            bool((other == 0).any()),
        )


def _slope(centre: torch.Tensor, other: torch.Tensor) -> float:
    known, found = centre.double().flatten(), other.double().flatten()
    if not (all_finite(known) and all_finite(found)):
        are_numbers = known.isfinite() & found.isfinite()
        known, found = (torch.where(are_numbers, each, 0.0) for each in (known, found))
    largest = float(known.abs().max()) if known.numel() else 0.0
    if not largest:
        return 0.0
    known, found = known / largest, found / largest  # the square of float64's largest is none
    return abs(float(known @ found) / float(known @ known) - 1)


@dataclass(frozen=True)
class Spread:
    """How far several runs are from a centre.

    Attributes:
        largest: distance of each element in the run where it is farthest, of those in which it is
            a number as the centre's is.
        second: in the run where it is second.
        by_magnitude: largest root mean square of a run, for each magnitude of the centre.
        runs: root mean square of all elements, of each run.
        sizes: root mean square of each run's own values.
        slope: largest of a run.
        strays: where rounding decides whether there is a number; `None` for nowhere.
        has_zeros: whether any value of a run is zero.
    """

    largest: torch.Tensor
    second: torch.Tensor
    by_magnitude: torch.Tensor
    runs: tuple[float, ...]
    sizes: tuple[float, ...]
    slope: float
    strays: Strays | None = None
    has_zeros: bool = False

    @classmethod
    def of(cls, run: Distance) -> Spread:
        """Begin with one run."""
        numbers = finite(run.elements)
        return cls(
            numbers,
            torch.zeros_like(numbers),
            run.by_magnitude,
            (run.overall,),
            (run.size,),
            run.slope,
            run.strays,
            run.has_zeros,
        )

    @classmethod
    def none_of(cls, centre: Centre) -> Spread:
        """Return that of no run at all."""
        nothing = torch.zeros_like(centre.values, dtype=torch.float32)
        return cls(nothing, nothing, torch.zeros_like(centre.sizes), (0.0,), (centre.size,), 0.0)

    @property
    def overall(self) -> float:
        """Largest root mean square of a run."""
        return max(self.runs)

    @property
    def median(self) -> float:
        """Root mean square of the run in the middle."""
        return statistics.median(self.runs)

    def with_run(self, run: Distance) -> Spread:
        """Take another run into account."""
        numbers = finite(run.elements)
        return replace(
            self,
            largest=torch.maximum(self.largest, numbers),
            second=torch.maximum(self.second, torch.minimum(self.largest, numbers)),
            by_magnitude=torch.maximum(self.by_magnitude, run.by_magnitude),
            runs=(*self.runs, run.overall),
            sizes=(*self.sizes, run.size),
            slope=max(self.slope, run.slope),
            strays=self.strays.and_those(run.strays) if self.strays else run.strays,
            has_zeros=self.has_zeros or run.has_zeros,
        )

    def usual(self, centre: Centre) -> torch.Tensor:
        """Return what is usual of each element: the geometric mean of its magnitude.

        Few that are far off don't set it: there are results of which some rows are rounding, and
        the others precise.
        """
        return geometric_means(self.largest, centre.magnitudes)[centre.magnitudes]

    def farthest_at_rest(self) -> torch.Tensor:
        """Return how far anything moved, for elements that rest in all runs, if most do.

        Values that are rounded to steps rest in most runs, and move by a step in few. Else it is
        infinity.
        """
        rests = self.largest == 0
        if 2 * int(rests.sum()) <= rests.numel():
            return torch.full_like(self.largest, torch.inf)
        return torch.where(rests, self.largest.max(), torch.inf)

    def usual_of_all(self) -> float:
        """Return the geometric mean of all elements, which few that are noisy don't set either."""
        one = torch.zeros_like(self.largest, dtype=torch.int64)
        return float(geometric_means(self.largest, one)[0])

    def surprises(self, usual: torch.Tensor) -> torch.Tensor:
        """Return how many times farther each element was in one run than in all others.

        Where rounding decides which activation is cut off, that is much, and may happen to an arm
        as well.
        """
        known = torch.maximum(self.second, usual)
        return finite(torch.where(known > 0, self.largest / known, 0.0))
