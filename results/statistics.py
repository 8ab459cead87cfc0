"""From raw samples to the speedup of a case. Pure functions; no torch."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

from dynamometer.results import inference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.records import Measurement, Ratio, Spread


def log_speedup(baseline: Measurement, arm: Measurement) -> tuple[float, float]:
    """Compare the latencies of two arms measured in the same blocks of one process.

    Args:
        baseline: latencies in seconds, with blocks.
        arm: likewise, of at least one block that `baseline` has too.

    Returns:
        The trimmed mean over blocks of the difference of medians of log latency (positive: the
        arm is faster), and its standard error (0 with one block).

    Raises:
        ValueError: the two have no block in common.
    """
    before, after = _log_medians(baseline), _log_medians(arm)
    differences = [before[block] - after[block] for block in before.keys() & after.keys()]
    if not differences:
        msg = f"{baseline.arm} and {arm.arm} were not measured in the same blocks"
        raise ValueError(msg)
    return _trimmed_mean(differences)


def _trimmed_mean(values: Sequence[float]) -> tuple[float, float]:
    """Average the middle half, with the standard error of that.

    On shared machines a few blocks are off by a half, whichever arm was hit: a mean of all of them
    said up to 16 % of identical arms, this 1 % (docs/decisions/0007-error-bars.md).

    Source:
        J. W. Tukey, D. H. McLaughlin, Less vulnerable confidence and significance procedures for
        location based on a single sample, Sankhya A 25(3), 1963: the winsorised deviation.
    """
    ordered = sorted(values)
    n, cut = len(ordered), len(ordered) // 4
    middle = ordered[cut : n - cut]
    if n == 1:
        return ordered[0], 0.0
    winsorized = [middle[0]] * cut + middle + [middle[-1]] * cut
    error = statistics.stdev(winsorized) / (len(middle) / n * math.sqrt(n))
    return statistics.fmean(middle), error


def speedup(replicates: Sequence[tuple[float, float]], spread: Spread) -> Ratio:
    """Estimate a speedup from the log speedups of independent processes.

    The replicate is the process: two-sided t test and interval on the mean over replicates, the
    variance between them moderated (`inference.moderated`). With one replicate the variance is
    what is known of other models plus what the blocks show, and the result is good for screening
    only.

    Args:
        replicates: of each process, the log speedup and its standard error within the process.
        spread: what is known beforehand of how far processes differ.

    Raises:
        ValueError: there is no replicate.
    """
    values = [value for value, _ in replicates]
    mean, standard_error, df = inference.moderated(values, spread)
    if len(values) == 1:
        standard_error = math.hypot(standard_error, replicates[0][1])
    return inference.ratio(mean, standard_error, df, len(values))


def _log_medians(measurement: Measurement) -> dict[int, float]:
    by_block: defaultdict[int, list[float]] = defaultdict(list)
    for block, sample in zip(measurement.blocks, measurement.samples, strict=True):
        by_block[block].append(math.log(sample))
    return {block: statistics.median(logs) for block, logs in by_block.items()}
