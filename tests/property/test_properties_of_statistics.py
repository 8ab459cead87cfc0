"""What must hold of any speedup, whatever was measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynamometer.results.records import Measurement
from dynamometer.results.statistics import geometric_mean, log_speedup, speedup

if TYPE_CHECKING:
    from random import Random

latencies = st.floats(1e-7, 1e3)
logs = st.floats(-5, 5)
errors = st.floats(0, 0.5)
replicates = st.lists(st.tuples(logs, errors), min_size=1, max_size=8)


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
    assert found == pytest.approx(log_speedup(before, after), abs=1e-9)


@given(arm_pairs(), st.floats(1e-3, 1e3))
def test_scaling_one_arm_scales_the_speedup(
    pair: tuple[Measurement, Measurement], factor: float
) -> None:
    """An arm that takes a factor longer is that much slower, with the same error."""
    mean, error = log_speedup(*pair)
    slower, same_error = log_speedup(pair[0], scaled(pair[1], factor))
    assert slower == pytest.approx(mean - math.log(factor), abs=1e-9)
    assert same_error == pytest.approx(error, abs=1e-9)


@given(arm_pairs())
def test_swapping_arms_negates_the_log(pair: tuple[Measurement, Measurement]) -> None:
    """It doesn't matter which arm is called the baseline."""
    mean, error = log_speedup(*pair)
    assert log_speedup(pair[1], pair[0]) == (pytest.approx(-mean), pytest.approx(error))


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
    assert log_speedup(pair[0], pair[0]) == (0.0, 0.0)


@given(replicates)
def test_swapping_arms_inverts_the_ratio(values: list[tuple[float, float]]) -> None:
    """The other way round, value and interval are inverted and the p-value is the same."""
    one = speedup(values)
    other = speedup([(-value, error) for value, error in values])
    assert other.value == pytest.approx(1 / one.value)
    assert other.low == pytest.approx(1 / one.high)
    assert other.high == pytest.approx(1 / one.low)
    assert other.p_value == pytest.approx(one.p_value)


@given(replicates, st.randoms(use_true_random=False))
def test_the_order_of_replicates_does_not_matter(
    values: list[tuple[float, float]], rng: Random
) -> None:
    """Replicates are exchangeable."""
    shuffled = list(values)
    rng.shuffle(shuffled)
    assert speedup(shuffled) == speedup(values)


@given(st.integers(1, 20), errors)
def test_identical_arms_are_the_same(n: int, error: float) -> None:
    """Where no replicate shows a difference, the ratio is 1 and nothing speaks against that."""
    found = speedup([(0.0, error)] * n)
    assert found.value == 1.0
    assert found.p_value == 1.0
    assert found.low < 1.0 < found.high


@given(replicates)
def test_the_interval_contains_the_value(values: list[tuple[float, float]]) -> None:
    """An estimate lies within its interval, which is never empty or inside out."""
    found = speedup(values)
    assert 0 < found.low < found.value < found.high
    assert 0 <= found.p_value <= 1
    assert found.n == len(values)


@given(replicates)
def test_interval_and_p_value_agree(values: list[tuple[float, float]]) -> None:
    """The 95 % interval leaves 1 out exactly when p is below 5 %."""
    found = speedup(values)
    assume(abs(found.p_value - 0.05) > 1e-6)
    assert (found.p_value < 0.05) == (not found.low <= 1.0 <= found.high)


@given(logs, st.floats(0, 1), st.integers(1, 6))
def test_more_replicates_of_the_same_spread_narrow_the_interval(
    center: float, spread: float, pairs: int
) -> None:
    """Measuring more pays."""

    def width(n: int) -> float:
        found = speedup([(center + spread, 0.0), (center - spread, 0.0)] * n)
        return math.log(found.high / found.low)

    assert width(pairs + 1) < width(pairs)


@given(replicates, st.floats(0.01, 2))
def test_a_wider_spread_widens_the_interval(values: list[tuple[float, float]], more: float) -> None:
    """Replicates that disagree more leave more open."""
    assume(len(values) > 1)
    center = sum(value for value, _ in values) / len(values)
    assume(max(abs(value - center) for value, _ in values) > 1e-3)
    wider = [(center + (value - center) * (1 + more), error) for value, error in values]
    one, other = speedup(values), speedup(wider)
    assert math.log(other.high / other.low) > math.log(one.high / one.low)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=10))
def test_the_geometric_mean_lies_between(values: list[float]) -> None:
    """A mean is no larger than the largest and no smaller than the smallest."""
    mean = geometric_mean(values)
    assert mean is not None
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    inverse = geometric_mean(1 / value for value in values)
    assert inverse == pytest.approx(1 / mean)
