"""What is decided of records that are made up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamometer.results.statistics.deciding import (
    choose,
    decide,
    evidence,
    is_settled,
    survivors,
)
from dynamometer.results.statistics.replicates import speedup_over
from dynamometer.results.values.cases import BASELINE, NO_BACKEND
from dynamometer.results.values.choices import ASSEMBLED, Subject
from dynamometer.results.values.decisions import Tuned
from dynamometer.results.values.records import PASSED, ArmResult, Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.results.values.records import Record

CANDIDATES = ("a", "b", "c", ASSEMBLED)
FACTORS = st.floats(0.2, 5.0)
FAILURES = st.sampled_from([each for each in Status if each is not Status.PASS])
ABOUT = Tuned(subject=Subject.GRAPH, key="abc", setting=factories.setting())


def record(factors: Mapping[str, float], failed: Mapping[str, Status], replicate: int) -> Record:
    """Make a replicate: how many times as long as eager each arm takes, and which fail."""
    case = factories.case(arms=(BASELINE, *CANDIDATES))
    arms = [BASELINE, *factors]
    results = tuple(
        ArmResult(
            arm=arm,
            outcome=factories.failure(failed[arm]) if arm in failed else PASSED,
        )
        for arm in arms
    )
    latencies = tuple(
        factories.latency(arm, 0.01 * factors.get(arm, 1.0)) for arm in arms if arm not in failed
    )
    return factories.record(case, replicate=replicate, arms=results, measurements=latencies)


@st.composite
def cases(draw: st.DrawFn) -> list[Record]:
    """Make rounds as the runner does: each has the survivors of those before it."""
    base = draw(st.fixed_dictionaries(dict.fromkeys(CANDIDATES, FACTORS)))
    failed = draw(st.dictionaries(st.sampled_from(CANDIDATES), FAILURES, max_size=3))
    found = [record(base, failed, 0)]
    for replicate in range(1, draw(st.integers(1, 3))):
        noise = draw(st.fixed_dictionaries({arm: st.floats(0.97, 1.03) for arm in CANDIDATES}))
        left = survivors(found)
        if left:
            found.append(record({arm: base[arm] * noise[arm] for arm in left}, {}, replicate))
    return found


@given(cases(), st.sampled_from([None, *CANDIDATES]))
def test_what_is_chosen_passed_and_is_surely_faster(
    records: Sequence[Record], preferred: str | None
) -> None:
    """Or it is eager."""
    known = {each.arm: each for each in evidence(records)}
    arm = choose(records, preferred)
    winners = [
        each
        for each in known.values()
        if each.outcome == PASSED and each.speedup and each.speedup.low > 1
    ]
    if arm == NO_BACKEND:
        assert not winners
    else:
        assert known[arm] in winners


@given(cases())
def test_nothing_that_could_be_chosen_is_faster(records: Sequence[Record]) -> None:
    """By its estimate."""
    chosen = decide(records, ABOUT, "now")
    speeds = [
        each.speedup.value
        for each in chosen.evidence
        if each.outcome == PASSED and each.speedup and each.speedup.low > 1
    ]
    best = chosen.chosen.speedup if chosen.chosen else None
    assert (best.value if best else 1.0) == max(speeds, default=1.0)


@given(cases())
def test_what_is_preferred_gives_way_only_to_what_is_surely_faster(
    records: Sequence[Record],
) -> None:
    """Not to what may as well be noise."""
    known = {each.arm: each for each in evidence(records)}
    arm, own = choose(records, ASSEMBLED), known[ASSEMBLED]
    if arm not in {ASSEMBLED, NO_BACKEND} and own.outcome == PASSED and own.speedup:
        ahead = speedup_over(ASSEMBLED, arm, records)
        assert own.speedup.low <= 1 or (ahead and ahead.low > 1)


@given(cases())
def test_who_survives_may_still_win(records: Sequence[Record]) -> None:
    """It passed, and took part to the last; the best of all is always among them, if faster."""
    left = survivors(records)
    known = {each.arm: each for each in evidence(records)}
    assert set(left) <= {each.arm for each in records[-1].arms} - {BASELINE}
    assert all(known[arm].outcome == PASSED for arm in left)
    arm = choose(records)
    assert arm == NO_BACKEND or arm in left or len(records) > 1
    if is_settled(records):
        assert left in {(), (arm,)}


@given(cases(), st.permutations(CANDIDATES))
def test_the_order_of_candidates_makes_no_difference(
    records: Sequence[Record], order: Sequence[str]
) -> None:
    """Which were asked for first decides nothing."""
    case = msgspec.structs.replace(records[0].case, arms=(BASELINE, *order))
    again = [msgspec.structs.replace(each, case=case) for each in records]
    assert choose(again) == choose(records)
    assert set(survivors(again)) == set(survivors(records))


@given(FAILURES, st.floats(1.2, 1000))
def test_a_fast_failure_is_never_chosen(status: Status, times: float) -> None:
    """However fast: its loss is its own, and the honest one wins."""
    records = [record({"a": 1 / times, "b": 0.5, "c": 0.9, ASSEMBLED: 1.0}, {"a": status}, 0)]
    decision = decide(records, ABOUT, "now")
    assert decision.arm == "b"
    lost = next(each for each in decision.evidence if each.arm == "a")
    assert lost.outcome.status is status
    assert lost.speedup is None


def test_without_any_candidate_that_passes_it_is_eager() -> None:
    """The seconds of a call are eager's own, then."""
    failed = dict.fromkeys(CANDIDATES, Status.CRASH)
    decision = decide([record(dict.fromkeys(CANDIDATES, 0.1), failed, 0)], ABOUT, "now")
    assert (decision.arm, decision.chosen) == (NO_BACKEND, None)
    assert decision.chosen_s == decision.eager_s
    assert decision.tuning_s == math.fsum(factories.record().seconds.values())


def test_where_eager_fails_it_stays_eager() -> None:
    """Nothing can be compared."""
    case = factories.case(arms=(BASELINE, "a"))
    records = [factories.record(case, outcome=factories.failure(Status.NONDETERMINISTIC))]
    decision = decide(records, ABOUT, "now")
    assert decision.arm == NO_BACKEND
    assert decision.eager_s is None
    assert survivors(records) == ()


def test_a_candidate_no_faster_than_eager_is_not_chosen() -> None:
    """Its estimate may be better by chance."""
    records = [record({"a": 0.999, "b": 1.001, "c": 1.0, ASSEMBLED: 1.0}, {}, 0)]
    assert choose(records) == NO_BACKEND
    assert not is_settled(records)


def disturbed(alone: Mapping[str, float], blocks: Mapping[str, float]) -> Record:
    """Make a replicate in whose blocks arms take other seconds than alone."""
    before = tuple(
        msgspec.structs.replace(factories.latency(arm, 0.01 * seconds), metric="latency_alone")
        for arm, seconds in alone.items()
    )
    beside = tuple(factories.latency(arm, 0.01 * seconds) for arm, seconds in blocks.items())
    arms = tuple(ArmResult(arm=arm, outcome=PASSED) for arm in blocks)
    case = factories.case(arms=(BASELINE, *CANDIDATES))
    return factories.record(case, arms=arms, measurements=(*before, *beside))


@pytest.mark.parametrize(
    ("alone", "chosen"), [(1.0, NO_BACKEND), (0.99, NO_BACKEND), (1.2, NO_BACKEND), (0.6, "a")]
)
def test_who_is_faster_only_as_eager_is_slowed_down_is_not_chosen(
    alone: float, chosen: str
) -> None:
    """A candidate as fast as eager would win beside one that slows eager; a faster one does."""
    own, beside = {BASELINE: 1.0, "a": alone}, {BASELINE: 1.3, "a": alone}
    assert choose([disturbed(own, beside)]) == chosen
    rest = dict.fromkeys(("b", "c", ASSEMBLED), 3.0)
    assert choose([disturbed({**own, **rest}, {**beside, **rest})]) == chosen


def test_a_candidate_whose_calls_alone_were_disturbed_may_be_chosen() -> None:
    """Nothing is known against it."""
    blocks = {BASELINE: 1.0, "a": 0.5}
    assert choose([disturbed({}, blocks)]) == choose([disturbed(blocks, blocks)]) == "a"


def test_what_is_preferred_does_not_give_way_where_it_is_slowed_down() -> None:
    """What is assembled of graphs is as fast as a single backend alone."""
    own = {BASELINE: 1.0, "a": 0.5, ASSEMBLED: 0.5}
    assert choose([disturbed(own, {**own, ASSEMBLED: 0.65})], ASSEMBLED) == ASSEMBLED
    assert choose([disturbed({**own, ASSEMBLED: 0.65}, {**own, ASSEMBLED: 0.65})], ASSEMBLED) == "a"


def test_rounds_without_what_is_preferred_say_nothing_against_it() -> None:
    """It was slowed down in the one round it had; its rivals go on without it."""
    own, beside = {BASELINE: 2.0, "a": 0.97, "b": 1.0}, {BASELINE: 2.0, "a": 1.15, "b": 1.0}
    first = disturbed(own, beside)
    later = disturbed({BASELINE: 2.0, "b": 1.0}, {BASELINE: 2.0, "b": 1.0})
    assert choose([first], "a") == "a"
    rounds = [first, *(msgspec.structs.replace(later, replicate=each) for each in (1, 2))]
    assert choose(rounds, "a") == "a"


def test_seconds_are_of_a_call_where_steps_have_several() -> None:
    """A graph is called on its inputs and on fresh ones in each step."""
    records = [record({"a": 0.5, "b": 2.0, "c": 1.0, ASSEMBLED: 1.0}, {}, 0)]
    once = decide(records, ABOUT, "now")
    twice = decide(records, msgspec.structs.replace(ABOUT, calls=2), "now")
    assert once.eager_s is not None
    assert once.chosen_s is not None
    assert (twice.eager_s, twice.chosen_s) == (once.eager_s / 2, once.chosen_s / 2)
    for one, two in zip(once.evidence, twice.evidence, strict=True):
        assert one.latency_s is not None
        assert two.latency_s == one.latency_s / 2
        assert two.speedup == one.speedup


def test_eager_has_no_evidence_though_it_was_a_candidate() -> None:
    """Where nothing is faster it is chosen, and takes what eager does."""
    case = factories.case(arms=(BASELINE, NO_BACKEND))
    decision = decide([factories.measured_record(case, seconds={BASELINE: 0.01, NO_BACKEND: 0.02})],
                      ABOUT, "now")  # fmt: skip
    assert (decision.arm, decision.chosen) == (NO_BACKEND, None)
    assert decision.chosen_s == decision.eager_s
