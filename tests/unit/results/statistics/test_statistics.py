from __future__ import annotations

import math
import random
import statistics

import factories
import numpy as np
import pytest
from scipy import stats

from dynamometer.results.statistics.replicates import speedup_over
from dynamometer.results.statistics.significance import Replicate
from dynamometer.results.statistics.statistics import log_speedup, speedup, trimmed_mean
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import ASSUMED_SD, BetweenProcessSd, Measurement, Ratio

SPREAD = BetweenProcessSd(sd_log=0.004, df=11.0)


def independent_speedup(values: list[float], within: float) -> Ratio:
    """Compute the moderated t interval and p-value from scipy's t distribution."""
    n = len(values)
    own = sum((value - sum(values) / n) ** 2 for value in values)
    df = SPREAD.df + n - 1
    variance = (SPREAD.df * (SPREAD.sd_log**2 + within**2) + own) / df
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
    found = speedup([Replicate(value, 0.003) for value in values], SPREAD)
    wanted = independent_speedup(values, 0.003)
    for name in ("value", "low", "high", "p_value"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-9), name
    assert found.n == wanted.n


def test_speedup_of_one_replicate_by_hand() -> None:
    """One replicate stands on what is assumed: half width t(0.975, 3) = 3.182 times 0.8 %."""
    found = speedup([Replicate(math.log(2.0))], ASSUMED_SD)
    assert found.value == pytest.approx(2.0)
    assert math.log(found.high / found.value) == pytest.approx(3.182446 * 0.008, rel=1e-6)
    assert math.log(found.value / found.low) == pytest.approx(3.182446 * 0.008, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_error_within_counts_however_many_replicates(n: int) -> None:
    """Replicates that agree by luck are known no better than their blocks allow."""
    calm, noisy = ([Replicate(0.1, error)] * n for error in (0.0, 0.05))
    one, other = speedup(calm, SPREAD), speedup(noisy, SPREAD)
    assert math.log(other.high / other.low) > 5 * math.log(one.high / one.low)


def test_the_case_that_was_found() -> None:
    """Two replicates of 0.04, each known to 3 %, say less than one that is known so, not more."""
    one, two = (speedup([Replicate(0.04, 0.03)] * n, ASSUMED_SD) for n in (1, 2))
    assert one.low < 1.0 < one.high
    assert two.low < 1.0 < two.high
    assert two.p_value > 0.05


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
    mean, error, *_ = log_speedup(before, after)
    assert mean == pytest.approx(stats.trim_mean(logs, 0.25))
    if blocks % 4 == 0:  # scipy takes the nominal share for the one that was cut
        wanted = float(stats.mstats.trimmed_stde(logs, limits=(0.25, 0.25), inclusive=(True, True)))
        winsorized = stats.mstats.winsorize(np.array(logs), (0.25, 0.25))
        assert error == pytest.approx(wanted * math.sqrt(repetition(winsorized)))


def repetition(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return for how many neighbours one independent value counts, from their correlation."""
    off = values - values.mean()
    found = float((off[1:] * off[:-1]).sum() / (off**2).sum())
    corrected = min(0.9, max(0.0, found + (1 + 4 * max(0.0, found)) / len(values)))
    return (1 + corrected) / (1 - corrected)


def test_blocks_that_resemble_their_neighbours_tell_less() -> None:
    """The same blocks in another order have the same mean; how well it is known depends on it."""
    rising = [0.001 * block for block in range(24)]
    mixed = random.Random(0).sample(rising, len(rising))
    drift, noise = trimmed_mean(rising), trimmed_mean(mixed)
    assert drift.value == pytest.approx(noise.value)
    assert drift.error > 2.5 * noise.error
    assert drift.df < noise.df / 6


def test_blocks_that_alternate_are_taken_for_independent() -> None:
    """To count them for more would rest on a correlation that few blocks show badly."""
    ups = [0.001 if block % 2 else -0.001 for block in range(16)]
    assert trimmed_mean(ups).error == pytest.approx(0.001 / math.sqrt(15) / 0.5)


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
    mean, error, df, _ = log_speedup(before, after)
    assert df == 1.0
    differences = [math.log(2.0), math.log(4.0)]
    assert mean == pytest.approx(statistics.mean(differences))
    assert error == pytest.approx((differences[1] - differences[0]) / 2)


@pytest.mark.parametrize(("latency_s", "off"), [(1e-3, 0.01), (5e-3, 0.002), (1e-6, 0.2)])
def test_short_calls_differ_more_from_process_to_process(latency_s: float, off: float) -> None:
    """By ten microseconds of the shorter latency, and no more than a fifth of it."""
    before = factories.measurement(samples=(2 * latency_s,) * 2, blocks=(0, 1))
    after = factories.measurement(arm="inductor", samples=(latency_s,) * 2, blocks=(0, 1))
    found = log_speedup(before, after)
    assert found.between_sd == pytest.approx(off)
    assert found.own_variance == pytest.approx(off**2)
    longer = found._replace(between_sd=0.0)
    one, other = speedup([found], ASSUMED_SD), speedup([longer], ASSUMED_SD)
    known = math.hypot(ASSUMED_SD.sd_log, off) / ASSUMED_SD.sd_log
    widths = [math.log(each.high / each.low) for each in (one, other)]
    assert widths[0] == pytest.approx(widths[1] * known)


def test_log_speedup_uses_common_blocks_only() -> None:
    """A block one arm wasn't timed in is no comparison."""
    before = factories.measurement(samples=(2.0, 100.0), blocks=(0, 1))
    after = factories.measurement(arm="inductor", samples=(1.0, 0.001), blocks=(0, 2))
    found = log_speedup(before, after)
    assert found.value == pytest.approx(math.log(2.0))
    assert found.error == 0.0


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
