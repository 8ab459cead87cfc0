"""Which point is looked at next, and which end it is like."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import factories
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_runs import Made, side

from dynamometer.results.bisection.deciding import Nearer, decide, pooled, watch
from dynamometer.results.bisection.search import ends, next_point, steps, wrong_p_of_step
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from dynamometer.results.comparison.entries import Entry

GOOD, BAD, UNCLEAR = Nearer.GOOD, Nearer.BAD, Nearer.UNCLEAR


@given(points=st.integers(2, 300), data=st.data())
def test_the_first_bad_point_is_found(points: int, data: st.DataObject) -> None:
    """In as many steps as are said, where every point can be told."""
    first = data.draw(st.integers(1, points - 1))
    decided: dict[int, Nearer] = {}
    while (number := next_point(points, decided)) is not None:
        decided[number] = BAD if number >= first else GOOD
    assert ends(points, decided) == (first - 1, first)
    assert len(decided) <= steps(points)


@given(points=st.integers(2, 60), data=st.data())
def test_what_cant_be_told_stays_between_the_ends(points: int, data: st.DataObject) -> None:
    """The range that is left holds the first bad point, and nothing that could be told."""
    first = data.draw(st.integers(1, points - 1))
    lost = data.draw(st.sets(st.integers(1, points - 1)))
    decided: dict[int, Nearer] = {}
    while (number := next_point(points, decided)) is not None:
        assert number not in decided
        decided[number] = UNCLEAR if number in lost else BAD if number >= first else GOOD
    last_good, first_bad = ends(points, decided)
    assert last_good < first <= first_bad
    assert set(range(last_good + 1, first_bad)) <= lost


def test_errors_of_steps_add_up() -> None:
    """To those of the search."""
    assert wrong_p_of_step(65) * steps(65) == pytest.approx(0.05)


def entries(seed: int, **made: Any) -> list[Entry]:
    """Return the arms of one run or several of a model."""
    return [*pooled([side(Made(models=1, **made), seed)]).values()]


def test_a_quantity_between_the_ends() -> None:
    """Is like the nearer one, or unclear near their middle."""
    watched = watch(entries(1), entries(2, slower={0: 1.2}))
    assert watched is not None
    assert watched.kind is not None
    assert watched.kind.name == "speedup"
    for slower, expected in ((1.0, GOOD), (1.2, BAD), (1.0954, UNCLEAR)):
        decision = decide(watched, entries(3, slower={0: slower}), 0.01)
        assert decision.nearer is expected
        assert decision.wrong_p is not None
        assert (decision.wrong_p <= 0.01) == (expected is not UNCLEAR)


def test_more_runs_tell_more() -> None:
    """Replicates of all runs of a point count."""
    watched = watch(entries(1), entries(2, slower={0: 1.2}))
    assert watched is not None
    one = decide(watched, pooled([side(Made(models=1), 5)]).values(), 1e-9)
    many = decide(
        watched, pooled(side(Made(models=1), 5 + each) for each in range(6)).values(), 1e-9
    )
    assert one.wrong_p is not None
    assert many.wrong_p is not None
    assert many.wrong_p < one.wrong_p


def test_further_noise_between_runs_is_allowed_for() -> None:
    """As `compare` does."""
    watched = watch(entries(1), entries(2, slower={0: 1.05}))
    assert watched is not None
    assert decide(watched, entries(3), 0.01).nearer is GOOD
    assert decide(watched, entries(3), 0.01, run_sd=0.03).nearer is UNCLEAR


def test_how_it_ends() -> None:
    """Comes before what was measured; another failure tells nothing."""
    failing = entries(2, failing=frozenset({0}))
    watched = watch(entries(1), failing)
    assert watched is not None
    assert watched.kind is None
    assert decide(watched, entries(3), 0.01).nearer is GOOD
    assert decide(watched, failing, 0.01).nearer is BAD
    crash = factories.failure(Status.CRASH)
    others = [replace(each, outcome=crash) for each in failing]
    assert decide(watched, others, 0.01).nearer is Nearer.UNTESTABLE
    assert decide(watched, [], 0.01).nearer is Nearer.UNTESTABLE


def test_a_failure_says_nothing_of_a_speedup() -> None:
    """The point is passed over."""
    watched = watch(entries(1), entries(2, slower={0: 1.2}))
    assert watched is not None
    failing = entries(3, failing=frozenset({0}))
    assert decide(watched, failing, 0.01).nearer is Nearer.UNTESTABLE


def test_ends_that_do_not_differ() -> None:
    """Nothing is watched; nor where what was bad has become good."""
    assert watch(entries(1), entries(2)) is None
    assert watch(entries(1, slower={0: 1.2}), entries(2)) is None
    assert watch(entries(1, failing=frozenset({0})), entries(2)) is None


def test_what_is_in_doubt_is_unclear() -> None:
    """Unless another run of the point is not."""
    watched = watch(entries(1), entries(2, slower={0: 1.2}))
    assert watched is not None
    one = side(Made(models=1), 3)
    doubted = replace(one, entries=tuple(replace(each, doubt="disturbed") for each in one.entries))
    assert decide(watched, pooled([doubted]).values(), 0.01).nearer is UNCLEAR
    assert decide(watched, pooled([doubted, side(Made(models=1), 4)]).values(), 0.01).nearer is GOOD
