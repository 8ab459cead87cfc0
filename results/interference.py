"""Whether arms of one process disturb each other. Pure functions; no torch.

Idle threads of one runtime may spin on the cores of another's: call by call, eager beside ONNX
Runtime took 2.3 times as long as alone (docs/measuring.md).
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

from dynamometer.results.metrics import LATENCY, LATENCY_ALONE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from dynamometer.results.records import Measurement

LARGEST_SHIFT = 0.02
"""Alone and beside others an arm's latency may differ by this share (DESIGN section 5, point 3)."""

LONGEST_DISTURBANCE = 0.5
"""Of a replicate's blocks: if something else disturbed more, nothing is concluded from it."""

_SCATTER_FACTOR = 3.0
"""And by this many standard errors: machines drift between the two measurements."""


def shifted_arms(
    measurements: Iterable[Measurement], disturbed: Collection[int] = ()
) -> tuple[str, ...]:
    """Name the arms whose latency beside others differs from that alone.

    Args:
        measurements: of one process; those of other metrics are passed over.
        disturbed: blocks of it that tell nothing.
    """
    found = list(measurements)
    alone = {each.arm: _log_means(each) for each in found if each.metric == LATENCY_ALONE}
    beside = {each.arm: _log_means(each, disturbed) for each in found if each.metric == LATENCY}
    return tuple(arm for arm in beside if alone.get(arm) and _differ(alone[arm], beside[arm]))


def was_checked(measurements: Iterable[Measurement]) -> bool:
    """Tell whether every arm of a process was timed alone as well, with nothing disturbing it."""
    found = list(measurements)
    alone = {each.arm for each in found if each.metric == LATENCY_ALONE}
    return all(each.arm in alone for each in found if each.metric == LATENCY)


def _differ(visits_alone: list[float], visits_beside: list[float]) -> bool:
    if not visits_beside:
        return False
    if len(visits_beside) > 1:
        scatter = statistics.stdev(visits_beside)
        scatter *= math.sqrt(1 / len(visits_alone) + 1 / len(visits_beside))
    else:
        scatter = 0.0
    shift = abs(statistics.median(visits_alone) - statistics.median(visits_beside))
    return shift > max(math.log1p(LARGEST_SHIFT), _SCATTER_FACTOR * scatter)


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
