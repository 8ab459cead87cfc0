"""From series of the index to changes, with what came with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from simulated_histories import indexed, of_points, stored

from dynamometer.results.history.changes import history, regressed
from dynamometer.results.values.history import STATUS, Difference, Direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.history import History, StoredSeries


def series(
    values: Sequence[float | str], metric: str = "speedup", doubt: str | None = None
) -> StoredSeries:
    """Return a series, one value or status for each day."""
    return stored("alexnet", values, metric, doubt=doubt)


def told(*given: StoredSeries, since: str | None = None) -> History:
    """Return what is said of series of as many runs as the longest has."""
    return history(indexed(max(len(each.points) for each in given)), given, since)


def test_a_change_with_what_came_with_it() -> None:
    """Between which runs it lies, by how much, and which version changed there."""
    [found] = told(series([1.5] * 10 + [1.2] * 5)).series
    [change] = found.changes
    assert change.direction is Direction.WORSE
    assert (change.last_before, change.first_after) == ("run-9", "run-10")
    assert change.at == "2026-01-11T00:00:00+00:00"
    assert change.index == 10
    assert change.before == pytest.approx(1.5)
    assert change.after == pytest.approx(1.2)
    assert change.ratio == pytest.approx(0.8)
    assert change.differences == (Difference(name="torch", before="2.11", after="2.12"),)
    assert [each.torch for each in found.points[9:11]] == ["2.11", "2.12"]


@pytest.mark.parametrize(
    ("metric", "direction"),
    [
        ("speedup", Direction.BETTER),
        ("memory_ratio", Direction.BETTER),
        ("compile_time", Direction.WORSE),
        ("latency", Direction.WORSE),
        ("eager_latency", Direction.WORSE),
    ],
)
def test_what_is_better(metric: str, direction: Direction) -> None:
    """A higher speedup, a shorter time."""
    [found] = told(series([1.0] * 8 + [1.5] * 4, metric)).series
    assert [each.direction for each in found.changes] == [direction]


def test_a_change_below_the_floor_of_its_metric_is_none() -> None:
    """5 % of a speedup are told, of a compile time they are of no interest."""
    values = [1.0] * 8 + [1.05] * 4
    found = told(series(values), series(values, "compile_time"))
    assert [len(each.changes) for each in found.series] == [1, 0]


def test_what_is_in_doubt_is_passed_over() -> None:
    """Such as disturbed runs; the numbers of runs stay those of the whole series."""
    assert not told(series([1.5] * 10 + [1.2] * 5, doubt="disturbed")).series[0].changes
    given = series([1.5] * 10 + [9.0] * 2 + [1.2] * 4)
    points = [
        msgspec.structs.replace(each, doubt="disturbed") if each.value == 9.0 else each
        for each in given.points
    ]
    [change] = told(of_points(given, points)).series[0].changes
    assert (change.last_before, change.first_after, change.index) == ("run-9", "run-12", 12)


def test_when_it_ceased_to_pass() -> None:
    """And when it passed again; a skip or infra says nothing, another failure is no change."""
    [found] = told(series(["pass", "skip", "crash", "fail", "infra", "pass"], STATUS)).series
    assert [(each.direction, each.before, each.after, each.index) for each in found.changes] == [
        (Direction.WORSE, "pass", "crash", 2),
        (Direction.BETTER, "fail", "pass", 5),
    ]
    assert found.changes[0].last_before == "run-0"
    assert found.changes[0].p_value is None


def test_since() -> None:
    """Earlier changes are left out, not the runs from which they are told."""
    given = series([1.5] * 8 + [1.2] * 8 + [1.0] * 8)
    assert len(told(given).series[0].changes) == 2
    [found] = told(given, since="2026-01-10T00:00:00+00:00").series
    assert [each.index for each in found.changes] == [16]
    assert len(found.points) == 24


def test_what_regressed_and_still_is() -> None:
    """Not what was made good since, nor what became better."""
    worse = series([1.5] * 10 + [1.2] * 10)
    recovered = series([1.5] * 10 + [1.2] * 5 + [1.5] * 5)
    partly = series([1.5] * 10 + [1.2] * 5 + [1.4] * 5)
    better = series([1.2] * 10 + [1.5] * 10)
    fails = series(["pass"] * 5 + ["crash"] * 2, STATUS)
    flaky = series(["pass"] * 5 + ["crash", "pass"], STATUS)
    found = regressed(told(worse, recovered, partly, better, fails, flaky))
    assert found.looked_at == 6
    kept = [each.points for each in found.series]
    assert kept == [each.points for each in told(worse, partly, fails).series]
    assert all(each.direction is Direction.WORSE for s in found.series for each in s.changes)


def test_p_values_count_all_series_that_were_looked_at() -> None:
    """What is significant alone may be chance among many."""
    noisy = [1.0, 1.03, 0.97, 1.02, 0.98, 1.0, 1.13, 1.16, 1.1, 1.15, 1.13]
    alone = told(series(noisy)).series[0].changes[0]
    assert alone.adjusted_p == alone.p_value
    others = [series([1.0] * 11) for _ in range(999)]
    statuses = [series(["pass", "crash"], STATUS)] * 9  # which are not tested
    found = told(series(noisy), *others, *statuses).series
    [among] = [each.changes[0] for each in found if each.changes and each.metric != STATUS]
    assert among.p_value == alone.p_value
    assert alone.p_value is not None
    assert among.adjusted_p == pytest.approx(min(1.0, 1000 * alone.p_value))
    values = [1 / each for each in noisy]
    assert regressed(told(series(values))).series
    assert not regressed(told(series(values), *others)).series


def test_imprecise_runs_are_no_level() -> None:
    """Two quick runs whose intervals hold the level before them say nothing."""
    exact = series([1.5] * 10 + [1.4] * 2)
    quick = [
        msgspec.structs.replace(point, error=0.08) if point.run >= 10 else point
        for point in exact.points
    ]
    [found] = told(of_points(exact, quick)).series
    assert found.changes == ()
    [found] = told(exact).series
    assert len(found.changes) == 1
