"""Which point is looked at next, and which end it is like."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import factories
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_runs import Made, side

from dynamometer.results.bisection.deciding import (
    Nearer,
    Watched,
    again,
    decide,
    doubts,
    watch,
    why_apart,
)
from dynamometer.results.bisection.search import (
    MOST_UNCLEAR,
    ends,
    next_point,
    steps,
    wrong_p_of_look,
)
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from dynamometer.results.comparison.sides import Side

GOOD, BAD, UNCLEAR, UNTESTABLE = Nearer


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
        decided[number] = UNTESTABLE if number in lost else BAD if number >= first else GOOD
    last_good, first_bad = ends(points, decided)
    assert last_good < first <= first_bad
    assert set(range(last_good + 1, first_bad)) <= lost


def test_errors_of_looks_add_up() -> None:
    """To those of the search."""
    assert wrong_p_of_look(65, 4) * steps(65) * 4 == pytest.approx(0.05)


def test_a_search_ends_where_nothing_more_can_be_told() -> None:
    """After some points that stay unclear, rather than at every one."""
    decided: dict[int, Nearer] = {}
    while (number := next_point(100, decided)) is not None:
        decided[number] = UNCLEAR
    assert len(decided) == MOST_UNCLEAR


def run(seed: int, **made: Any) -> Side:
    """Make up a run of one model."""
    return side(Made(models=1, **made), seed)


def worse(slower: float = 1.2) -> Watched:
    """Watch ends that differ by so much."""
    found = watch([run(1)], [run(2, slower={0: slower})])
    assert found is not None
    return found


def test_a_quantity_between_the_ends() -> None:
    """Is like the nearer one, or unclear near their middle."""
    watched = worse()
    assert watched.kind is not None
    assert watched.kind.name == "speedup"
    for slower, expected in ((1.0, GOOD), (1.2, BAD), (1.0954, UNCLEAR)):
        decision = decide(watched, [run(3, slower={0: slower})], 0.01)
        assert decision.nearer is expected
        assert decision.wrong_p is not None
        assert (decision.wrong_p <= 0.01) == (expected is not UNCLEAR)


def test_more_runs_tell_more() -> None:
    """Replicates of all runs of a point count, and of the ends."""
    watched = worse()
    chances = [
        decide(each, [run(5 + number) for number in range(count)], 1e-12).wrong_p
        for each, count in (
            (watched, 1),
            (watched, 6),
            (again(watched, [run(1), run(21)], [run(2, slower={0: 1.2})]), 6),
        )
    ]
    assert None not in chances
    assert chances == sorted(chances, reverse=True)


def test_of_several_runs_that_counts_whose_compile_times_scatter_most() -> None:
    """One steady run doesn't make a machine steady."""
    bad = [run(2, **FAILING), run(4, **FAILING)]
    for seeds in ((1, 3), (3, 1)):
        watched = watch([run(each, warm_sd=0.5 if each == 3 else 0.05) for each in seeds], bad)
        assert watched is not None
        compiled = watched.good.quantities["compile_time"]
        assert len(compiled.replicates) == 2
        assert compiled.between_sd.sd_log > 0.1


def test_further_noise_between_runs_is_allowed_for() -> None:
    """As `compare` does; it is less over several runs."""
    watched = worse(1.06)
    assert decide(watched, [run(3)], 0.01).nearer is GOOD
    one = decide(watched, [run(3)], 0.01, run_sd=0.03)
    many = decide(watched, [run(3), run(4), run(5)], 0.01, run_sd=0.03)
    assert one.nearer is UNCLEAR
    assert one.wrong_p is not None
    assert many.wrong_p is not None
    assert many.wrong_p < one.wrong_p


FAILING = {"failing": frozenset({0})}


def test_how_it_ends() -> None:
    """Comes before what was measured, and must be so twice: one failure may be an accident."""
    assert watch([run(1)], [run(2, **FAILING)]) is None
    watched = watch([run(1), run(3)], [run(2, **FAILING), run(4, **FAILING)])
    assert watched is not None
    assert watched.kind is None
    for made, expected in (({}, GOOD), (FAILING, BAD)):
        assert decide(watched, [run(5, **made)], 0.01).nearer is UNCLEAR
        assert decide(watched, [run(5, **made), run(6, **made)], 0.01).nearer is expected
    flaky = decide(watched, [run(5), run(6, **FAILING)], 0.01)
    assert (flaky.nearer, "flaky" in flaky.text) == (UNTESTABLE, True)


@pytest.mark.parametrize("status", [Status.CRASH, Status.INFRA, Status.SKIP])
def test_another_failure_tells_nothing(status: Status) -> None:
    """What is the harness's own fault may be otherwise next time."""
    watched = watch([run(1), run(3)], [run(2, **FAILING), run(4, **FAILING)])
    assert watched is not None
    others = [ended(run(each), status) for each in (5, 6)]
    expected = UNCLEAR if status is Status.INFRA else UNTESTABLE
    assert decide(watched, others, 0.01).nearer is expected
    assert decide(worse(), others, 0.01).nearer is expected


@pytest.mark.parametrize("status", [Status.INFRA, Status.SKIP])
def test_what_is_never_watched(status: Status) -> None:
    """Faults of the harness, and what is left out."""
    assert watch([run(1), run(2)], [ended(run(each), status) for each in (3, 4)]) is None


def ended(given: Side, status: Status) -> Side:
    """Return a run that ended otherwise."""
    outcome = factories.failure(status)
    return replace(given, entries=tuple(replace(e, outcome=outcome) for e in given.entries))


def test_a_failure_says_nothing_of_a_speedup() -> None:
    """The point is passed over; so is one without a result."""
    assert decide(worse(), [run(3, **FAILING)], 0.01).nearer is UNTESTABLE
    assert decide(worse(), [replace(run(3), entries=())], 0.01).nearer is UNTESTABLE


def test_ends_that_do_not_differ() -> None:
    """Nothing is watched; nor where what was bad has become good, or eager is faster."""
    assert watch([run(1)], [run(2)]) is None
    assert watch([run(1, slower={0: 1.2})], [run(2)]) is None
    assert watch([run(1, **FAILING), run(3, **FAILING)], [run(2), run(4)]) is None
    assert watch([run(1)], [run(2, eager={0: 0.9})]) is None


def test_what_is_in_doubt_is_unclear() -> None:
    """Unless another run of the point is not."""
    one = run(3)
    doubted = replace(one, entries=tuple(replace(each, doubt="busy") for each in one.entries))
    assert decide(worse(), [doubted], 0.01).nearer is UNCLEAR
    assert decide(worse(), [doubted, run(4)], 0.01).nearer is GOOD
    assert doubts([doubted]) == ["model_00 inductor: busy"]


def test_other_batch_sizes_and_machines_are_not_compared() -> None:
    """What differs then is no one's doing."""
    own = run(3)
    other = tuple(
        replace(each, identity={**each.identity, "batch_size": "64"}) for each in own.entries
    )
    decision = decide(worse(), [replace(own, entries=other)], 0.01)
    assert (decision.nearer, "batch size is 64" in decision.text) == (UNTESTABLE, True)
    moved = replace(own, conditions={**own.conditions, "cpu": "another"})
    assert "cpu" in (why_apart(own, moved) or "")
    assert why_apart(own, run(4)) is None
