"""Whether arms of one process disturb each other. Pure functions; no torch.

Idle threads of one runtime may spin on the cores of another's: call by call, eager beside ONNX
Runtime took 2.3 times as long as alone (docs/measuring.md). Two runtimes' threads are seen before
anything is timed (`common.measuring.threads`); this is for whatever else arms do to each other.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from dynamometer.results.statistics.significance import SIGNIFICANT_P, Replicate, moderated, ratio
from dynamometer.results.values.metrics import LATENCY, LATENCY_ALONE, LATENCY_ISOLATED
from dynamometer.results.values.records import BetweenProcessSd

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dynamometer.results.values.records import Measurement

LARGEST_SHIFT = 0.02
"""Elsewhere and beside others two arms' ratio may differ by this share (docs/measuring.md, step
7)."""

LONGEST_DISTURBANCE = 0.5
"""Of a replicate's blocks: if something else disturbed more, nothing is concluded from it."""

_WRONGLY = 0.01
"""The share of cases whose arms may be said to disturb each other though they don't. That holds as
far as what is assumed does; where a machine's speed varies by 5 to 20 % from moment to moment it is
5 % (tests/unit/results/statistics/test_interference.py)."""

_ASSUMED = BetweenProcessSd(sd_log=0.01, df=3.0)
"""How far arms that don't disturb each other seem to, from process to process. A guess."""

_NOTHING = BetweenProcessSd(sd_log=0.0, df=0.0)

_SEGMENTS = 8
"""Into which blocks are divided, to see how far one moment differs from another."""

Shifts = list[tuple[tuple[str, str], Replicate]]
"""Of pairs of arms by how much their log ratio in blocks isn't what it is elsewhere."""


def shifts(measurements: Iterable[Measurement], disturbed: Collection[int] = ()) -> Shifts:
    """Compare arms' ratios in the blocks of a process with those elsewhere.

    That is alone, before the next arm was built, and, where every arm has some, in isolated runs.
    What slows all arms alike is the machine's doing and changes no ratio. But each was elsewhere at
    a moment of its own, so a ratio there is known no better than segments are alike: those of the
    blocks, or the isolated runs.

    Args:
        measurements: of one replicate; those of other metrics are passed over.
        disturbed: blocks of it that tell nothing.
    """
    found = list(measurements)
    beside = {
        each.arm: means
        for each in found
        if each.metric == LATENCY.name and (means := _log_means(each, disturbed))
    }
    alone, isolated = (_by_arm(found, each.name) for each in (LATENCY_ALONE, LATENCY_ISOLATED))
    ways = [(alone, _shift_alone)]
    if beside.keys() <= isolated.keys():
        ways.append((isolated, _shift_in_isolation))
    return [
        ((one, other), _difference(shift(ours, elsewhere[one]), shift(theirs, elsewhere[other])))
        for one, other in itertools.combinations(sorted(beside), 2)  # in each process another order
        if (shared := beside[one].keys() & beside[other].keys())
        for ours, theirs in [(_of(beside[one], shared), _of(beside[other], shared))]
        for elsewhere, shift in ways
        if elsewhere.keys() >= {one, other}
    ]


def _of(means: Mapping[int, float], blocks: Collection[int]) -> list[float]:
    return [mean for block, mean in means.items() if block in blocks]


def disturb_each_other(replicates: Sequence[Shifts]) -> bool:
    """Return whether arms do, from how they compare in one replicate or in several.

    The test of speedups (`significance.moderated`), and beyond 2 %. Where the machine's speed
    varies, so do the shifts from replicate to replicate, by up to twenty times what is assumed: so
    several of them must say it by themselves, too, if only at the usual 5 %. A replicate that has
    no shift of two arms says nothing against it.
    """
    by_pair: defaultdict[tuple[str, str], list[Replicate]] = defaultdict(list)
    for found in replicates:
        for pair, shift in found:
            by_pair[pair].append(shift)
    telling = Counter(pair for found in replicates for pair in {pair for pair, _ in found})
    level = _WRONGLY / max(1, len(by_pair))
    return any(
        _is_certain(found, level) and (telling[pair] == 1 or _says_so_itself(found))
        for pair, found in by_pair.items()
    )


def _is_certain(found: Sequence[Replicate], level: float) -> bool:
    judged = ratio(moderated(found, _ASSUMED))
    return abs(math.log(judged.value)) > math.log1p(LARGEST_SHIFT) and judged.p_value <= level


def _says_so_itself(found: Sequence[Replicate]) -> bool:
    """Return whether several values differ from 0 with nothing assumed of them."""
    return len(found) > 1 and ratio(moderated(found, _NOTHING)).p_value <= SIGNIFICANT_P


def was_checked(measurements: Iterable[Measurement]) -> bool:
    """Return whether every arm of a process was timed alone as well, with nothing disturbing it."""
    found = list(measurements)
    alone = {each.arm for each in found if each.metric == LATENCY_ALONE.name}
    return all(each.arm in alone for each in found if each.metric == LATENCY.name)


def _shift_alone(beside: list[float], alone: list[float]) -> Replicate:
    value = statistics.median(beside) - statistics.median(alone)
    segments = _segments(beside, len(alone))
    if len(segments) == 1:
        return Replicate(value)
    return Replicate(value, _usual_deviation(segments), len(segments) - 1.0)


def _shift_in_isolation(beside: list[float], alone: list[float]) -> Replicate:
    value = statistics.median(beside) - statistics.median(alone)
    if len(alone) == 1:
        return Replicate(value)
    return Replicate(value, statistics.stdev(alone) / math.sqrt(len(alone)), len(alone) - 1.0)


def _usual_deviation(values: list[float]) -> float:
    """Return the standard deviation, but for a few values that are far off."""
    middle = statistics.median(values)
    return _SD_OVER_MAD * statistics.median(abs(each - middle) for each in values)


_SD_OVER_MAD = 1.4826
"""Of a normal distribution."""


def _difference(one: Replicate, other: Replicate) -> Replicate:
    """Subtract; degrees of freedom are those of Satterthwaite, as in `significance.moderated`."""
    error = math.hypot(one.error, other.error)
    parts = math.fsum(each.error**4 / each.df for each in (one, other))
    return Replicate(one.value - other.value, error, error**4 / parts if parts else math.inf)


def _segments(values: list[float], blocks: int) -> list[float]:
    """Return medians of blocks in a row: as many as an arm was alone for, but enough segments."""
    size = max(1, min(blocks, len(values) // _SEGMENTS))
    return [
        statistics.median(values[start : start + size]) for start in range(0, len(values), size)
    ]


def _by_arm(measurements: Iterable[Measurement], metric: str) -> dict[str, list[float]]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for each in measurements:
        if each.metric == metric:
            found[each.arm] += _log_means(each).values()  # isolated runs come one by one
    return {arm: values for arm, values in found.items() if values}


def _log_means(measurement: Measurement, left_out: Collection[int] = ()) -> dict[int, float]:
    """Return the log of the mean latency of each block; nothing of samples that are of none.

    The mean, as it is the same however many calls make a sample, which differs alone and beside a
    faster arm.
    """
    by_block: defaultdict[int, list[float]] = defaultdict(list)
    for block, sample in zip(measurement.blocks, measurement.samples, strict=False):
        if block not in left_out:
            by_block[block].append(sample)
    return {
        block: math.log(math.fsum(samples) / len(samples)) for block, samples in by_block.items()
    }
