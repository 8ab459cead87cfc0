"""From raw samples to the speedup of a case. Pure functions; no torch."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING

from dynamometer.results.statistics.significance import Replicate, moderated, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.records import BetweenProcessSd, Measurement, Ratio


def log_speedup(baseline: Measurement, arm: Measurement) -> Replicate:
    """Compare the latencies of two arms measured in the same blocks of one process.

    Args:
        baseline: latencies in seconds, with blocks.
        arm: likewise, of at least one block that `baseline` has too.

    Returns:
        The trimmed mean over blocks of the difference of medians of log latency (positive: the
        arm is faster), its standard error (0 with one block), and how far that of another process
        would be off because calls are short.

    Raises:
        ValueError: the two have no block in common.
    """
    before, after = _log_medians(baseline), _log_medians(arm)
    differences = [before[block] - after[block] for block in sorted(before.keys() & after.keys())]
    if not differences:
        msg = f"{baseline.arm} and {arm.arm} were not measured in the same blocks"
        raise ValueError(msg)
    shortest_s = math.exp(min(*before.values(), *after.values()))
    off = min(_CALL_SD_S / shortest_s, _MOST_OF_A_CALL)
    return trimmed_mean(differences)._replace(between_sd=off)


_CALL_SD_S = 10e-6
"""What a call takes more in one process than in another, whichever arm it is: where threads sit to
each other decides how long they take to meet, some microseconds for each operator that is split. It
stays for minutes, and then is another (docs/measuring.md, "Short calls")."""

_MOST_OF_A_CALL = 0.2


def trimmed_mean(values: Sequence[float]) -> Replicate:
    """Average the middle half of values that followed each other, with the error of that.

    On shared machines a few blocks are off by a half, whichever arm was hit: a mean of all of them
    said up to 16 % of identical arms, this 1 % (docs/decisions/0007-error-bars.md). Blocks that
    resemble their neighbours tell less than as many independent ones, so their variance and its
    degrees of freedom count for as many as they are worth.

    Source:
        J. W. Tukey, D. H. McLaughlin, Less vulnerable confidence and significance procedures for
        location based on a single sample, Sankhya A 25(3), 1963: the winsorised deviation.
    """
    ordered = sorted(values)
    n, cut = len(ordered), len(ordered) // 4
    middle = ordered[cut : n - cut]
    mean = math.fsum(middle) / len(middle)
    if n == 1:
        return Replicate(mean)
    winsorized = [min(max(value, middle[0]), middle[-1]) for value in values]
    center = math.fsum(winsorized) / n
    squares = math.fsum((value - center) ** 2 for value in winsorized)
    worth = 1 / _repetition(winsorized, center, squares)
    error = math.sqrt(squares / (n - 1) / (n * worth)) / (len(middle) / n)
    return Replicate(mean, error, (len(middle) - 1) * worth)


def _repetition(values: Sequence[float], center: float, squares: float) -> float:
    """Return for how many values that follow each other one independent value counts.

    From the correlation of neighbours, as if it fell geometrically with distance; the estimate is
    corrected for the bias it has in short series. Values that alternate count for one each.

    Source:
        G. V. Bayley, J. M. Hammersley, The "effective" number of independent observations in an
        autocorrelated time series, J. R. Stat. Soc. Suppl. 8(2), 1946; the bias after M. G.
        Kendall, Note on bias in the estimation of autocorrelation, Biometrika 41, 1954.
    """
    if not squares:
        return 1.0
    products = ((one - center) * (other - center) for one, other in itertools.pairwise(values))
    found = math.fsum(products) / squares
    correlation = found + (1 + 4 * max(0.0, found)) / len(values)
    correlation = min(max(0.0, correlation), _LARGEST_CORRELATION)
    return (1 + correlation) / (1 - correlation)


_LARGEST_CORRELATION = 0.9
"""Of neighbours, as far as is believed: a few values may all rise."""


def speedup(replicates: Sequence[Replicate], between_sd: BetweenProcessSd) -> Ratio:
    """Estimate a speedup from the log speedups of independent processes.

    The replicate is the process: two-sided t test and interval on the mean over replicates, whose
    variance has a part between processes and one within (`significance.moderated`). With one
    replicate the part between is what is known of other models, and the result is good for
    screening only.

    Args:
        replicates: one of each process.
        between_sd: what is known beforehand of how far processes differ.

    Raises:
        ValueError: there is no replicate.
    """
    return ratio(moderated(replicates, between_sd))


def _log_medians(measurement: Measurement) -> dict[int, float]:
    by_block: defaultdict[int, list[float]] = defaultdict(list)
    for block, sample in zip(measurement.blocks, measurement.samples, strict=True):
        by_block[block].append(sample)
    return {block: _log_median(samples) for block, samples in by_block.items()}


def _log_median(samples: list[float]) -> float:
    """Return the median of logarithms, of which only those in the middle are taken."""
    ordered, half = sorted(samples), len(samples) // 2
    middle = ordered[half : half + 1] if len(samples) % 2 else ordered[half - 1 : half + 1]
    return math.fsum(map(math.log, middle)) / len(middle)
