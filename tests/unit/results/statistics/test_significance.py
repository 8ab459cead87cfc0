"""Tests and decisions against published examples and independent implementations."""

from __future__ import annotations

import math
import statistics

import pytest
from scipy import stats

from dynamometer.results.statistics import significance
from dynamometer.results.statistics.significance import (
    Mean,
    Replicate,
    Verdict,
    adjusted,
    half_width_log,
    moderated,
    replicates_needed,
    replicates_to_settle,
    verdict,
    wilson,
)
from dynamometer.results.values.records import ASSUMED_SD, BetweenProcessSd, Ratio

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


def ratio(value: float, half_width: float, p_value: float) -> Ratio:
    """Make an estimate."""
    low, high = value * math.exp(-half_width), value * math.exp(half_width)
    return Ratio(value=value, low=low, high=high, n=3, p_value=p_value)


@pytest.mark.parametrize(
    ("found", "adjusted_p", "wanted"),
    [
        (ratio(1.30, 0.01, 0.0), 0.0, Verdict.FASTER),
        (ratio(0.80, 0.01, 0.0), 0.0, Verdict.SLOWER),
        (ratio(1.01, 0.003, 0.001), 0.01, Verdict.EQUIVALENT),
        (ratio(1.00, 0.005, 0.9), 0.9, Verdict.EQUIVALENT),
        (ratio(1.30, 0.40, 0.2), 0.4, Verdict.UNCLEAR),
        (ratio(1.00, 0.05, 0.9), 0.9, Verdict.UNCLEAR),
        (ratio(1.03, 0.02, 0.01), 0.20, Verdict.UNCLEAR),
        (ratio(1.015, 0.01, 0.01), 0.01, Verdict.UNCLEAR),
        (ratio(1.05, 0.04, 0.01), 0.01, Verdict.UNCLEAR),
        (ratio(1.05, 0.02, 0.01), 0.01, Verdict.FASTER),
    ],
    ids=[
        "faster",
        "slower",
        "little",
        "nothing",
        "wide",
        "wide-at-1",
        "by-chance",
        "at-floor",
        "across-floor",
        "beyond-floor",
    ],
)
def test_verdicts(found: Ratio, adjusted_p: float, wanted: Verdict) -> None:
    """A change must be neither chance nor of no interest; sameness needs a narrow interval."""
    assert verdict(found, adjusted_p) is wanted


def test_averaging_ratios() -> None:
    """A doubling and a halving cancel, errors average out, and nothing has no average."""
    average = significance.geometric_mean([ratio(2.0, 0.01, 0.0), ratio(0.5, 0.01, 0.0)])
    assert average is not None
    assert average.value == pytest.approx(1.0)
    assert math.log(average.high) == pytest.approx(0.01 / math.sqrt(2))
    assert significance.geometric_mean([]) is None


def test_replicates_needed_by_hand() -> None:
    """The fewest whose interval is narrow enough, if further ones vary as those there are."""
    mean = Mean(value=0.3, error=0.02 / math.sqrt(3), df=10.0, n=3)
    needed = replicates_needed(mean, 0.01)

    def half(n: int) -> float:
        return float(stats.t.ppf(0.975, 10 + n - 3)) * 0.02 / math.sqrt(n)

    assert half(needed) <= math.log1p(0.01) < half(needed - 1)
    assert needed == 18


def test_no_more_replicates_than_there_are() -> None:
    """An interval that is narrow enough needs none; what was found plays no part."""
    for value in (0.0, 0.5):
        assert replicates_needed(Mean(value, 0.001, 10.0, 3), 0.01) == 3
        assert replicates_needed(Mean(value, 0.02, 10.0, 3), 0.01) > 3


def test_replicates_needed_bring_the_interval_there() -> None:
    """Measured so often, by processes that differ as much, it is as narrow as was asked."""
    between_sd = BetweenProcessSd(sd_log=0.006, df=8.0)
    three = [Replicate(value, 0.01, 11.0) for value in (-0.012, 0.0, 0.012)]
    needed = replicates_needed(moderated(three, between_sd), 0.01)
    assert 3 < needed < 30
    sd = statistics.stdev(each.value for each in three)
    more = [Replicate(sd * math.sqrt((needed - 1) / needed) * sign, 0.01, 11.0)
            for sign in [-1.0, 1.0] * (needed // 2) + [0.0] * (needed % 2)]  # fmt: skip
    assert half_width_log(*moderated(more, between_sd)[1:3]) == pytest.approx(
        math.log1p(0.01), rel=0.1
    )


@pytest.mark.parametrize(
    ("own_sd", "call_sd", "target"),
    [(0.03, 0.0, 0.01), (0.05, 0.0, 0.02), (0.005, 0.1, 0.01), (0.005, 0.2, 0.02)],
)
def test_what_was_assumed_weighs_less_with_each_further_replicate(
    own_sd: float, call_sd: float, target: float
) -> None:
    """Too few were asked for of noisy replicates, and up to 14 times too many of short calls.

    Others that vary as the first three do are just as many as are needed.
    """
    three = [Replicate(own_sd * off, between_sd=call_sd) for off in (-1.0, 0.0, 1.0)]
    needed = replicates_needed(moderated(three, ASSUMED_SD), target)

    def half(n: int) -> float:
        scale = math.sqrt((n - 1) / (n - n % 2))
        signs = [-1.0, 1.0] * (n // 2) + [0.0] * (n % 2)
        many = [Replicate(own_sd * scale * sign, between_sd=call_sd) for sign in signs]
        mean = moderated(many, ASSUMED_SD)
        return half_width_log(mean.error, mean.df)

    assert half(needed) <= math.log1p(target) < half(needed - 1)


@pytest.mark.parametrize(("value", "bound"), [(0.0, 0.02), (0.03, 0.02), (-0.05, 0.02)])
def test_replicates_to_settle_reach_the_limit(value: float, bound: float) -> None:
    """As many as bring the interval wholly to one side of 2 %, if the mean stays where it is."""
    mean = Mean(value, 0.02, 10.0, 3)
    needed = replicates_to_settle(mean, significance.ratio(mean).p_value)
    assert needed is not None
    distance = abs(abs(value) - math.log1p(bound))
    halves = [half_width_log(0.02 * math.sqrt(3 / n), 10.0 + n - 3) for n in (needed - 1, needed)]
    assert halves[1] <= distance < halves[0]


def test_what_lies_at_the_limit_is_never_settled() -> None:
    """It would take more replicates than anybody waits for."""
    assert replicates_to_settle(Mean(math.log1p(0.02), 0.01, 10.0, 3), 0.1) is None


def test_replicates_narrow_nothing_of_what_runs_differ_by() -> None:
    """More of them are needed than without it; none are enough where it is most of the error."""
    mean = Mean(0.08, 0.03, 10.0, 3)
    own = significance.ratio(mean).p_value
    alone, besides = (replicates_to_settle(mean, own, run_sd=sd) for sd in (0.0, 0.02))
    assert alone is not None
    assert besides is not None
    assert mean.n < alone < besides
    assert half_width_log(math.hypot(math.sqrt(0.03**2 - 0.02**2) * math.sqrt(3 / besides), 0.02),
                          10.0 + besides - 3) <= 0.08 - math.log1p(0.02)  # fmt: skip
    assert replicates_to_settle(Mean(0.08, 0.06, 10.0, 3), 0.2, run_sd=0.05) is None


def test_more_replicates_for_a_p_value_among_many() -> None:
    """One that is adjusted upwards has to be smaller itself."""
    mean = Mean(0.04, 0.008, 10.0, 3)
    own = significance.ratio(mean).p_value
    alone, among = (replicates_to_settle(mean, own * times) for times in (1, 5000))
    assert alone is not None
    assert among is not None
    assert mean.n < alone < among


def test_both_parts_of_the_variance_by_hand() -> None:
    """Between processes as is known, within them as their blocks say, and what is seen besides."""
    between_sd = BetweenProcessSd(sd_log=0.006, df=8.0)
    found = moderated([Replicate(0.01, 0.03), Replicate(0.03, 0.04)], between_sd)
    known, own = 0.006**2 + (0.03**2 + 0.04**2) / 2, 0.02**2 / 2
    assert found.value == pytest.approx(0.02)
    assert found.error == pytest.approx(math.sqrt((8 * known + own) / 9 / 2))
    assert (found.df, found.n) == (9.0, 2)


def test_few_blocks_are_known_less() -> None:
    """Where the part within is most of a variance, it counts for what its blocks are worth."""
    between_sd = BetweenProcessSd(sd_log=0.006, df=30.0)
    found = moderated([Replicate(0.0, 0.05, 3.0)] * 2, between_sd)
    assert found.df == pytest.approx(2 * 3.0 + 1, rel=0.05)
    assert moderated([Replicate(0.0, 0.0001, 3.0)] * 2, between_sd).df == 31.0
    assert moderated([Replicate(0.0, 0.05, 1000.0)] * 2, between_sd).df == 31.0
    assert moderated([Replicate(0.0, 0.05, 0.1)], between_sd).df == 3.0
