"""Changes of level: those that are planted are found, and hardly any other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulated_histories import FLOOR, STEPS, Noise, found, is_true, series, told

from dynamometer.results.history.change_points import (
    FEWEST_RUNS,
    _intervals,
    _narrowest,
    _searched,
    change_points,
)


def test_a_step_without_noise() -> None:
    """It is known to the run, with both levels."""
    [change] = change_points([0.1] * 5 + [0.2] * 5, 0.0, FLOOR)
    assert (change.index, change.earliest, change.latest) == (5, 5, 5)
    assert change.before == pytest.approx(0.1)
    assert change.after == pytest.approx(0.2)
    assert change.p_value == 0.0


@pytest.mark.parametrize(
    "values",
    [
        [], [1.0], [1.0, 2.0], [1.0, 1.0, 2.0], [0.0] * 50,
        [0.0] * 10 + [0.015] * 10,  # certain, and of no interest
        [0.0] * 10 + [0.5],  # one run alone
        [0.0] * 10 + [0.5] + [0.0] * 10,
        [0.5] + [0.0] * 10,
    ],
)  # fmt: skip
def test_where_nothing_is_said(values: list[float]) -> None:
    """Too few runs, too small a change, or a single run."""
    assert change_points(values, 0.005, FLOOR) == []


def test_two_runs_are_a_change() -> None:
    """At the end of a series, and in its middle as two changes."""
    assert [each.index for each in change_points([0.0] * 10 + [0.2] * 2, 0.005, FLOOR)] == [10]
    values = [0.0] * 10 + [0.2] * 2 + [0.0] * 10
    assert [each.index for each in change_points(values, 0.005, FLOOR)] == [10, 12]


def test_intervals_bound_what_is_believed() -> None:
    """Runs that happen to agree don't scatter less than each of them says of itself."""
    values = [0.0] * 3 + [0.04] * 3
    assert change_points(values, 0.001, FLOOR)
    assert change_points(values, 0.04, FLOOR) == []


def test_it_is_deterministic_and_has_no_scale_of_its_own() -> None:
    """The same values say the same; moved or turned around in sign, the same changes."""
    noise = Noise()
    values = series(noise, 1)
    assert found(values, noise) == found(values, noise)
    places = [each.index for each in found(values, noise)]
    assert [each.index for each in found([5 - value for value in values], noise)] == places


@pytest.mark.parametrize("count", [4, 5, 6, 17, 80])
def test_every_interval_is_searched(count: int) -> None:
    """At all places that leave enough runs on both sides, from the longest to the shortest."""
    searched = _searched(count)
    places = list(zip(*map(np.ndarray.tolist, searched.places[:3]), strict=True))
    assert places == [
        (start, split, end)
        for start, end in _intervals(count)
        for split in range(start + FEWEST_RUNS, end - FEWEST_RUNS + 1)
    ]
    assert places[0] == (0, FEWEST_RUNS, count)
    assert searched.firsts.tolist()[-1] == len(places)
    firsts = [places[each] for each in searched.firsts[:-1]]
    assert [(start, end) for start, _, end in firsts] == list(_intervals(count))


def test_the_narrowest_interval_says_where() -> None:
    """Two steps so near to each other that a longer interval would place them elsewhere."""
    values = np.array([0.0] * 20 + [1.0] * 4 + [0.0] * 20)
    sums = np.concatenate(([0.0], np.cumsum(values - values.mean())))
    assert _narrowest(sums, _searched(len(values)), 0.1) == [20, 24]
    assert _narrowest(sums, _searched(len(values)), 10.0) == []


@pytest.mark.slow
def test_planted_steps_are_found() -> None:
    """Three steps of 5 % in 80 runs, of 20 series: all in their range, soon, and no other."""
    tellings = [told(Noise(), seed, STEPS) for seed in range(20)]
    delays = [delay for each in tellings for delay in each.delays]
    assert all(delay is not None and delay <= 8 for delay in delays)
    assert sum(each.false for each in tellings) <= 1


def test_where_nothing_is_planted_hardly_anything_is_told() -> None:
    """Of 200 series of 80 runs, with intervals that show half of the noise as well."""
    for noise in (Noise(), Noise(further=0.01)):
        count = sum(len(found(series(noise, seed, ()), noise)) for seed in range(200))
        assert count <= 10  # one in twenty


def test_a_range_holds_the_step() -> None:
    """Of steps as small as the noise, of which the place isn't known to the run."""
    noise, steps = Noise(own=0.02), ((40, -0.03),)
    changes = [each for seed in range(60) for each in found(series(noise, seed, steps), noise)]
    held = sum(is_true(each, steps) is not None for each in changes)
    assert len(changes) > 30
    assert held / len(changes) > 0.9
    assert any(each.latest > each.earliest for each in changes)
    assert all(math.isfinite(each.after) for each in changes)
