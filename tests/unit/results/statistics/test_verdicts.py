from __future__ import annotations

import dataclasses
import math
import re

import factories
import msgspec
import pytest

from dynamometer.results.statistics.between_processes import learnt, scatters
from dynamometer.results.statistics.significance import Verdict
from dynamometer.results.statistics.summary import CaseSummary, summarize_case
from dynamometer.results.statistics.verdicts import judge
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import ASSUMED_SD, PASSED, ArmResult, BetweenProcessSd

ARMS = (BASELINE, "inductor", "ts")


def measured(name: str, inductor_s: float, ts_s: float, **fields: object) -> CaseSummary:
    """Summarize a case of three replicates; the baseline takes 10 ms."""
    seconds = {BASELINE: 0.010, "inductor": inductor_s, "ts": ts_s}
    records = [
        factories.measured_record(factories.case(name, ARMS), replicate=each, seconds=seconds)
        for each in range(3)
    ]
    return summarize_case([msgspec.structs.replace(each, **fields) for each in records])


def test_every_pair_of_arms_is_judged() -> None:
    """Each against the baseline, and backends against each other, in the same blocks."""
    judged = judge([measured("a", 0.005, 0.010)])
    assert {(each.base, each.arm): each.verdict for each in judged} == {
        (BASELINE, "inductor"): Verdict.FASTER,
        (BASELINE, "ts"): Verdict.EQUIVALENT,
        ("inductor", "ts"): Verdict.SLOWER,
    }
    assert judged[-1].ratio.value == pytest.approx(0.5)


def test_p_values_are_adjusted_over_all() -> None:
    """What would be significant alone need not be so among many."""
    close = measured("close", 0.0097, 0.0097)
    alone = {each.arm: each for each in judge([close])}
    rest = [measured(f"m{index}", 0.010, 0.010) for index in range(20)]
    among = {each.arm: each for each in judge([close, *rest]) if each.case is close}
    before, after = alone["inductor"].adjusted_p, among["inductor"].adjusted_p
    assert before is not None
    assert after is not None
    assert before < after
    assert alone["inductor"].ratio == among["inductor"].ratio


@pytest.mark.parametrize("blocks", [(0, 1, 2, 3), (1, 2, 3)])
def test_nothing_is_concluded_on_a_disturbed_machine(blocks: tuple[int, ...]) -> None:
    """However large the difference."""
    (one, *_) = judge([measured("a", 0.005, 0.010, disturbed_blocks=blocks)])
    assert one.ratio.value == pytest.approx(2.0, rel=0.01)
    assert (one.verdict, one.adjusted_p) == (Verdict.UNCLEAR, None)


def test_what_is_disturbed_helps_nobody_else() -> None:
    """A disturbed case is no member of the family: its small p-value would lower the others'."""
    close, wild = measured("close", 0.0097, 0.0097), measured("wild", 0.001, 0.002)
    disturbed = measured("wild", 0.001, 0.002, disturbed_blocks=(0, 1, 2, 3))
    of = [
        {each.arm: each.adjusted_p for each in judge([close, other]) if each.case is close}
        for other in (wild, disturbed)
    ]
    (alone,) = [{each.arm: each.adjusted_p for each in judge([close])}]
    assert of[1] == alone != of[0]


def test_failed_arms_are_not_judged() -> None:
    """A wrong answer has no speed."""
    case = measured("a", 0.005, 0.010)
    wrong = factories.failure()
    records = [
        msgspec.structs.replace(
            record,
            arms=tuple(
                msgspec.structs.replace(arm, outcome=wrong) if arm.arm == "ts" else arm
                for arm in record.arms
            ),
        )
        for record in case.records
    ]
    assert [each.arm for each in judge([summarize_case(records)])] == ["inductor"]
    assert judge([]) == []


def test_a_spread_is_learnt_from_replicates() -> None:
    """Series that differ by 1 % between processes teach about that."""
    runs = []
    for run in range(4):
        records = []
        for replicate, shift in enumerate((0.99, 1.0, 1.01)):
            case = factories.case(f"m{run}", ARMS)
            seconds = {BASELINE: 0.010, "inductor": 0.008 * shift, "ts": 0.009 * shift}
            records.append(factories.measured_record(case, replicate=replicate, seconds=seconds))
        runs.append(records)
    found = learnt([each for records in runs for each in scatters(records, "ts")])
    assert 0.009 < found.sd_log < 0.011
    assert found.df <= ASSUMED_SD.df + 4 * 2.0  # worth no more than what it was learnt from


def test_an_arm_that_fails_keeps_nothing_of_the_others_from_being_learnt() -> None:
    """Nor is anything learnt of the one that failed."""
    failed = tuple(
        ArmResult(arm=arm, outcome=factories.failure() if arm == "ts" else PASSED) for arm in ARMS
    )
    records = [
        msgspec.structs.replace(each, outcome=factories.failure(), arms=failed)
        for name in "abc"
        for each in measured(name, 0.008, 0.009).records
    ]
    assert len(list(scatters(records, "inductor"))) == 3
    assert not list(scatters(records, "ts"))


def test_nothing_is_learnt_from_single_replicates_or_disturbed_ones() -> None:
    """They have no between_sd, or not that of the processes."""
    single = [factories.measured_record(factories.case(name, ARMS)) for name in "abc"]
    disturbed = [
        record
        for name in "abc"
        for record in measured(name, 0.008, 0.009, disturbed_blocks=(0, 1, 2, 3)).records
    ]
    assert not list(scatters(single, "ts"))
    assert not list(scatters(disturbed, "ts"))
    assert learnt([]) == ASSUMED_SD


def test_a_disturbed_replicate_takes_nothing_from_the_others() -> None:
    """They teach what they would have without it."""
    runs = [
        [
            factories.measured_record(
                factories.case(name, ARMS),
                replicate=each,
                seconds={BASELINE: 1.0, "inductor": 0.8 + each / 100, "ts": 0.9},
            )
            for each in range(4)
        ]
        for name in "abcd"
    ]
    wild = [
        [*records[:-1], msgspec.structs.replace(records[-1], disturbed_blocks=(0, 1, 2, 3))]
        for records in runs
    ]
    first = [records[:-1] for records in runs]
    found = [
        learnt([one for run in each for one in scatters(run, "inductor")])
        for each in (wild, first, runs)
    ]
    assert found[0] == found[1] != found[2]


def test_the_spread_of_a_record_is_what_its_speedup_is_judged_by() -> None:
    """Records carry it, so that their intervals are the same wherever they are read."""
    narrow, wide = (
        measured("a", 0.008, 0.009, between_sd=BetweenProcessSd(sd_log=sd, df=8.0)).arms[0].speedup
        for sd in (0.001, 0.05)
    )
    assert narrow is not None
    assert wide is not None
    assert narrow.high / narrow.low < wide.high / wide.low


def test_every_verdict_has_its_reason() -> None:
    """The interval and the limit it is held against."""
    judged = judge([measured("a", 0.005, 0.010)])
    of_inductor, of_ts, _ = (each.reason for each in judged)
    assert "lies beyond 2%, adjusted p=" in of_inductor
    assert of_ts.endswith("lies within 2%")


@pytest.mark.parametrize(
    ("low", "value", "high", "p_value", "says"),
    [
        (0.96, 1.005, 1.05, 0.8, "interval [0.960, 1.050] is wider than 2% on either side"),
        (1.01, 1.025, 1.04, 0.01, "interval [1.010, 1.040] is partly within 2% and partly beyond"),
        (1.03, 1.04, 1.05, 0.09, "interval [1.030, 1.050] lies beyond 2%, but adjusted p=0.09"),
    ],
)
def test_what_is_unclear_says_why(
    low: float, value: float, high: float, p_value: float, says: str
) -> None:
    """Too wide, across the limit, or one of too many."""
    (known, *_) = judge([measured("a", 0.010, 0.010)])
    ratio = msgspec.structs.replace(known.ratio, low=low, value=value, high=high)
    one = dataclasses.replace(known, ratio=ratio, adjusted_p=p_value, verdict=Verdict.UNCLEAR)
    assert one.reason.startswith(says)


def test_what_is_unclear_says_what_would_settle_it() -> None:
    """As many replicates as make the interval as narrow as was asked for."""
    case = factories.case("a", (BASELINE, "inductor"))
    records = [
        factories.measured_record(
            case, replicate=each, seconds={BASELINE: 0.010, "inductor": seconds}
        )
        for each, seconds in enumerate((0.0094, 0.0100, 0.0106))
    ]
    records = [msgspec.structs.replace(each, target=0.01) for each in records]
    (one,) = judge([summarize_case(records)])
    assert one.verdict is Verdict.UNCLEAR
    assert re.search(r"is wider than 2% on either side: -r \d+$", one.reason)


@pytest.mark.parametrize(
    ("off", "faster", "says"),
    [
        (0.3, 1.0, "it would take more than 200 replicates"),
        (0.001, 1.0201, "it is so near 2% that replicates hardly settle it"),
    ],
)
def test_what_hardly_any_number_settles_says_why(off: float, faster: float, says: str) -> None:
    """Noise, or a speedup at the limit; a speedup of 1.000x was said to be near 1.02x."""
    case = factories.case("a", (BASELINE, "inductor"))
    records = [
        factories.measured_record(
            case, replicate=each, seconds={BASELINE: 0.010 * faster, "inductor": seconds}
        )
        for each, seconds in enumerate(0.010 * math.exp(off * sign) for sign in (-1, 0, 1))
    ]
    (one,) = judge([summarize_case(records)])
    assert one.reason.endswith(says)


def test_arms_that_disturb_each_other_are_the_reason() -> None:
    """No number of replicates is said to help."""
    (known, *_) = judge([measured("a", 0.005, 0.010)])
    one = dataclasses.replace(known, adjusted_p=None, verdict=Verdict.UNCLEAR)
    assert one.reason.startswith("its arms disturb each other")
    assert "-t" in one.reason
    assert "-r" not in one.reason


def test_a_doubt_is_the_reason() -> None:
    """Whatever the interval is."""
    (one, *_) = judge([measured("a", 0.005, 0.010, disturbed_blocks=(0, 1, 2, 3))])
    assert one.reason.startswith("something else kept the machine busy")
