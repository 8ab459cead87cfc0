"""Whether arms of one process disturb each other. Pure functions; no torch.

Idle threads of one runtime may spin on the cores of another's: call by call, eager beside ONNX
Runtime took 2.3 times as long as alone (docs/measuring.md).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

from dynamometer.results.metrics import LATENCY, LATENCY_ALONE, LATENCY_APART

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from dynamometer.results.records import Measurement

LARGEST_SHIFT = 0.02
"""Alone and beside others an arm's latency may differ by this share (DESIGN section 5, point 3)."""

LONGEST_DISTURBANCE = 0.5
"""Of a replicate's blocks: if something else disturbed more, nothing is concluded from it."""

_SCATTER_FACTOR = 3.0
"""And by this many standard errors: machines drift between the two measurements."""


def seems_to_interfere(
    measurements: Iterable[Measurement], disturbed: Collection[int] = ()
) -> bool:
    """Tell whether arms compare otherwise in their blocks than they do alone.

    What slows all of them by the same factor is the machine's doing and changes no speedup.

    Args:
        measurements: of one process; those of other metrics are passed over.
        disturbed: blocks of it that tell nothing.
    """
    return _compare_otherwise(measurements, LATENCY_ALONE, disturbed)


def is_confirmed(measurements: Iterable[Measurement], disturbed: Collection[int] = ()) -> bool:
    """Tell whether arms compare otherwise in their blocks than in processes of their own.

    Alone, each is timed once, and one after the other: on a machine whose speed varies that differs
    for no fault of the arms. Their turns show how much it varies.
    """
    return _compare_otherwise(measurements, LATENCY_APART, disturbed)


def agree(one: Iterable[Measurement], other: Iterable[Measurement]) -> bool:
    """Tell whether arms compare alike in two measurements of their latencies."""
    return not _differ(
        {each.arm: _log_means(each) for each in one}, {each.arm: _log_means(each) for each in other}
    )


def was_checked(measurements: Iterable[Measurement]) -> bool:
    """Tell whether every arm of a process was timed alone as well, with nothing disturbing it."""
    found = list(measurements)
    alone = {each.arm for each in found if each.metric == LATENCY_ALONE}
    return all(each.arm in alone for each in found if each.metric == LATENCY)


def _compare_otherwise(
    measurements: Iterable[Measurement], elsewhere: str, disturbed: Collection[int]
) -> bool:
    found = list(measurements)
    there = {each.arm: _log_means(each) for each in found if each.metric == elsewhere}
    beside = {each.arm: _log_means(each, disturbed) for each in found if each.metric == LATENCY}
    return _differ(there, beside)


def _differ(there: Mapping[str, list[float]], beside: Mapping[str, list[float]]) -> bool:
    arms = [arm for arm in beside if beside[arm] and there.get(arm)]
    scatter = max(_scatter([each[arm] for arm in arms]) for each in (there, beside))
    shifts = [
        (
            statistics.median(beside[arm]) - statistics.median(there[arm]),
            scatter**2 * (1 / len(beside[arm]) + 1 / len(there[arm])),
        )
        for arm in arms
    ]
    return any(
        abs(one - other) > max(math.log1p(LARGEST_SHIFT), _SCATTER_FACTOR * math.sqrt(v + w))
        for (one, v), (other, w) in itertools.combinations(shifts, 2)
    )


def _scatter(series: Iterable[list[float]]) -> float:
    """Give the standard deviation within series, over all of them."""
    variances = [statistics.variance(each) for each in series if len(each) > 1]
    return math.sqrt(statistics.fmean(variances)) if variances else 0.0


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
