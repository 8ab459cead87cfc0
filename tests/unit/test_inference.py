"""Tests and decisions against published examples and independent implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dynamometer.results import inference
from dynamometer.results.inference import Verdict, adjusted, pool, verdict, wilson
from dynamometer.results.records import Ratio, Spread

# Benjamini and Hochberg 1995, section 4: fifteen p-values, of which four are significant at 5 %.
PUBLISHED = (
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
    0.5719, 0.6528, 0.7590, 1.0,
)  # fmt: skip


def test_adjusting_the_published_example() -> None:
    """The paper rejects the four smallest."""
    assert [p <= 0.05 for p in adjusted(PUBLISHED)] == [True] * 4 + [False] * 11


def test_adjusting_against_scipy() -> None:
    """Ties and any order included."""
    p_values = [*reversed(PUBLISHED), 0.0201, 0.0201, 0.5]
    assert adjusted(p_values) == pytest.approx(stats.false_discovery_control(p_values))
    assert adjusted([]) == []


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_against_published_intervals(
    hits: int, trials: int, low: float, high: float
) -> None:
    """R. G. Newcombe, Statistics in Medicine 17, 1998, table I, method 3."""
    found = wilson(hits, trials)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_a_share_needs_a_trial() -> None:
    """Nothing tried gives no share."""
    with pytest.raises(ValueError, match="at least one trial"):
        wilson(0, 0)


@pytest.mark.parametrize("df", [2.0, 4.0, 10.0])
def test_pooling_recovers_what_variances_were_drawn_from(df: float) -> None:
    """Variances whose own variances are scaled inverse chi-square give that distribution back."""
    rng = np.random.default_rng(0)
    n, own_df, sd = 40_000, 2, 0.006
    true = sd**2 * df / rng.chisquare(df, n)
    seen = true * rng.chisquare(own_df, n) / own_df
    found = pool([(float(each), own_df) for each in seen])
    assert found is not None
    assert found.df == pytest.approx(df, rel=0.1)
    assert found.sd_log == pytest.approx(sd, rel=0.03)


def test_pooling_equal_variances_counts_for_the_most() -> None:
    """Where series differ by chance alone, the next one's variance is known, but not for ever."""
    rng = np.random.default_rng(0)
    seen = 0.004**2 * rng.chisquare(4, 4_000) / 4
    found = pool([(float(each), 4) for each in seen])
    assert found is not None
    assert found.df == inference.MOST_DF
    assert found.sd_log == pytest.approx(0.004, rel=0.02)


def test_there_is_little_to_learn_from_little() -> None:
    """Two series, or series without scatter, teach nothing."""
    assert pool([]) is None
    assert pool([(1e-5, 2.0), (2e-5, 2.0)]) is None
    assert pool([(0.0, 2.0)] * 9) is None


def test_moderated_intervals_cover() -> None:
    """With variances that differ from model to model 95 % intervals cover 95 % of true values."""
    rng = np.random.default_rng(1)
    n, k, df, sd = 4_000, 3, 6.0, 0.005
    sds = np.sqrt(sd**2 * df / rng.chisquare(df, n))
    values = rng.normal(0.0, sds[:, None], (n, k))
    spread = pool([(float(np.var(row, ddof=1)), k - 1.0) for row in values])
    assert spread is not None
    covered = 0
    for row in values:
        found = inference.ratio(*inference.moderated(list(map(float, row)), spread), k)
        covered += found.low <= 1.0 <= found.high
    assert covered / n == pytest.approx(0.95, abs=0.012)


def ratio(value: float, half_width: float, p_value: float) -> Ratio:
    """Make an estimate."""
    low, high = value * math.exp(-half_width), value * math.exp(half_width)
    return Ratio(value=value, low=low, high=high, n=3, p_value=p_value)


@pytest.mark.parametrize(
    ("found", "adjusted_p", "wanted"),
    [
        (ratio(1.30, 0.01, 0.0), 0.0, Verdict.FASTER),
        (ratio(0.80, 0.01, 0.0), 0.0, Verdict.SLOWER),
        (ratio(1.01, 0.003, 0.001), 0.01, Verdict.SAME),
        (ratio(1.00, 0.005, 0.9), 0.9, Verdict.SAME),
        (ratio(1.30, 0.40, 0.2), 0.4, Verdict.UNCLEAR),
        (ratio(1.00, 0.05, 0.9), 0.9, Verdict.UNCLEAR),
        (ratio(1.03, 0.02, 0.01), 0.20, Verdict.UNCLEAR),
        (ratio(1.015, 0.01, 0.01), 0.01, Verdict.UNCLEAR),
    ],
    ids=["faster", "slower", "little", "nothing", "wide", "wide-at-1", "by-chance", "at-floor"],
)
def test_verdicts(found: Ratio, adjusted_p: float, wanted: Verdict) -> None:
    """A change must be neither chance nor of no interest; sameness needs a narrow interval."""
    assert verdict(found, adjusted_p) is wanted


def test_averaging_ratios() -> None:
    """A doubling and a halving cancel, errors average out, and nothing has no average."""
    average = inference.geometric_mean([ratio(2.0, 0.01, 0.0), ratio(0.5, 0.01, 0.0)])
    assert average is not None
    assert average.value == pytest.approx(1.0)
    assert math.log(average.high) == pytest.approx(0.01 / math.sqrt(2))
    assert inference.geometric_mean([]) is None


def test_an_assumption_is_one_series_among_others() -> None:
    """Without others it stands; with many that are as expected it is outweighed."""
    assumed = Spread(sd_log=0.006, df=8.0)
    assert inference.updated(assumed, []).sd_log == pytest.approx(0.006)
    assert inference.updated(assumed, [(0.0, 2.0), (1.0, 0.0)]).sd_log == pytest.approx(0.006)
    rng = np.random.default_rng(0)
    # Variances whose prior has the assumption's degrees of freedom, as is the model.
    truths = 0.012**2 * 8.0 / rng.chisquare(8.0, 2_000)
    drawn = [(float(truth * rng.chisquare(2.0) / 2.0), 2.0) for truth in truths]
    found = inference.updated(assumed, drawn)
    assert found.sd_log == pytest.approx(0.012, rel=0.03)
    assert found.df == 8.0
    assert 0.006 < inference.updated(assumed, drawn[:4]).sd_log < 0.012
