"""Where a series of runs changed its level. Pure and deterministic; no torch.

Noise is taken to be that of independent runs, and no less than the runs' own intervals say.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dynamometer.results.history.student_t import two_sided_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Indices = NDArray[np.int64]

FEWEST_RUNS = 2
"""On each side of a change: one run alone that differs is what `compare` is for."""

SIGNIFICANT_P = 0.05
"""Of a series: over all places at which there might be a change."""


@dataclass(frozen=True)
class ChangePoint:
    """A change of level.

    Attributes:
        index: of the value that most likely is the first after it.
        earliest: the first index at which that might be, at 95 %.
        latest: the last.
        before: the level between the change before and this one.
        after: the level between this one and the next.
        p_value: of no change there, over all places of the series.
    """

    index: int
    earliest: int
    latest: int
    before: float
    after: float
    p_value: float


class _Candidate(NamedTuple):
    """The best place in one of the intervals that were searched."""

    start: int
    end: int
    split: int
    t: float


def change_points(values: Sequence[float], least_sd: float, floor: float) -> list[ChangePoint]:
    """Find the changes of level of a series.

    Intervals of many lengths, each by half of it beside the next, are searched for the place that
    parts them best; of those that differ beyond chance the shortest say where a change is, as they
    hold no other. Then each is tested by how much worse the series is explained without it, the
    others being where they then fit best: by a t test whose variance is that of all runs about
    their levels. The weakest is dropped until all are significant over every place that was
    searched (Bonferroni), and beyond the floor. So no permutation is needed.

    Args:
        values: in the order of time, on a scale on which noise is equal everywhere.
        least_sd: of a value, as its own interval has it; the scatter of the series may be more.
        floor: a smaller change is of no practical interest.

    Source:
        The intervals: S. Kovacs, P. Buhlmann, H. Li, A. Munk, Seeded binary segmentation,
        Biometrika 110(1), 2023. The choice among them: R. Baranowski, Y. Chen, P. Fryzlewicz,
        Narrowest-over-threshold detection of multiple change points, J. R. Stat. Soc. B 81(3),
        2019. To test again by a t test and drop the weakest: M. Fleming et al., Hunter: using
        change point detection to hunt for performance regressions, ICPE 2023.
    """
    if len(values) < 2 * FEWEST_RUNS:
        return []
    given = _without_spikes(np.asarray(values, dtype=np.float64), least_sd)
    sums = np.concatenate(([0.0], np.cumsum(given - given.mean())))
    searched = _searched(len(given))
    places = len(searched.starts)
    # Values that are all but equal would differ beyond chance by how they are rounded.
    sd = max(least_sd, _rough_sd(given), floor / 100)
    splits = _refined(sums, _narrowest(sums, searched, sd))
    while splits:
        sd, df = _sd(given, splits, least_sd)
        rests = [_without(sums, splits, number) for number in range(len(splits))]
        explained = _explained(sums, splits)
        costs = [explained - _explained(sums, rest) for rest in rests]
        p_values = [min(1.0, places * _p_value(each, sd, df)) for each in costs]
        levels = _levels(given, splits)
        steps = [abs(after - before) for before, after in pairwise(levels)]
        if max(p_values) > SIGNIFICANT_P:
            splits = _refined(sums, rests[costs.index(min(costs))])
        elif min(steps) < floor:
            splits = _refined(sums, rests[steps.index(min(steps))])
        else:
            ranges = _ranges(sums, splits, sd)
            return [
                ChangePoint(split, *place, *level, p_value)
                for split, place, level, p_value in zip(
                    splits, ranges, pairwise(levels), p_values, strict=True
                )
            ]
    return []


def _without_spikes(values: Values, least_sd: float) -> Values:
    """Return values of which none alone is far from both its neighbours on the same side.

    Such a one is moved to the nearer neighbour: a run that was disturbed is no change of level.
    Changes that last for two runs are left as they are.
    """
    if len(values) <= 2 * FEWEST_RUNS:
        return values
    far = _SPIKE * max(_rough_sd(values), least_sd)
    # The last has but one side: its neighbours are the two before it.
    left = np.concatenate(([values[2]], values[:-1]))
    right = np.concatenate((values[1:], [values[-3]]))
    highest, lowest = np.maximum(left, right), np.minimum(left, right)
    found = np.where(values > highest + far, highest, values)
    return np.where(values < lowest - far, lowest, found)


_SPIKE = 4.0


def _rough_sd(values: Values) -> float:
    """Return the standard deviation about levels of which nothing is known yet.

    From the median of differences of neighbours, in which a change of level shows but once.
    """
    differences = np.sort(np.abs(np.diff(values)))
    count = len(differences)
    median = float(differences[(count - 1) // 2] + differences[count // 2]) / 2
    return median / (_MEDIAN_OF_NORMAL * math.sqrt(2))


_MEDIAN_OF_NORMAL = 0.6745


class _Places(NamedTuple):
    """Places at which runs can be parted, each in an interval.

    Attributes:
        starts: of the intervals.
        splits: the places.
        ends: of the intervals.
        before: how many runs of the interval are before the place.
        after: how many are after it.
        weights: of the difference between both, over the standard deviation of a single value.
    """

    starts: Indices | int
    splits: Indices
    ends: Indices | int
    before: Values
    after: Values
    weights: Values


def _places(starts: Indices | int, splits: Indices, ends: Indices | int) -> _Places:
    before, after = (splits - starts).astype(np.float64), (ends - splits).astype(np.float64)
    weights = np.sqrt(before * after / (before + after))
    return _Places(starts, splits, ends, before, after, weights)


class _Searched(NamedTuple):
    """Every place that is searched, those of an interval one after another.

    Attributes:
        places: all of them.
        starts: of the interval of each place.
        ends: of the interval of each place.
        firsts: where in these the places of each interval begin, and where the last one's end.
    """

    places: _Places
    starts: Indices
    ends: Indices
    firsts: Indices


@functools.lru_cache(maxsize=32)  # each of a year of runs holds 280 kB
def _searched(n: int) -> _Searched:
    """Return what is searched of so many values, from the longest interval to the shortest."""
    start, end = np.array(list(_intervals(n))).T
    counts = end - start - 2 * FEWEST_RUNS + 1
    firsts = np.concatenate(([0], np.cumsum(counts)))
    within = np.arange(firsts[-1]) - np.repeat(firsts[:-1], counts)
    starts, ends = np.repeat(start, counts), np.repeat(end, counts)
    return _Searched(_places(starts, starts + FEWEST_RUNS + within, ends), starts, ends, firsts)


def _intervals(n: int) -> Iterator[tuple[int, int]]:
    """Yield where each interval starts and ends."""
    length = float(n)
    while True:
        whole = max(math.ceil(length), 2 * FEWEST_RUNS)
        count = 2 * math.ceil(n / whole) - 1
        for start in np.unique(np.linspace(0, n - whole, count).astype(np.int64)).tolist():
            yield start, start + whole
        if whole == 2 * FEWEST_RUNS:
            return
        length /= math.sqrt(2)


def _narrowest(sums: Values, searched: _Searched, sd: float) -> list[int]:
    """Return where the narrowest intervals part that differ beyond chance, in order."""
    t = _t(sums, searched.places)
    most = np.maximum.reduceat(t, searched.firsts[:-1])
    beyond = np.flatnonzero(most > _CANDIDATE_T * sd).tolist()
    found = [_best(searched, t, number) for number in beyond]
    found.sort(key=lambda each: (each.end - each.start, -each.t))
    splits: list[int] = []
    for each in found:
        if not any(each.start < split < each.end for split in splits):
            splits.append(each.split)
    return sorted(splits)


def _best(searched: _Searched, t: Values, number: int) -> _Candidate:
    """Return the best place of an interval."""
    first, last = searched.firsts[number : number + 2].tolist()
    place = first + int(t[first:last].argmax())
    return _Candidate(
        start=int(searched.starts[place]),
        end=int(searched.ends[place]),
        split=int(searched.places.splits[place]),
        t=float(t[place]),
    )


_CANDIDATE_T = 3.5
"""What is found so is tested again; that it is not noise alone is shown there."""


def _t(sums: Values, places: _Places) -> Values:
    """Return how far values on both sides of places differ.

    As a multiple of the standard deviation, once divided by it.
    """
    here = sums[places.splits]
    after = (sums[places.ends] - here) / places.after
    before = (here - sums[places.starts]) / places.before
    t: Values = np.abs(after - before) * places.weights
    return t


def _refined(sums: Values, splits: Sequence[int]) -> list[int]:
    """Return splits, each where it parts the runs between its neighbours best."""
    found = list(splits)
    for number in range(len(found)):
        _move(sums, found, number)
    return found


def _without(sums: Values, splits: Sequence[int], number: int) -> list[int]:
    """Return the others, with the neighbours of that one where they then fit best."""
    found = [*splits[:number], *splits[number + 1 :]]
    for neighbour in (number - 1, number):
        if 0 <= neighbour < len(found):
            _move(sums, found, neighbour)
    return found


def _move(sums: Values, splits: list[int], number: int) -> None:
    """Put a split where it parts the runs between its neighbours best."""
    start = splits[number - 1] if number else 0
    end = splits[number + 1] if number + 1 < len(splits) else len(sums) - 1
    inner, t = _profile(sums, start, end)
    splits[number] = int(inner[t.argmax()])


def _profile(sums: Values, start: int, end: int) -> tuple[Indices, Values]:
    """Return every place at which some runs can be parted, and how far they differ there."""
    inner = np.arange(start + FEWEST_RUNS, end - FEWEST_RUNS + 1)
    return inner, _t(sums, _places(start, inner, end))


def _explained(sums: Values, splits: Sequence[int]) -> float:
    """Return the sum of squares that levels between splits explain."""
    edges = np.array([0, *splits, len(sums) - 1])
    return float((np.diff(sums[edges]) ** 2 / np.diff(edges)).sum())


def _levels(values: Values, splits: Sequence[int]) -> list[float]:
    return [float(part.mean()) for part in _parts(values, splits)]


def _parts(values: Values, splits: Sequence[int]) -> list[Values]:
    """Return the values between splits, as `np.split` does, which takes far longer."""
    return [values[start:end] for start, end in pairwise((0, *splits, len(values)))]


def _sd(values: Values, splits: Sequence[int], least_sd: float) -> tuple[float, float]:
    """Return the standard deviation about the levels, and its degrees of freedom."""
    parts = _parts(values, splits)
    squares = math.fsum(float(((each - each.mean()) ** 2).sum()) for each in parts)
    df = max(len(values) - len(parts), 1)
    return max(math.sqrt(squares / df), least_sd), df


def _p_value(cost: float, sd: float, df: float) -> float:
    """Return that of no change at a place, given the squares that are unexplained without it."""
    if cost <= 0:
        return 1.0
    return two_sided_p(math.sqrt(cost) / sd, df) if sd else 0.0


def _ranges(sums: Values, splits: Sequence[int], sd: float) -> list[tuple[int, int]]:
    """Return between which indices the first run after each change is, at 95 %.

    These are all at which the sum of squares is not much more than at the best place.

    Source:
        B. E. Hansen, Sample splitting and threshold estimation, Econometrica 68(3), 2000: the
        region of likelihood ratios below 7.35, which of steps that are large holds more than 95 %.
    """
    edges = [0, *splits, len(sums) - 1]
    found = []
    for start, end in zip(edges, edges[2:], strict=False):
        inner, t = _profile(sums, start, end)
        near = inner[t**2 >= t.max() ** 2 - _LIKELIHOOD_RATIO * sd**2]
        found.append((int(near.min()), int(near.max())))
    return found


_LIKELIHOOD_RATIO = 7.35
