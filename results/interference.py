"""Whether arms of one process disturb each other. Pure functions; no torch.

Idle threads of one runtime may spin on the cores of another's: call by call, eager beside ONNX
Runtime took 2.3 times as long as alone (docs/measuring.md).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy import special

from dynamometer.results.metrics import LATENCY, LATENCY_ALONE, LATENCY_APART

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dynamometer.results.records import Measurement

LARGEST_SHIFT = 0.02
"""Alone and beside others an arm's latency may differ by this share (DESIGN section 5, point 3)."""

LONGEST_DISTURBANCE = 0.5
"""Of a replicate's blocks: if something else disturbed more, nothing is concluded from it."""

_WRONGLY = 0.01
"""And by more than scatter alone would have it in this share of processes."""

_FEWEST_MOMENTS = 8
"""Into which blocks are divided: what one arm alone met is one more of them, and among nine moments
of either arm the farthest is that one in a ninth of all cases."""

_FIRST_BLOCKS = 2
"""Left out of moments, where there are others: arms follow their own settling there."""

_MOMENTS = 2
"""Turns that follow each other at once tell of one moment, however many they are; so few count."""

_FAR = 3.0
"""In standard errors: what turns must differ by from blocks to take their place."""


def seems_to_interfere(
    measurements: Iterable[Measurement], disturbed: Collection[int] = ()
) -> bool:
    """Tell whether arms compare otherwise in their blocks than they do alone.

    What slows all of them by the same factor is the machine's doing and changes no speedup. Nor is
    it the arms' doing when each was alone at a moment of its own while the machine's speed varied:
    how much it does is seen in the blocks, whose moments are as different. So the ratio of two arms
    alone counts when no two moments of the blocks, one of each arm, give one as far off.

    Args:
        measurements: of one process; those of other metrics are passed over.
        disturbed: blocks of it that tell nothing.
    """
    there, beside = _elsewhere(measurements, LATENCY_ALONE, disturbed)
    arms = [arm for arm in beside if beside[arm] and there.get(arm)]
    return any(
        _is_elsewhere([there[one], there[other]], [beside[one], beside[other]])
        for one, other in itertools.combinations(arms, 2)
    )


def _is_elsewhere(there: Sequence[list[float]], beside: Sequence[list[float]]) -> bool:
    """Tell whether two arms' ratio alone is none that any moments of their blocks give."""
    ratio = statistics.median(there[0]) - statistics.median(there[1])
    usual = statistics.median(beside[0]) - statistics.median(beside[1])
    one, other = (_moments(*each) for each in zip(beside, there, strict=True))
    inside = min(one) - max(other) <= ratio <= max(one) - min(other)
    return not inside and abs(ratio - usual) > math.log1p(LARGEST_SHIFT)


def _moments(values: list[float], alone: list[float]) -> list[float]:
    """Give medians of blocks in a row: as many as were alone, but of enough moments.

    The first blocks follow the arms' settling rather than each other.
    """
    values = values[_FIRST_BLOCKS:] if len(values) > 2 * _FIRST_BLOCKS else values
    most = max(1, min(len(alone), len(values) // _FEWEST_MOMENTS))
    starts = range(0, len(values), most)
    return [statistics.median(values[start : start + most]) for start in starts]


def is_confirmed(measurements: Iterable[Measurement], disturbed: Collection[int] = ()) -> bool:
    """Tell whether arms certainly compare otherwise in blocks than in processes of their own.

    Alone, each is timed once, and one after the other: on a machine whose speed varies that differs
    for no fault of the arms. Their turns show how much it varies.
    """
    moves, _ = _moves(*_elsewhere(measurements, LATENCY_APART, disturbed), _MOMENTS)
    return any(each.is_beyond(_FAR) for each in moves)


def is_refuted(measurements: Iterable[Measurement], disturbed: Collection[int] = ()) -> bool:
    """Tell whether arms compare in blocks as they do in processes of their own, as far as is seen.

    Where that is neither confirmed nor refuted the machine varies too much to tell.
    """
    moves, _ = _moves(*_elsewhere(measurements, LATENCY_APART, disturbed), _MOMENTS)
    return not any(each.is_beyond(1.0) for each in moves)


def agree(one: Iterable[Measurement], other: Iterable[Measurement]) -> bool:
    """Tell whether arms compare alike in two measurements of their latencies."""
    there, beside = ({each.arm: _log_means(each) for each in found} for found in (one, other))
    return not _differ(there, beside, max(map(len, there.values()), default=1))


def was_checked(measurements: Iterable[Measurement]) -> bool:
    """Tell whether every arm of a process was timed alone as well, with nothing disturbing it."""
    found = list(measurements)
    alone = {each.arm for each in found if each.metric == LATENCY_ALONE}
    return all(each.arm in alone for each in found if each.metric == LATENCY)


_Series = dict[str, list[float]]


def _elsewhere(
    measurements: Iterable[Measurement], metric: str, disturbed: Collection[int]
) -> tuple[_Series, _Series]:
    there: defaultdict[str, list[float]] = defaultdict(list)
    beside: dict[str, list[float]] = {}
    for each in measurements:
        if each.metric == metric:
            there[each.arm] += _log_means(each)  # turns come one by one
        elif each.metric == LATENCY:
            beside[each.arm] = _log_means(each, disturbed)
    return there, beside


@dataclass(frozen=True)
class _Move:
    """By how much the log latency of one arm over another's has moved, and its standard error."""

    shift: float
    error: float

    def is_beyond(self, errors: float) -> bool:
        return abs(self.shift) > max(math.log1p(LARGEST_SHIFT), errors * self.error)


def _differ(there: _Series, beside: _Series, most: int) -> bool:
    moves, df = _moves(there, beside, most)
    if not moves:
        return False
    quantile = float(special.stdtrit(df, 1 - _WRONGLY / (2 * len(moves)))) if df else 0.0
    return any(each.is_beyond(quantile) for each in moves)


def _moves(there: _Series, beside: _Series, most: int) -> tuple[list[_Move], int]:
    """Compare every two arms in two measurements.

    Args:
        there: log latencies of each arm.
        beside: likewise, to be compared with those.
        most: as how many independent ones those of `there` count at most.

    Returns:
        The moves, and the degrees of freedom of their errors; the variance is the larger of the two
        that are pooled over arms.
    """
    arms = [arm for arm in beside if beside[arm] and there.get(arm)]
    if not arms:
        return [], 0
    variance, df = max(_pooled([each[arm] for arm in arms]) for each in (there, beside))
    shift = {arm: statistics.median(beside[arm]) - statistics.median(there[arm]) for arm in arms}
    weight = {arm: 1 / len(beside[arm]) + 1 / min(most, len(there[arm])) for arm in arms}
    return [
        _Move(shift[one] - shift[other], math.sqrt(variance * (weight[one] + weight[other])))
        for one, other in itertools.combinations(arms, 2)
    ], df


def _pooled(series: Iterable[list[float]]) -> tuple[float, int]:
    """Give the variance within series, over all of them, and its degrees of freedom."""
    several = [each for each in series if len(each) > 1]
    df = sum(len(each) - 1 for each in several)
    squares = sum(_variance(each) * (len(each) - 1) for each in several)
    return (squares / df, df) if df else (0.0, 0)


def _variance(values: list[float]) -> float:
    """Give the variance; of many by the median absolute deviation, as a few may be far off."""
    if len(values) < _MANY:
        return statistics.variance(values)
    middle = statistics.median(values)
    return (_SD_OVER_MAD * statistics.median(abs(each - middle) for each in values)) ** 2


_MANY = 5
_SD_OVER_MAD = 1.4826
"""Of a normal distribution."""


def _log_means(measurement: Measurement, left_out: Collection[int] = ()) -> list[float]:
    """Give the log of the mean latency of each block.

    The mean, as it is the same however many calls make a sample, which differs alone and beside a
    faster arm.
    """
    by_block: defaultdict[int, list[float]] = defaultdict(list)
    for block, sample in zip(measurement.blocks, measurement.samples, strict=True):
        if block not in left_out:
            by_block[block].append(sample)
    return [math.log(statistics.fmean(samples)) for samples in by_block.values()]
