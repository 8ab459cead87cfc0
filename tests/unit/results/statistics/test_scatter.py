"""What the scatter of replicates teaches of the spread between processes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dynamometer.results.statistics import scatter
from dynamometer.results.statistics.scatter import Scatter, updated
from dynamometer.results.values.records import ASSUMED_SD, BetweenProcessSd


def drawn(
    n: int, sd: float, *, df: float = math.inf, within: float = 0.0, own_df: int = 2
) -> list[Scatter]:
    """Draw series whose processes differ by as much, beyond an error within."""
    rng = np.random.default_rng(0)
    scale = df / rng.chisquare(df, n) if math.isfinite(df) else np.ones(n)
    seen = scale * (sd**2 + within**2) * rng.chisquare(own_df, n) / own_df
    return [Scatter(float(each), within**2, own_df) for each in seen]


@pytest.mark.parametrize("df", [2.0, 4.0, 10.0])
def test_learning_recovers_what_variances_were_drawn_from(df: float) -> None:
    """Variances whose own variances are scaled inverse chi-square give that distribution back."""
    found = updated(ASSUMED_SD, drawn(40_000, 0.006, df=df))
    assert found.df == pytest.approx(df, rel=0.1)
    assert found.sd_log == pytest.approx(0.006, rel=0.03)


@pytest.mark.parametrize("within", [0.003, 0.006, 0.012])
def test_the_part_within_is_not_learnt(within: float) -> None:
    """What each process leaves open of its own is no difference between processes."""
    found = updated(ASSUMED_SD, drawn(20_000, 0.006, df=6.0, within=within))
    assert found.sd_log == pytest.approx(0.006, rel=0.1)
    total = [
        Scatter(each.variance, 0.0, each.df) for each in drawn(20_000, 0.006, df=6.0, within=within)
    ]
    assert updated(ASSUMED_SD, total).sd_log > 1.1 * found.sd_log


def test_processes_that_differ_by_chance_alone_teach_a_small_spread() -> None:
    """It is never negative, nor without end: what is assumed counts as one series."""
    found = updated(ASSUMED_SD, drawn(10_000, 0.0, within=0.01))
    assert 0 < found.sd_log < 0.002
    few = updated(ASSUMED_SD, drawn(5, 0.0, within=0.03))
    assert 0.3 * ASSUMED_SD.sd_log < few.sd_log < 3 * ASSUMED_SD.sd_log


def test_equal_variances_count_for_the_most() -> None:
    """Where series differ by chance alone, the next one's variance is known, but not for ever."""
    found = updated(ASSUMED_SD, drawn(4_000, 0.004, own_df=4))
    assert found.df == pytest.approx(scatter.MOST_DF)
    assert found.sd_log == pytest.approx(0.004, rel=0.03)


def test_nothing_teaches_nothing() -> None:
    """Nor do series without scatter, or of one replicate."""
    nothing = [Scatter(0.0, 1e-6, 2.0), Scatter(1.0, 1e-6, 0.0)]
    assert updated(ASSUMED_SD, []) == updated(ASSUMED_SD, nothing) == ASSUMED_SD


def test_an_assumption_is_one_series_among_others() -> None:
    """It is outweighed by and by; few series count for few degrees of freedom."""
    assumed = BetweenProcessSd(sd_log=0.006, df=3.0)
    many = drawn(2_000, 0.012)
    between_sds = [updated(assumed, many[:n]) for n in (4, 40, 2_000)]
    assert 0.003 < between_sds[0].sd_log < between_sds[1].sd_log
    assert between_sds[2].sd_log == pytest.approx(0.012, rel=0.03)
    assert between_sds[0].df <= 3.0 + 4 * 2.0
