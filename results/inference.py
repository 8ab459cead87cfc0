"""Tests and decisions over replicates and over models. Pure functions; no torch."""

from __future__ import annotations

import math
import statistics
from enum import StrEnum
from typing import TYPE_CHECKING

from scipy import optimize, special

from dynamometer.results.records import Estimate, Ratio, Spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CONFIDENCE = 0.95
SIGNIFICANT_P = 0.05

LATENCY_FLOOR = 0.02
"""A change of latency below this share is of no practical interest (DESIGN section 5, point 9)."""

MOST_DF = 30.0
"""What was learnt never outweighs more than this: machines change from day to day."""


class Verdict(StrEnum):
    """What an arm did to a metric, beyond chance and beyond the practical floor."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    UNCLEAR = "UNCLEAR"


def moderated(values: Sequence[float], spread: Spread) -> tuple[float, float, float]:
    """Estimate a mean whose variance is shrunk towards what is known of others.

    Args:
        values: independent and normally distributed, such as log speedups of processes.
        spread: what is known of the variance of one of them.

    Returns:
        Mean, its standard error, degrees of freedom.

    Source:
        G. K. Smyth, Linear models and empirical Bayes methods for assessing differential
        expression in microarray experiments, Stat. Appl. Genet. Mol. Biol. 3(1), 2004, section 3.

    Raises:
        ValueError: there is no value.
    """
    if not values:
        msg = "an estimate needs at least one replicate"
        raise ValueError(msg)
    n = len(values)
    own = statistics.variance(values) if n > 1 else 0.0
    df = spread.df + n - 1
    variance = (spread.df * spread.sd_log**2 + (n - 1) * own) / df
    return statistics.fmean(values), math.sqrt(variance / n), df


def ratio(mean: float, standard_error: float, df: float, n: int) -> Ratio:
    """Give a ratio its interval and p-value.

    Args:
        mean: of its logarithm.
        standard_error: of that mean.
        df: degrees of freedom of the standard error.
        n: replicates it rests on.
    """
    half_width = half_width_log(standard_error, df)
    # Without any scatter whatever is not 1 is so for certain.
    t = abs(mean) / standard_error if standard_error else math.inf if mean else 0.0
    return Ratio(
        value=math.exp(mean),
        low=math.exp(mean - half_width),
        high=math.exp(mean + half_width),
        n=n,
        p_value=float(2 * special.stdtr(df, -t)),
    )


def half_width_log(standard_error: float, df: float) -> float:
    """Give half the width of a 95 % t interval."""
    return float(special.stdtrit(df, 0.5 + CONFIDENCE / 2)) * standard_error


def pool(variances: Iterable[tuple[float, float]]) -> Spread | None:
    """Learn from many series what to assume of the next one's variance.

    Fits a scaled inverse chi-square distribution to the variances by the moments of their
    logarithms; where they differ less than chance would have them, the prior counts for `MOST_DF`.
    It never counts for more than the series it comes from: few may agree by chance.

    Args:
        variances: of each series its variance and the degrees of freedom of that.

    Returns:
        `None` where there are fewer than three series with a variance.

    Source:
        Smyth 2004 (see `moderated`), section 6.2, eq. for d0 and s0.
    """
    found = [(variance, df) for variance, df in variances if variance > 0 and df > 0]
    if len(found) < _FEWEST_SERIES:
        return None
    centred = [math.log(variance) + _log_bias(df) for variance, df in found]
    mean = statistics.fmean(centred)
    by_chance = statistics.fmean(special.polygamma(1, df / 2) for _, df in found)
    excess = statistics.variance(centred) - by_chance
    df = 2 * _inverse_trigamma(excess) if excess > 0 else math.inf
    if math.isfinite(df):
        mean -= _log_bias(df)
    most = min(MOST_DF, math.fsum(own_df for _, own_df in found))
    return Spread(sd_log=math.sqrt(math.exp(mean)), df=min(df, most))


def updated(assumed: Spread, variances: Iterable[tuple[float, float]]) -> Spread:
    """Learn from however few series, beside what is assumed, which counts as one more of them.

    The mean of the variances' logarithms, weighted by degrees of freedom; each is corrected by what
    it is expected to be off, given the assumption's degrees of freedom, which stay.

    Args:
        assumed: where nothing is known.
        variances: of each series its variance and the degrees of freedom of that.

    Source:
        The expectation in Smyth 2004 (see `pool`), with d0 given.
    """
    logs = [
        (math.log(variance) + _log_bias(df) - _log_bias(assumed.df), df)
        for variance, df in variances
        if variance > 0 and df > 0
    ]
    if not logs:
        return assumed
    logs.append((2 * math.log(assumed.sd_log), assumed.df))
    mean = math.fsum(log * df for log, df in logs) / math.fsum(df for _, df in logs)
    return Spread(sd_log=math.sqrt(math.exp(mean)), df=assumed.df)


def _log_bias(df: float) -> float:
    """Say by how much the logarithm of a variance is too small on average."""
    return math.log(df / 2) - float(special.digamma(df / 2))


_FEWEST_SERIES = 3


def _inverse_trigamma(value: float) -> float:
    """Solve `trigamma(x) = value`, which falls from infinity to 0."""
    low, high = 1e-8, 1e8
    if not special.polygamma(1, high) < value < special.polygamma(1, low):
        return high if value < 1 else low
    return float(optimize.brentq(lambda x: float(special.polygamma(1, x)) - value, low, high))


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
    """Give a share with its 95 % interval.

    Source:
        E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        J. Am. Stat. Assoc. 22, 1927.

    Raises:
        ValueError: there was no trial.
    """
    if trials < 1:
        msg = "a share needs at least one trial"
        raise ValueError(msg)
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


def verdict(found: Ratio, adjusted_p: float) -> Verdict:
    """Decide what a ratio of baseline's latency over an arm's says.

    FASTER and SLOWER need a significant change beyond the practical floor; SAME an interval that
    lies within the floor, which is a test of equivalence (D. J. Schuirmann, J. Pharmacokinet.
    Biopharm. 15, 1987) at 2.5 %; all else is UNCLEAR.

    Args:
        found: with its interval.
        adjusted_p: its p-value among all that are shown together (`adjusted`).
    """
    least = math.log1p(LATENCY_FLOOR)
    if adjusted_p <= SIGNIFICANT_P and abs(math.log(found.value)) > least:
        return Verdict.FASTER if found.value > 1 else Verdict.SLOWER
    if max(abs(math.log(found.low)), abs(math.log(found.high))) < least:
        return Verdict.SAME
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
