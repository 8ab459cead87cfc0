"""How far processes differ, learnt from the scatter of series of replicates. Pure; no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from dynamometer.results.values.records import BetweenProcessSd

if TYPE_CHECKING:
    from collections.abc import Iterable

    Array = np.ndarray[tuple[int], np.dtype[np.float64]]

MOST_DF = 30.0
"""What was learnt never outweighs more than this: machines change from day to day."""

USUAL_DF = 6.0
"""What a standard deviation between processes is usually worth, within a factor of e: calibrations
have found 4 and 8. Few series that agree by chance would count for far too many."""

_MOST_DF_OF_BEFORE = 4.0
"""What was known counts for no more than this beside series: with 30, of identical arms on a
machine that is three times as unsteady as it was 13 % seem different, with 4 10 %."""

_LEAST_DF = 1.0
_WIDEST = 100.0
"""What is learnt lies within this factor of what was seen or assumed, so that a fit has an end."""


@dataclass(frozen=True)
class Scatter:
    """How far the replicates of one series differ.

    Attributes:
        variance: of their log speedups.
        within: the part of it that their blocks and short calls account for, the mean of
            `Replicate.own_variance`.
        df: degrees of freedom of the variance.
    """

    variance: float
    within: float
    df: float


def updated(
    assumed: BetweenProcessSd, series: Iterable[Scatter], usual_df: float = USUAL_DF
) -> BetweenProcessSd:
    """Learn how far processes differ, from however many series, beside what is assumed.

    Of each series the variance over what it should be, the learnt part between processes plus its
    own part within, follows an F distribution. The likeliest standard deviation and degrees of
    freedom are taken; the assumption counts as one more series without a part within. Degrees of
    freedom are never more than those of all series.

    Args:
        assumed: or known; what holds where no series tells anything.
        series: those without scatter tell nothing.
        usual_df: what to expect of the degrees of freedom.

    Source:
        G. K. Smyth, Linear models and empirical Bayes methods for assessing differential
        expression in microarray experiments, Stat. Appl. Genet. Mol. Biol. 3(1), 2004, section 4:
        the marginal distribution of a variance. Fitted by likelihood, as moments of its logarithm
        don't allow for a part that is known.
    """
    found = [each for each in series if each.variance > 0 and each.df > 0]
    if not found:
        return assumed
    found.append(Scatter(assumed.sd_log**2, 0.0, min(assumed.df, _MOST_DF_OF_BEFORE)))
    sd_log, df = _likeliest(found, usual_df)
    most = math.fsum(each.df for each in found)
    return BetweenProcessSd(sd_log=sd_log, df=min(df, most, MOST_DF))


def _likeliest(series: list[Scatter], usual_df: float) -> tuple[float, float]:
    """Return the standard deviation, and its df, at which the series are likeliest."""
    variance, within, df = np.array([(each.variance, each.within, each.df) for each in series]).T
    scale = float(np.exp(np.average(np.log(variance), weights=df)))
    far = math.log(_WIDEST)

    def surprise(logs: Array) -> tuple[float, Array]:
        sd_log, df_log = float(logs[0]), float(logs[1])
        off = df_log - math.log(usual_df)
        value, slopes = _surprise(sd_log, df_log, variance / scale, within / scale, df)
        return value + off**2 / 2, slopes + np.array((0.0, off))

    from scipy import optimize  # takes as long as everything else that stored runs are read with

    found = optimize.minimize(
        surprise,
        np.array((0.0, math.log(usual_df))),
        # Ten times as fast as L-BFGS-B, whose BLAS starts threads for two numbers.
        method="TNC",
        options={"ftol": 1e-12, "xtol": 1e-9, "gtol": 1e-9},
        jac=True,
        bounds=((-far, far), (math.log(_LEAST_DF), math.log(MOST_DF))),
    )
    return math.sqrt(scale) * math.exp(found.x[0]), math.exp(found.x[1])


def _surprise(
    log_sd: float, log_df: float, variance: Array, within: Array, df: Array
) -> tuple[float, Array]:
    """Return the negative logarithm of the likelihood, but for a constant, and its gradient."""
    between, known_df = math.exp(2 * log_sd), math.exp(log_df)
    expected = between + within
    ratio = df * variance / expected / known_df
    both, logs = (df + known_df) / 2, np.log1p(ratio)
    each = special.betaln(df / 2, known_df / 2) - df / 2 * np.log(ratio) + both * logs
    slope = df / 2 - both * ratio / (1 + ratio)
    of_df = special.digamma(known_df / 2) - special.digamma(both) + logs
    gradient = (2 * slope * between / expected).sum(), (slope + known_df / 2 * of_df).sum()
    return float(each.sum()), np.array(gradient)
