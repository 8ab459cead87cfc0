from __future__ import annotations

import math

import factories
import msgspec
import pytest

from dynamometer.results.cases import BASELINE
from dynamometer.results.interference import agree, seems_to_interfere
from dynamometer.results.records import Absence, Measurement, Record
from dynamometer.results.spreads import scatters
from dynamometer.results.summary import summarize_case

ALONE, BESIDE, APART = "latency_alone", "latency", "latency_apart"


def visits(metric: str, *seconds: float, arm: str = BASELINE) -> Measurement:
    """Make latencies of as many blocks, a sample each."""
    return factories.measurement(metric, arm, seconds, tuple(range(len(seconds))))


@pytest.mark.parametrize(
    ("alone", "beside", "seems"),
    [
        ((1.0, 1.0), (1.0, 1.0, 1.0), False),
        ((1.0, 1.0), (1.01, 1.01, 1.01), False),
        ((1.0, 1.0), (1.05, 1.05, 1.05), True),
        ((1.05, 1.05), (1.0, 1.0, 1.0), True),
        ((1.0, 1.0), (0.9, 1.05, 1.2), False),
        ((0.9, 1.2), (1.05, 1.05, 1.05), False),
        ((1.0, 1.0), (1.9, 2.0, 2.3), True),
        ((1.0,), (1.5,), True),
    ],
    ids=["same", "within-2-%", "slower", "faster", "scatter", "alone-too", "beyond-it", "single"],
)
def test_a_shift_is_told_from_scatter(
    alone: tuple[float, ...], beside: tuple[float, ...], *, seems: bool
) -> None:
    """More than 2 %, and more than the scatter makes likely, of one arm against another."""
    found = [visits(ALONE, *alone), visits(BESIDE, *beside)]
    steady = [
        visits(metric, *[0.5] * len(seconds), arm="inductor")
        for metric, seconds in ((ALONE, alone), (BESIDE, beside))
    ]
    assert seems_to_interfere([*found, *steady]) is seems
    assert not seems_to_interfere(found)


def test_what_slows_all_arms_alike_is_the_machine() -> None:
    """It changes no speedup."""
    found = [visits(ALONE, 1.0, 1.0), visits(BESIDE, 1.5, 1.5, 1.5)]
    other = [visits(ALONE, 0.2, 0.2, arm="ts"), visits(BESIDE, 0.3, 0.3, 0.3, arm="ts")]
    assert not seems_to_interfere([*found, *other])


@pytest.mark.parametrize(("alone", "seems"), [(1.0, False), (1.25, False), (1.4, True)])
def test_a_machine_whose_speed_varies_is_told_from_the_arms(alone: float, *, seems: bool) -> None:
    """What one arm met alone and the other didn't is something that blocks met as well."""
    speeds = [1.0, 1.0, 1.25, 1.25] * 8
    halves = [speed / 2 for speed in speeds]
    found = [
        visits(ALONE, alone, alone), visits(BESIDE, *speeds),
        visits(ALONE, 0.5, 0.5, arm="ts"), visits(BESIDE, *halves, arm="ts"),
    ]  # fmt: skip
    assert seems_to_interfere(found) is seems


def test_a_single_block_that_is_far_off_is_no_moment() -> None:
    """Where an arm was alone for several blocks, a moment is as many."""
    found = [
        visits(ALONE, *[1.5] * 4), visits(BESIDE, 1.5, *[1.0] * 39),
        visits(ALONE, *[1.0] * 4, arm="ts"), visits(BESIDE, *[1.0] * 40, arm="ts"),
    ]  # fmt: skip
    assert seems_to_interfere(found)


def test_an_arm_that_was_not_timed_alone_is_passed_over() -> None:
    """There is nothing to compare it with."""
    found = [visits(BESIDE, 1.0), visits(BESIDE, 1.0, arm="ts"), visits(ALONE, 9.0, arm="ts")]
    assert not seems_to_interfere(found)


def apart_record(*apart: Measurement, lost: tuple[str, ...] = ()) -> Record:
    """Make a record whose arms took twice as long, or thrice, beside each other."""
    measurements = [
        visits(ALONE, 1.0, 1.0), visits(ALONE, 0.5, 0.5, arm="inductor"),
        visits(BESIDE, 2.0, 2.0), visits(BESIDE, 1.5, 1.5, arm="inductor"),
    ]  # fmt: skip
    absent = tuple(Absence(metric=APART, arm=arm, reason="gone") for arm in lost)
    return factories.record(measurements=(*measurements, *apart), absent=absent)


def turn(arm: str, block: int, *seconds: float) -> Measurement:
    """Make the latencies of one turn."""
    return factories.measurement(APART, arm, seconds, (block,) * len(seconds))


def test_turns_apart_take_the_place_of_blocks() -> None:
    """The speedup is that of arms in processes of their own, over all turns."""
    record = apart_record(
        turn(BASELINE, 0, 1.0, 1.0), turn("inductor", 0, 0.2, 0.2),
        turn("inductor", 1, 0.25, 0.25), turn(BASELINE, 1, 1.0, 1.0),
    )  # fmt: skip
    case = summarize_case([record])
    (arm,) = case.arms
    assert (case.is_apart, case.interferes) == (True, False)
    assert arm.speedup is not None
    assert arm.speedup.value == pytest.approx(20**0.5)
    assert case.baseline.latency_s == 1.0


def test_interference_that_was_not_helped_is_said() -> None:
    """Without turns, or where one was lost, the blocks are what there is."""
    one = turn(BASELINE, 0, 1.0), turn("inductor", 0, 0.5)
    for record in (apart_record(), apart_record(*one, lost=("inductor",))):
        case = summarize_case([record])
        assert (case.is_apart, case.interferes) == (False, True)
        assert case.arms[0].speedup is not None
        assert case.arms[0].speedup.value == pytest.approx(2.0 / 1.5)


def test_turns_that_say_the_same_leave_it_to_the_blocks() -> None:
    """What seemed to be the arms' doing was the machine's; blocks compare arms better."""
    record = apart_record(
        turn(BASELINE, 0, 4.0), turn("inductor", 0, 3.0),
        turn("inductor", 1, 1.5), turn(BASELINE, 1, 2.0),
    )  # fmt: skip
    case = summarize_case([record])
    assert (case.is_apart, case.interferes, case.is_conclusive) == (False, False, True)
    assert case.arms[0].speedup is not None
    assert case.arms[0].speedup.value == pytest.approx(2.0 / 1.5)
    disturbed = summarize_case([msgspec.structs.replace(record, disturbed_turns=True)])
    assert not disturbed.is_conclusive


def test_turns_that_vary_too_much_leave_it_open() -> None:
    """Neither blocks nor turns are to be trusted then."""
    record = apart_record(
        turn(BASELINE, 0, 6.0), turn("inductor", 0, 2.0),
        turn("inductor", 1, 1.4), turn(BASELINE, 1, 3.6),
    )  # fmt: skip
    case = summarize_case([record])
    assert (case.is_apart, case.interferes, case.is_conclusive) == (False, True, False)


def test_a_few_blocks_that_are_far_off_hide_nothing() -> None:
    """Such as the first alone, while another runtime's threads still spin."""
    found = [
        visits(ALONE, 1.5, 1.5, *[1.0] * 8), visits(BESIDE, *[1.5] * 10),
        visits(ALONE, *[1.0] * 10, arm="ts"), visits(BESIDE, *[1.0] * 10, arm="ts"),
    ]  # fmt: skip
    assert seems_to_interfere(found)


def test_disturbed_blocks_tell_nothing_of_interference() -> None:
    """What something else slowed down doesn't count."""
    found = [
        visits(ALONE, 1.0, 1.0), visits(BESIDE, 1.0, 9.0, 9.0, 1.0),
        visits(ALONE, 1.0, 1.0, arm="ts"), visits(BESIDE, 1.0, 1.0, 1.0, 1.0, arm="ts"),
    ]  # fmt: skip
    assert not seems_to_interfere(found, (1, 2))
    assert seems_to_interfere(found, (0, 3))
    assert not seems_to_interfere(found, (0, 1, 2, 3))


def test_arms_apart_start_from_a_wider_assumption() -> None:
    """They share neither layout nor moment."""
    record = apart_record(
        turn(BASELINE, 0, 1.0), turn("inductor", 0, 0.5),
        turn("inductor", 1, 0.5), turn(BASELINE, 1, 1.0),
    )  # fmt: skip
    (arm,) = summarize_case([record]).arms
    assert arm.speedup is not None
    assert arm.speedup.high / arm.speedup.low > 1.1
    assert summarize_case([msgspec.structs.replace(record, disturbed_turns=True)]).is_disturbed


@pytest.mark.parametrize(
    ("ratios", "interferes"),
    [
        ((1.3, 1.3, 1.3), True),
        ((1.3, 1.3, 1.0), True),
        ((1.3, 1.0, 1.0), False),
        ((1.3, 1.0), False),
        ((1.01, 1.01, 1.01), False),
        ((1.3,), True),
    ],
    ids=["all", "most", "few", "half", "within-2-%", "one"],
)
def test_most_replicates_have_to_say_so(ratios: tuple[float, ...], *, interferes: bool) -> None:
    """A single one may have met a machine whose speed varied."""
    records = [
        factories.record(
            replicate=replicate,
            measurements=(
                visits(ALONE, ratio, ratio), visits(ALONE, 0.5, 0.5, arm="inductor"),
                visits(BESIDE, 1.0, 1.0), visits(BESIDE, 0.5, 0.5, arm="inductor"),
            ),
        )
        for replicate, ratio in enumerate(ratios)
    ]  # fmt: skip
    assert summarize_case(records).interferes is interferes


def test_turns_that_were_lost_in_every_replicate_leave_it_open() -> None:
    """Blocks in which arms may have disturbed each other conclude nothing, however many."""
    lost = apart_record(turn(BASELINE, 0, 1.0), lost=("inductor",))
    records = [msgspec.structs.replace(lost, replicate=each) for each in range(3)]
    assert not summarize_case(records).is_conclusive


def test_the_first_blocks_follow_no_other_arm() -> None:
    """An arm that is disturbed from the third block on is."""
    found = [
        visits(ALONE, *[1.0] * 6), visits(BESIDE, 1.0, 1.0, *[1.5] * 6),
        visits(ALONE, *[1.0] * 6, arm="ts"), visits(BESIDE, *[1.0] * 8, arm="ts"),
    ]  # fmt: skip
    assert seems_to_interfere(found)


def test_a_replicate_nobody_looked_at_is_taken_for_the_others() -> None:
    """In blocks where arms may have disturbed each other, as they did in another replicate."""
    turns = turn(BASELINE, 0, 1.0), turn("inductor", 0, 0.5)
    apart = apart_record(*turns)
    kept = tuple(each for each in apart.measurements if each.metric == BESIDE)
    unseen = msgspec.structs.replace(apart, replicate=1, measurements=kept)
    assert not summarize_case([apart]).interferes
    assert not summarize_case([unseen]).interferes
    assert summarize_case([apart, unseen]).interferes


def test_disturbed_blocks_are_left_out() -> None:
    """As long as others are left; a replicate with too many is marked."""
    record = factories.record(
        measurements=(
            visits(BESIDE, 1.0, 1.0, 1.0, 9.0), visits(BESIDE, 0.5, 0.5, 0.5, 0.5, arm="inductor"),
        ),
        disturbed_blocks=(3,),
    )  # fmt: skip
    case = summarize_case([record])
    assert case.arms[0].speedup is not None
    assert case.arms[0].speedup.value == pytest.approx(2.0)
    assert not case.is_disturbed
    worse = msgspec.structs.replace(record, disturbed_blocks=(0, 1, 3))
    assert summarize_case([worse]).is_disturbed
    worst = msgspec.structs.replace(record, disturbed_blocks=(0, 1, 2, 3))
    assert summarize_case([worst]).baseline.latency_s == summarize_case([worse]).baseline.latency_s


def test_arms_that_rested_start_from_a_wider_assumption() -> None:
    """One that rested is enough, as they are of one case; and they teach nothing about others."""
    usual = [factories.measured_record(replicate=each) for each in range(3)]
    rested = [msgspec.structs.replace(record, rested=record.replicate == 1) for record in usual]
    widths = []
    for records in (usual, rested):
        speedup = summarize_case(records).arms[0].speedup
        assert speedup is not None
        widths.append(math.log(speedup.high / speedup.low))
    assert widths[1] > 2 * widths[0]
    cases = [
        msgspec.structs.replace(record, case=factories.case(name))
        for name in ("a", "b", "c", "d")
        for record in rested
    ]
    assert not list(scatters([each for each in cases if each.rested]))


def test_arms_that_were_looked_at_tell_though_one_was_not() -> None:
    """That another arm's calls alone were disturbed takes nothing from what two others say."""
    arms = (BASELINE, "onnxrt", "inductor")
    found = [
        visits(ALONE, 1.0, 1.0), visits(ALONE, 0.5, 0.5, arm="onnxrt"),
        visits(BESIDE, 1.5, 1.5), visits(BESIDE, 0.5, 0.5, arm="onnxrt"),
        visits(BESIDE, 0.5, 0.5, arm="inductor"),
    ]  # fmt: skip
    record = factories.record(factories.case(arms=arms), measurements=tuple(found))
    assert summarize_case([record]).interferes
    calm = msgspec.structs.replace(record, measurements=(*found[:2], *found[3:]))
    assert not summarize_case([calm]).interferes


@pytest.mark.parametrize(("ratio", "alike"), [(1.0, True), (1.01, True), (1.1, False)])
def test_two_measurements_agree_within_their_scatter(ratio: float, *, alike: bool) -> None:
    """Of the ratio of the arms: what slows both alike is no difference."""
    seconds = [1.0, 1.001, 0.999, 1.0, 1.001, 0.999]
    one = [visits(BESIDE, *seconds), visits(BESIDE, *seconds, arm="ts")]
    other = [
        visits(BESIDE, *[1.3 * each for each in seconds]),
        visits(BESIDE, *[1.3 * ratio * each for each in seconds], arm="ts"),
    ]
    assert agree(one, other) is alike
    wild = [visits(BESIDE, 0.5, 2.0, 1.0, 0.6, 1.7, 1.0), other[1]]
    assert agree(one, wild)
