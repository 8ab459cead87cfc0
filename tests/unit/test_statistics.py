from __future__ import annotations

import math
import random
import statistics

import factories
import pytest
from scipy import stats

from dynamometer.results.cases import BASELINE
from dynamometer.results.records import ASSUMED_SPREAD, Measurement, Ratio, Spread
from dynamometer.results.replicates import speedup_over
from dynamometer.results.statistics import log_speedup, speedup

SPREAD = Spread(sd_log=0.004, df=11.0)


def independent_speedup(values: list[float], within: float) -> Ratio:
    """Compute the moderated t interval and p-value from scipy's t distribution."""
    n = len(values)
    own = sum((value - sum(values) / n) ** 2 for value in values)
    df = SPREAD.df + n - 1
    variance = (SPREAD.df * SPREAD.sd_log**2 + own) / df
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
    found = speedup([(value, 0.003) for value in values], SPREAD)
    wanted = independent_speedup(values, 0.003)
    for name in ("value", "low", "high", "p_value"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-9), name
    assert found.n == wanted.n


def test_speedup_of_one_replicate_by_hand() -> None:
    """One replicate stands on what is assumed: half width t(0.975, 8) = 2.306 times 0.6 %."""
    found = speedup([(math.log(2.0), 0.0)], ASSUMED_SPREAD)
    assert found.value == pytest.approx(2.0)
    assert math.log(found.high / found.value) == pytest.approx(2.306004 * 0.006, rel=1e-6)
    assert math.log(found.value / found.low) == pytest.approx(2.306004 * 0.006, rel=1e-6)


def test_spread_within_counts_with_one_replicate_only() -> None:
    """Blocks that disagree widen a screening interval; replicates speak for themselves."""
    calm, noisy = ([(0.1, error)] for error in (0.0, 0.05))
    one, other = speedup(calm, SPREAD), speedup(noisy, SPREAD)
    assert other.high - other.low > one.high - one.low
    assert speedup(calm * 2, SPREAD) == speedup(noisy * 2, SPREAD)


def test_speedup_needs_a_replicate() -> None:
    """Nothing measured gives no number."""
    with pytest.raises(ValueError, match="at least one replicate"):
        speedup([], SPREAD)


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5, 8, 11, 40])
def test_the_middle_half_of_blocks_against_scipy(blocks: int) -> None:
    """Mean and standard error are those of a mean trimmed by a quarter at each end."""
    rng = random.Random(blocks)
    logs = [rng.gauss(0.1, 0.05) for _ in range(blocks)]
    order = tuple(range(blocks))
    before = factories.measurement(samples=tuple(map(math.exp, logs)), blocks=order)
    after = factories.measurement(arm="inductor", samples=(1.0,) * blocks, blocks=order)
    mean, error = log_speedup(before, after)
    assert mean == pytest.approx(stats.trim_mean(logs, 0.25))
    if blocks % 4 == 0:  # scipy takes the nominal share for the one that was cut
        wanted = stats.mstats.trimmed_stde(logs, limits=(0.25, 0.25), inclusive=(True, True))
        assert error == pytest.approx(float(wanted))


def test_a_few_wild_blocks_change_little() -> None:
    """Whatever hits an arm for a moment is no property of the arm."""
    steady = [1.0 + index / 1000 for index in range(12)]
    order = tuple(range(12))
    after = factories.measurement(arm="inductor", samples=(1.0,) * 12, blocks=order)
    calm, hit = (
        log_speedup(factories.measurement(samples=tuple(samples), blocks=order), after)
        for samples in (steady, [*steady[:9], 9.0, 9.0, 9.0])
    )
    assert hit[0] == pytest.approx(calm[0], abs=0.003)
    assert hit[1] == pytest.approx(calm[1], rel=0.5)


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


@pytest.mark.parametrize("offset", [0.003, 0.006])
def test_identical_arms_are_seldom_called_different(offset: float) -> None:
    """The replicate is the process: each has an offset of its own that no number of blocks shows.

    To count blocks or samples as replicates calls identical arms different in over a quarter of
    the cases simulated here.
    """
    rng = random.Random(0)
    trials, alarms, pooled = 400, 0, 0
    for _ in range(trials):
        records, blocks = [], []
        for replicate in range(3):
            before, after = simulated_arms(rng, rng.gauss(0.0, offset))
            records.append(factories.record(replicate=replicate, measurements=(before, after)))
            blocks += [
                math.log(one / other)
                for one, other in zip(before.samples, after.samples, strict=True)
            ]
        found = speedup_over(BASELINE, "inductor", records)
        assert found is not None
        alarms += found.p_value < 0.05
        pooled += float(stats.ttest_1samp(blocks, 0.0).pvalue) < 0.05
    assert alarms / trials < 0.09
    assert pooled / trials > 0.25


def simulated_arms(rng: random.Random, offset: float) -> tuple[Measurement, Measurement]:
    """Draw latencies of two arms over 30 blocks: an offset between them, and 0.5 % of noise."""
    blocks = tuple(range(30))

    def arm(name: str, shift: float) -> Measurement:
        samples = tuple(0.01 * math.exp(shift + rng.gauss(0.0, 0.005)) for _ in blocks)
        return factories.measurement(arm=name, samples=samples, blocks=blocks)

    return arm("baseline", 0.0), arm("inductor", offset)
