"""What must hold of any speedup, whatever was measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynamometer.results.statistics.scatter import Scatter, updated
from dynamometer.results.statistics.significance import (
    Replicate,
    adjusted,
    geometric_mean,
    moderated,
    replicates_needed,
    wilson,
)
from dynamometer.results.statistics.statistics import log_speedup, speedup
from dynamometer.results.values.records import BetweenProcessSd, Measurement, Ratio

if TYPE_CHECKING:
    from random import Random

latencies = st.floats(1e-7, 1e3)
logs = st.floats(-5, 5)
errors = st.floats(0, 0.5)
between_sds = st.builds(BetweenProcessSd, sd_log=st.floats(1e-4, 0.1), df=st.floats(0.5, 30))
replicates = st.lists(
    st.builds(Replicate, logs, errors, st.floats(0.5, 100), st.floats(0, 0.2)),
    min_size=1,
    max_size=8,
)


@st.composite
def arm_pairs(draw: st.DrawFn) -> tuple[Measurement, Measurement]:
    """Draw the latencies of two arms in the same blocks."""
    blocks = draw(st.lists(st.integers(0, 5), min_size=1, max_size=12))

    def arm(name: str) -> Measurement:
        size = len(blocks)
        samples = draw(st.lists(latencies, min_size=size, max_size=size))
        return Measurement(
            metric="latency", unit="s", arm=name, samples=tuple(samples), blocks=tuple(blocks)
        )

    return arm("baseline"), arm("other")


def scaled(measurement: Measurement, factor: float) -> Measurement:
    """Multiply every sample."""
    return Measurement(
        metric=measurement.metric,
        unit=measurement.unit,
        arm=measurement.arm,
        samples=tuple(sample * factor for sample in measurement.samples),
        blocks=measurement.blocks,
    )


@given(arm_pairs(), st.floats(1e-3, 1e3))
def test_scaling_both_arms_changes_nothing(
    pair: tuple[Measurement, Measurement], factor: float
) -> None:
    """A machine that is slower by a factor for both gives the same speedup."""
    before, after = pair
    found = log_speedup(scaled(before, factor), scaled(after, factor))
    assert found[:3] == pytest.approx(log_speedup(before, after)[:3], abs=1e-9)


@given(arm_pairs(), st.floats(1.0, 1e3))
def test_longer_calls_differ_less_from_process_to_process(
    pair: tuple[Measurement, Measurement], factor: float
) -> None:
    """By what a call takes more or less whatever it does, of which the call is a multiple."""
    short, long = (log_speedup(*(scaled(each, by) for each in pair)) for by in (1.0, factor))
    assert 0 < long.between_sd <= short.between_sd <= 0.2


@given(arm_pairs(), st.floats(1e-3, 1e3))
def test_scaling_one_arm_scales_the_speedup(
    pair: tuple[Measurement, Measurement], factor: float
) -> None:
    """An arm that takes a factor longer is that much slower, with the same error."""
    mean, error, *_ = log_speedup(*pair)
    slower, same_error, *_ = log_speedup(pair[0], scaled(pair[1], factor))
    assert slower == pytest.approx(mean - math.log(factor), abs=1e-9)
    assert same_error == pytest.approx(error, abs=1e-9)


@given(arm_pairs())
def test_swapping_arms_negates_the_log(pair: tuple[Measurement, Measurement]) -> None:
    """It doesn't matter which arm is called the baseline."""
    mean, error, *_ = log_speedup(*pair)
    assert log_speedup(pair[1], pair[0])[:2] == (pytest.approx(-mean), pytest.approx(error))


@given(arm_pairs(), st.randoms(use_true_random=False))
def test_the_order_within_blocks_does_not_matter(
    pair: tuple[Measurement, Measurement], rng: Random
) -> None:
    """Samples may come in any order, as long as each stays in its block."""
    before, after = pair
    order = list(range(len(before.samples)))
    rng.shuffle(order)
    shuffled = Measurement(
        metric=before.metric,
        unit=before.unit,
        arm=before.arm,
        samples=tuple(before.samples[index] for index in order),
        blocks=tuple(before.blocks[index] for index in order),
    )
    assert log_speedup(shuffled, after) == log_speedup(before, after)


@given(arm_pairs())
def test_an_arm_compared_with_itself_is_even(pair: tuple[Measurement, Measurement]) -> None:
    """Identical samples differ by nothing."""
    assert log_speedup(pair[0], pair[0])[:2] == (0.0, 0.0)


@given(replicates, between_sds)
def test_swapping_arms_inverts_the_ratio(
    values: list[Replicate], between_sd: BetweenProcessSd
) -> None:
    """The other way round, value and interval are inverted and the p-value is the same."""
    one = speedup(values, between_sd)
    other = speedup([each._replace(value=-each.value) for each in values], between_sd)
    assert other.value == pytest.approx(1 / one.value)
    assert other.low == pytest.approx(1 / one.high)
    assert other.high == pytest.approx(1 / one.low)
    assert other.p_value == pytest.approx(one.p_value)


@given(replicates, between_sds, st.randoms(use_true_random=False))
def test_the_order_of_replicates_does_not_matter(
    values: list[Replicate], between_sd: BetweenProcessSd, rng: Random
) -> None:
    """Replicates are exchangeable."""
    shuffled = list(values)
    rng.shuffle(shuffled)
    assert speedup(shuffled, between_sd) == speedup(values, between_sd)


@given(st.integers(1, 20), errors, between_sds)
def test_identical_arms_are_the_same(n: int, error: float, between_sd: BetweenProcessSd) -> None:
    """Where no replicate shows a difference, the ratio is 1 and nothing speaks against that."""
    found = speedup([Replicate(0.0, error)] * n, between_sd)
    assert found.value == 1.0
    assert found.p_value == 1.0
    assert found.low < 1.0 < found.high


@given(replicates, between_sds)
def test_the_interval_contains_the_value(
    values: list[Replicate], between_sd: BetweenProcessSd
) -> None:
    """An estimate lies within its interval, which is never empty or inside out."""
    found = speedup(values, between_sd)
    assert 0 < found.low < found.value < found.high
    assert 0 <= found.p_value <= 1
    assert found.n == len(values)


@given(replicates, between_sds)
def test_interval_and_p_value_agree(values: list[Replicate], between_sd: BetweenProcessSd) -> None:
    """The 95 % interval leaves 1 out exactly when p is below 5 %."""
    found = speedup(values, between_sd)
    assume(abs(found.p_value - 0.05) > 1e-6)
    assert (found.p_value < 0.05) == (not found.low <= 1.0 <= found.high)


@given(logs, st.floats(0, 1), st.integers(1, 6), between_sds)
def test_more_replicates_of_the_same_spread_narrow_the_interval(
    center: float, distance: float, pairs: int, between_sd: BetweenProcessSd
) -> None:
    """Measuring more pays."""

    def width(n: int) -> float:
        found = speedup(
            [Replicate(center + distance), Replicate(center - distance)] * n, between_sd
        )
        return math.log(found.high / found.low)

    assert width(pairs + 1) < width(pairs)


@given(replicates, st.floats(0.01, 2), between_sds)
def test_replicates_that_disagree_more_widen_the_interval(
    values: list[Replicate], more: float, between_sd: BetweenProcessSd
) -> None:
    """Replicates that disagree more leave more open."""
    assume(len(values) > 1)
    center = sum(each.value for each in values) / len(values)
    assume(max(abs(each.value - center) for each in values) > 1e-2)
    wider = [each._replace(value=center + (each.value - center) * (1 + more)) for each in values]
    one, other = speedup(values, between_sd), speedup(wider, between_sd)
    assert math.log(other.high / other.low) > math.log(one.high / one.low)


@given(replicates, between_sds, st.floats(1.1, 10))
def test_a_noisier_machine_widens_the_interval(
    values: list[Replicate], between_sd: BetweenProcessSd, factor: float
) -> None:
    """What is known of other models counts for this one."""
    noisier = BetweenProcessSd(sd_log=between_sd.sd_log * factor, df=between_sd.df)
    values = [each._replace(df=math.inf) for each in values]  # else it is known better, too
    one, other = speedup(values, between_sd), speedup(values, noisier)
    assert math.log(other.high / other.low) >= math.log(one.high / one.low)


@st.composite
def ratios(draw: st.DrawFn) -> Ratio:
    """Draw an estimate."""
    value, half = draw(st.floats(-3, 3)), draw(st.floats(1e-4, 1))
    low, high = math.exp(value - half), math.exp(value + half)
    return Ratio(value=math.exp(value), low=low, high=high, n=3, p_value=draw(st.floats(0, 1)))


@given(st.lists(ratios(), min_size=1, max_size=10))
def test_the_geometric_mean_lies_between(found: list[Ratio]) -> None:
    """A mean is no larger than the largest, and known no worse than the worst known."""
    mean = geometric_mean(found)
    assert mean is not None
    values = [each.value for each in found]
    assert min(values) * (1 - 1e-9) <= mean.value <= max(values) * (1 + 1e-9)
    assert mean.low < mean.value < mean.high
    widest = max(each.high / each.low for each in found)
    assert mean.high / mean.low <= widest * (1 + 1e-9)
    assert mean.n == len(found)


p_values = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(p_values)
def test_adjusting_keeps_the_order_and_helps_nobody(found: list[float]) -> None:
    """No p-value gets smaller or overtakes another, and all stay probabilities."""
    result = adjusted(found)
    assert all(
        before <= after * (1 + 1e-12) <= 1 + 1e-12
        for before, after in zip(found, result, strict=True)
    )
    assert max(result) == pytest.approx(max(found))
    order = sorted(range(len(found)), key=found.__getitem__)
    assert [result[index] for index in order] == pytest.approx(sorted(result))


@given(p_values, st.randoms(use_true_random=False))
def test_the_order_of_tests_does_not_matter(found: list[float], rng: Random) -> None:
    """A family of tests has no order."""
    order = list(range(len(found)))
    rng.shuffle(order)
    result = adjusted(found)
    assert adjusted([found[index] for index in order]) == [result[index] for index in order]


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_share_lies_in_its_interval(counts: tuple[int, int]) -> None:
    """Also none and all do."""
    found = wilson(*counts)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


series = st.lists(
    st.builds(Scatter, st.floats(1e-8, 1.0), st.floats(0.0, 1e-3), st.integers(1, 9).map(float)),
    min_size=1,
    max_size=30,
)


@given(series, st.floats(1e-2, 1e2))
def test_learning_scales_with_what_is_learnt_from(found: list[Scatter], by: float) -> None:
    """Noise that is larger by a factor gives a spread larger by it, worth as much."""
    assumed = BetweenProcessSd(sd_log=0.006, df=3.0)
    one = updated(assumed, found)
    larger = [Scatter(each.variance * by**2, each.within * by**2, each.df) for each in found]
    other = updated(BetweenProcessSd(sd_log=0.006 * by, df=3.0), larger)
    assert other.sd_log == pytest.approx(one.sd_log * by, rel=1e-2)
    assert other.df == pytest.approx(one.df, rel=5e-2)


@given(series)
def test_what_is_learnt_is_bounded(found: list[Scatter]) -> None:
    """Whatever was seen, a between_sd is a positive number, and worth no more than its series."""
    one = updated(BetweenProcessSd(sd_log=0.006, df=3.0), found)
    assert 0 < one.sd_log < 100
    assert 1 <= one.df <= min(30.0, 3.0 + sum(each.df for each in found)) + 1e-9


@given(replicates, between_sds, st.floats(1e-4, 0.5))
def test_as_many_replicates_as_needed_are_enough(
    values: list[Replicate], between_sd: BetweenProcessSd, target: float
) -> None:
    """As many as there are where the interval is narrow enough, and more where it is not."""
    mean, found = moderated(values, between_sd), speedup(values, between_sd)
    needed = replicates_needed(mean, target)
    precise = math.log(found.high / found.low) / 2 <= math.log1p(target) * (1 + 1e-9)
    assert (needed == len(values)) == precise
