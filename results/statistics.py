"""From raw samples to speedups with intervals. Pure functions; no torch."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

from scipy import special

from dynamometer.results.records import Ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.records import Measurement

CONFIDENCE = 0.95

PRIOR_SD_LOG = 0.006
"""Standard deviation between processes of a log speedup that is assumed beforehand: the pilot
measured 0.5 to 0.7 % typically (docs/measuring.md). To be learnt per machine and suite."""

PRIOR_DF = 8.0
"""How many degrees of freedom that assumption is worth."""


def log_speedup(baseline: Measurement, arm: Measurement) -> tuple[float, float]:
    """Compare the latencies of two arms measured in the same blocks of one process.

    Args:
        baseline: latencies in seconds, with blocks.
        arm: likewise, of at least one block that `baseline` has too.

    Returns:
        The mean over blocks of the difference of medians of log latency (positive: the arm is
        faster), and the standard error of that mean (0 with one block).

    Raises:
        ValueError: the two have no block in common.
    """
    before, after = _log_medians(baseline), _log_medians(arm)
    differences = [before[block] - after[block] for block in before.keys() & after.keys()]
    if not differences:
        msg = f"{baseline.arm} and {arm.arm} were not measured in the same blocks"
        raise ValueError(msg)
    mean = statistics.fmean(differences)
    if len(differences) == 1:
        return mean, 0.0
    return mean, statistics.stdev(differences) / math.sqrt(len(differences))


def speedup(replicates: Sequence[tuple[float, float]]) -> Ratio:
    """Estimate a speedup from the log speedups of independent processes.

    The replicate is the process: two-sided t test and interval on the mean over replicates, the
    variance between them moderated towards `PRIOR_SD_LOG`. With one replicate the variance is the
    prior plus what the blocks show, and the result is good for screening only.

    Args:
        replicates: of each process, the log speedup and its standard error within the process.

    Source:
        G. K. Smyth, Linear models and empirical Bayes methods for assessing differential
        expression in microarray experiments, Stat. Appl. Genet. Mol. Biol. 3(1), 2004, eq. for
        the moderated t-statistic, with prior variance and degrees of freedom given.

    Raises:
        ValueError: there is no replicate.
    """
    if not replicates:
        msg = "a speedup needs at least one replicate"
        raise ValueError(msg)
    values = [value for value, _ in replicates]
    n = len(values)
    own = statistics.variance(values) if n > 1 else 0.0
    df = PRIOR_DF + n - 1
    variance = (PRIOR_DF * PRIOR_SD_LOG**2 + (n - 1) * own) / df
    if n == 1:
        variance += replicates[0][1] ** 2
    standard_error = math.sqrt(variance / n)
    mean = statistics.fmean(values)
    half_width = float(special.stdtrit(df, 0.5 + CONFIDENCE / 2)) * standard_error
    return Ratio(
        value=math.exp(mean),
        low=math.exp(mean - half_width),
        high=math.exp(mean + half_width),
        n=n,
        p_value=float(2 * special.stdtr(df, -abs(mean) / standard_error)),
    )


def geometric_mean(values: Iterable[float]) -> float | None:
    """Average ratios; `None` of nothing.

    Raises:
        ValueError: a value is not positive.
    """
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else None


def _log_medians(measurement: Measurement) -> dict[int, float]:
    by_block: defaultdict[int, list[float]] = defaultdict(list)
    for block, sample in zip(measurement.blocks, measurement.samples, strict=True):
        by_block[block].append(math.log(sample))
    return {block: statistics.median(logs) for block, logs in by_block.items()}
