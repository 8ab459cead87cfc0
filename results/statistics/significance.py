"""Tests and decisions over replicates and over models. Pure functions; no torch."""

from __future__ import annotations

import bisect
import math
import statistics
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dynamometer.results.values.records import Estimate, Ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.values.records import BetweenProcessSd

CONFIDENCE = 0.95
SIGNIFICANT_P = 0.05

LATENCY_FLOOR = 0.02
"""A change of latency below this share is of no practical interest (docs/measuring.md, step 11)."""


class Verdict(StrEnum):
    """What an arm did to a metric, beyond chance and beyond the practical floor."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    EQUIVALENT = "EQUIVALENT"
    UNCLEAR = "UNCLEAR"


class Replicate(NamedTuple):
    """What one process says of a log speedup.

    Attributes:
        value: the log speedup.
        error: its standard error within the process.
        df: degrees of freedom of that error.
        between_sd: how far processes differ besides what holds for all, as such short calls do.
    """

    value: float
    error: float = 0.0
    df: float = math.inf
    between_sd: float = 0.0

    @property
    def own_variance(self) -> float:
        """Of its value, by all that is known of this replicate and doesn't hold for others."""
        return self.error**2 + self.between_sd**2


class Mean(NamedTuple):
    """A mean over replicates.

    Attributes:
        value: the mean.
        error: its standard error.
        df: degrees of freedom of that error.
        n: replicates.
        further: the variance of one further replicate; `None` if it is what the error implies,
            `n * error**2`.
    """

    value: float
    error: float
    df: float
    n: int
    further: float | None = None

    @property
    def further_variance(self) -> float:
        """The variance of one further replicate."""
        return self.n * self.error**2 if self.further is None else self.further

    def grown(self, n: int) -> Mean:
        """Return it as it would be with more replicates, if the mean stays where it is.

        What was known of the variance beforehand weighs as much as it did, and so ever less.

        Args:
            n: how many there are then.
        """
        more = n - self.n
        df = self.df + more
        variance = (self.df * self.n * self.error**2 + more * self.further_variance) / df
        return Mean(self.value, math.sqrt(variance / n), df, n, self.further_variance)


def moderated(replicates: Sequence[Replicate], between_sd: BetweenProcessSd) -> Mean:
    """Estimate a mean whose variance is shrunk towards what is known beforehand.

    A replicate varies for two reasons: processes differ, by as much as is known, and the
    process itself is known no better than its blocks allow. Of short calls the former is more,
    and that part is added to what is known. The sum of both variances is known
    before replicates are compared; how they differ from each other counts besides, by degrees of
    freedom. Left out, the part within a process made 18 to 30 % of identical arms seem different
    where it is 1 to 5 % (docs/simulated-error-bars.md).

    Args:
        replicates: of independent processes.
        between_sd: what is known of how far processes differ.

    Source:
        G. K. Smyth, Linear models and empirical Bayes methods for assessing differential
        expression in microarray experiments, Stat. Appl. Genet. Mol. Biol. 3(1), 2004, section 3.

    Raises:
        ValueError: there is no replicate.
    """
    if not replicates:
        msg = "an estimate needs at least one replicate"
        raise ValueError(msg)
    n = len(replicates)
    values = [each.value for each in replicates]
    own = statistics.variance(values) if n > 1 else 0.0
    within = math.fsum(each.error**2 for each in replicates) / n
    between = _with_short_calls(between_sd, replicates)
    known = between.sd_log**2 + within
    known_df = _df_of_both(replicates, between)
    df = known_df + n - 1
    variance = (known_df * known + (n - 1) * own) / df
    # Further ones vary as these do, and at least as their blocks say.
    further = max(own, within) if n > 1 else None
    return Mean(statistics.fmean(values), math.sqrt(variance / n), df, n, further)


def widest(known: Iterable[BetweenProcessSd]) -> BetweenProcessSd:
    """Return the largest standard deviation of several, with the fewest degrees of freedom."""
    found = list(known)
    return msgspec.structs.replace(
        max(found, key=lambda each: each.sd_log), df=min(each.df for each in found)
    )


def _with_short_calls(
    between_sd: BetweenProcessSd, replicates: Sequence[Replicate]
) -> BetweenProcessSd:
    """Return how far processes differ where calls may be short, which is known no better."""
    of_calls = math.fsum(each.between_sd**2 for each in replicates) / len(replicates)
    sd_log = math.hypot(between_sd.sd_log, math.sqrt(of_calls))
    return msgspec.structs.replace(between_sd, sd_log=sd_log)


def _df_of_both(replicates: Sequence[Replicate], between_sd: BetweenProcessSd) -> float:
    """Return the degrees of freedom of a variance with two parts, each of which is estimated.

    They are never more than those of what is known, which is no better for noise.

    Source:
        F. E. Satterthwaite, An approximate distribution of estimates of variance components,
        Biometrics Bulletin 2(6), 1946.
    """
    squares = [each.error**2 / len(replicates) for each in replicates]
    both = between_sd.sd_log**2 + math.fsum(squares)
    uncertain = [(between_sd.sd_log**2, between_sd.df)]
    uncertain += [(square, each.df) for square, each in zip(squares, replicates, strict=True)]
    variance = math.fsum(part**2 / df for part, df in uncertain if part)
    return min(between_sd.df, max(_LEAST_DF, both**2 / variance)) if variance else between_sd.df


_LEAST_DF = 3.0
"""Eight blocks that resemble their neighbours would be worth a third of a degree, but that is known
no better itself. Of a first run's identical arms hardly more differ with 3 than with 1, and the
widest tenth of their intervals is a quarter as wide (docs/decisions/0007-error-bars.md)."""


def replicates_needed(mean: Mean, target: float) -> int:
    """Return how many replicates would bring half the width of an interval within a target.

    If further ones vary as those there are.

    Args:
        mean: over those there are.
        target: half the width, as a share of the ratio.
    """
    return _fewest(mean, math.log1p(target), CONFIDENCE)


def replicates_to_settle(
    mean: Mean, adjusted_p: float, floor: float = LATENCY_FLOOR, run_sd: float = 0.0
) -> int | None:
    """Return how many replicates would turn UNCLEAR into another verdict.

    If further ones vary as those there are, and the mean stays where it is. `None` if that takes
    more than anybody would wait for.

    Args:
        mean: of log speedups.
        adjusted_p: the p-value among all that are shown together, `ratio(mean).p_value` times some
            number, which is taken to stay what it is.
        floor: a change below this share is of no practical interest.
        run_sd: the part of the mean's error that further replicates leave as it is.
    """
    least, distance = math.log1p(floor), abs(mean.value)
    needed = max(mean.n + 1, _fewest(mean, abs(distance - least), CONFIDENCE, run_sd))
    if distance > least:
        own_p = ratio(mean).p_value
        share = own_p / adjusted_p if adjusted_p else 1.0
        needed = max(needed, _fewest(mean, distance, 1 - SIGNIFICANT_P * share, run_sd))
    return needed if needed <= MOST_REPLICATES else None


MOST_REPLICATES = 200
"""That anybody would wait for: each takes seconds, of a large model minutes."""


def _fewest(mean: Mean, target_log: float, confidence: float, run_sd: float = 0.0) -> int:
    """Return with how many replicates half the width of an interval is within a target."""
    own = mean._replace(error=math.sqrt(max(0.0, mean.error**2 - run_sd**2)))

    def reaches(n: int) -> bool:
        grown = own.grown(n)
        return half_width_log(math.hypot(grown.error, run_sd), grown.df, confidence) <= target_log

    if reaches(mean.n):
        return mean.n
    if run_sd:  # no number may be enough
        return bisect.bisect_left(range(MOST_REPLICATES + 1), x=True, lo=mean.n, key=reaches)
    widest = max(mean.error, math.sqrt(mean.further_variance / mean.n))
    share = half_width_log(widest, mean.df, confidence) / max(target_log, _LEAST_TARGET_LOG)
    most = math.ceil(mean.n * share**2) + 1
    return bisect.bisect_left(range(most), x=True, lo=mean.n, key=reaches)


_LEAST_TARGET_LOG = 1e-6
"""What is asked for more closely is out of reach."""


def ratio(mean: Mean) -> Ratio:
    """Give a ratio its interval and p-value, from the mean of its logarithm."""
    from scipy import special  # takes longer than what needs neither takes altogether

    half_width = half_width_log(mean.error, mean.df)
    # Without any scatter whatever is not 1 is so for certain.
    t = abs(mean.value) / mean.error if mean.error else math.inf if mean.value else 0.0
    return Ratio(
        value=math.exp(mean.value),
        low=math.exp(mean.value - half_width),
        high=math.exp(mean.value + half_width),
        n=mean.n,
        p_value=float(2 * special.stdtr(mean.df, -t)),
    )


def half_width_log(standard_error: float, df: float, confidence: float = CONFIDENCE) -> float:
    """Return half the width of a t interval."""
    from scipy import special

    return float(special.stdtrit(df, 0.5 + confidence / 2)) * standard_error


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values that are shown together, so that 5 % of those below 0.05 are false.

    Source:
        Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, J. R. Stat. Soc. B 57(1),
        1995; in the step-up form that gives each test its own adjusted value.
    """
    result = [1.0] * len(p_values)
    lowest = 1.0
    for rank, index in zip(
        range(len(p_values), 0, -1),
        sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True),
        strict=True,
    ):
        lowest = min(lowest, p_values[index] * len(p_values) / rank)
        result[index] = lowest
    return result


def wilson(hits: int, trials: int) -> Estimate:
    """Return a share with its 95 % interval.

    Source:
        E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        J. Am. Stat. Assoc. 22, 1927.

    Raises:
        ValueError: there was no trial.
    """
    if trials < 1:
        msg = "a share needs at least one trial"
        raise ValueError(msg)
    from scipy import special

    z = float(special.ndtri(0.5 + CONFIDENCE / 2))
    share = hits / trials
    scale = 1 + z**2 / trials
    centre = (share + z**2 / (2 * trials)) / scale
    half = z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / scale
    return Estimate(
        value=share,
        low=min(share, max(0.0, centre - half)),
        high=max(share, min(1.0, centre + half)),
        n=trials,
    )


def verdict(found: Ratio, adjusted_p: float, floor: float = LATENCY_FLOOR) -> Verdict:
    """Decide what a ratio of baseline's latency over an arm's says.

    FASTER and SLOWER need a significant change whose whole interval lies beyond the practical
    floor: where all that is measured is noise of 5 %, 4 % of identical arms differ significantly
    and by more than the floor, and 0.4 % so (docs/simulated-error-bars.md). EQUIVALENT needs an
    interval that lies within the floor, which is a test of equivalence (D. J. Schuirmann, J.
    Pharmacokinet. Biopharm. 15, 1987) at 2.5 %; all else is UNCLEAR.

    Args:
        found: with its interval.
        adjusted_p: its p-value among all that are shown together (`adjusted`).
        floor: a change below this share is of no practical interest.
    """
    least = math.log1p(floor)
    low, high = math.log(found.low), math.log(found.high)
    if adjusted_p <= SIGNIFICANT_P and (low > least or high < -least):
        return Verdict.FASTER if found.value > 1 else Verdict.SLOWER
    if -least < low and high < least:
        return Verdict.EQUIVALENT
    return Verdict.UNCLEAR


def geometric_mean(ratios: Sequence[Ratio]) -> Estimate | None:
    """Average speedups of models, with an interval of what measuring these very models leaves open.

    Half-widths add up as independent errors do. The interval says nothing of models that were not
    measured. `None` of nothing.
    """
    if not ratios:
        return None
    n = len(ratios)
    mean = statistics.fmean(math.log(each.value) for each in ratios)
    half = math.hypot(*(math.log(each.high / each.low) / 2 for each in ratios)) / n
    return Estimate(
        value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half), n=n
    )
