from __future__ import annotations

import math
import statistics

import factories
import pytest
from scipy import stats

from dynamometer.results.records import Ratio
from dynamometer.results.statistics import (
    PRIOR_DF,
    PRIOR_SD_LOG,
    geometric_mean,
    log_speedup,
    speedup,
)


def independent_speedup(values: list[float], within: float = 0.0) -> Ratio:
    """Compute the moderated t interval and p-value from scipy's t distribution."""
    n = len(values)
    own = sum((value - sum(values) / n) ** 2 for value in values)
    df = PRIOR_DF + n - 1
    variance = (PRIOR_DF * PRIOR_SD_LOG**2 + own) / df
    if n == 1:
        variance += within**2
    mean, error = sum(values) / n, math.sqrt(variance / n)
    low, high = stats.t.interval(0.95, df, loc=mean, scale=error)
    p_value = 2 * stats.t.sf(abs(mean) / error, df)
    return Ratio(value=math.exp(mean), low=math.exp(low), high=math.exp(high), n=n, p_value=p_value)


@pytest.mark.parametrize(
    "values",
    [
        [0.0],
        [0.01],
        [0.7],
        [-0.002, 0.003],
        [0.1, 0.12, 0.09],
        [-0.5, 0.5, 0.0, 0.2, -0.1],
        [0.004] * 10,
    ],
    ids=str,
)
def test_speedup_against_an_independent_computation(values: list[float]) -> None:
    """Value, interval and p-value are those of a moderated t statistic, one replicate included."""
    found = speedup([(value, 0.003) for value in values])
    wanted = independent_speedup(values, 0.003)
    for name in ("value", "low", "high", "p_value"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-9), name
    assert found.n == wanted.n


def test_speedup_of_one_replicate_by_hand() -> None:
    """One replicate stands on the prior: half width t(0.975, 8) = 2.306 times 0.6 %."""
    found = speedup([(math.log(2.0), 0.0)])
    assert found.value == pytest.approx(2.0)
    assert math.log(found.high / found.value) == pytest.approx(2.306004 * 0.006, rel=1e-6)
    assert math.log(found.value / found.low) == pytest.approx(2.306004 * 0.006, rel=1e-6)


def test_spread_within_counts_with_one_replicate_only() -> None:
    """Blocks that disagree widen a screening interval; replicates speak for themselves."""
    calm, noisy = speedup([(0.1, 0.0)]), speedup([(0.1, 0.05)])
    assert noisy.high - noisy.low > calm.high - calm.low
    assert speedup([(0.1, 0.0), (0.1, 0.0)]) == speedup([(0.1, 0.05), (0.1, 0.05)])


def test_speedup_needs_a_replicate() -> None:
    """Nothing measured gives no number."""
    with pytest.raises(ValueError, match="at least one replicate"):
        speedup([])


def test_log_speedup_by_hand() -> None:
    """Medians of logs by block, their differences averaged, the standard error over blocks."""
    before = factories.measurement(samples=(1.0, 2.0, 4.0, 8.0, 8.0), blocks=(0, 0, 0, 1, 1))
    after = factories.measurement(
        arm="inductor", samples=(1.0, 1.0, 1.0, 2.0, 2.0), blocks=(0, 0, 0, 1, 1)
    )
    mean, error = log_speedup(before, after)
    differences = [math.log(2.0), math.log(4.0)]
    assert mean == pytest.approx(statistics.mean(differences))
    assert error == pytest.approx((differences[1] - differences[0]) / 2)


def test_log_speedup_uses_common_blocks_only() -> None:
    """A block one arm wasn't visited in is no comparison."""
    before = factories.measurement(samples=(2.0, 100.0), blocks=(0, 1))
    after = factories.measurement(arm="inductor", samples=(1.0, 0.001), blocks=(0, 2))
    assert log_speedup(before, after) == (pytest.approx(math.log(2.0)), 0.0)


def test_log_speedup_needs_a_common_block() -> None:
    """Arms that were never measured side by side are not compared, and are named."""
    before = factories.measurement(samples=(2.0,), blocks=(0,))
    after = factories.measurement(arm="inductor", samples=(1.0,), blocks=(1,))
    with pytest.raises(ValueError, match="baseline and inductor were not measured"):
        log_speedup(before, after)


def test_geometric_mean() -> None:
    """A doubling and a halving cancel; nothing has no mean."""
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert geometric_mean([1.0, 2.0, 4.0]) == pytest.approx(2.0)
    assert geometric_mean([]) is None


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_geometric_mean_refuses_what_is_not_positive(value: float) -> None:
    """A ratio that isn't positive is a fault, not a small number."""
    with pytest.raises(ValueError, match=r"domain|positive"):
        geometric_mean([1.0, value])
