"""Whether arms disturb each other: one test over replicates, and what follows from it."""

from __future__ import annotations

import math
import random

import factories
import msgspec
import pytest

from dynamometer.results.statistics.between_processes import scatters
from dynamometer.results.statistics.interference import disturb_each_other, shifts
from dynamometer.results.statistics.summary import summarize_case, summarize_suite
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Absence, Measurement, Record

ALONE, BESIDE, ISOLATED = "latency_alone", "latency", "latency_isolated"


def bursts(metric: str, *seconds: float, arm: str = BASELINE) -> Measurement:
    """Make latencies of as many blocks, a sample each."""
    return factories.measurement(metric, arm, seconds, tuple(range(len(seconds))))


def two_arms(
    alone: tuple[float, ...], beside: tuple[float, ...], other: float = 1.0
) -> list[Measurement]:
    """Make latencies of the baseline, and of an arm that is steady but for a factor alone."""
    return [
        bursts(ALONE, *alone), bursts(BESIDE, *beside),
        bursts(ALONE, *[0.5 * other] * len(alone), arm="inductor"),
        bursts(BESIDE, *[0.5] * len(beside), arm="inductor"),
    ]  # fmt: skip


def disturbed(*replicates: list[Measurement], blocks: tuple[int, ...] = ()) -> bool:
    """Return whether arms disturb each other in these replicates."""
    return disturb_each_other([shifts(each, blocks) for each in replicates])


@pytest.mark.parametrize(
    ("alone", "beside", "wanted"),
    [
        ((1.0, 1.0), (1.0, 1.0, 1.0), False),
        ((1.0, 1.0), (1.019, 1.019, 1.019), False),
        ((1.0, 1.0), (1.1, 1.1, 1.1), True),
        ((1.1, 1.1), (1.0, 1.0, 1.0), True),
        ((1.0, 1.0), (0.9, 1.05, 1.2), False),
        ((1.0, 1.0), (1.9, 2.0, 2.1), True),
        ((1.0,), (1.5,), True),
    ],
    ids=["same", "within-2-%", "slower", "faster", "scatter", "beyond-it", "single"],
)
def test_a_shift_is_told_from_scatter(
    alone: tuple[float, ...], beside: tuple[float, ...], *, wanted: bool
) -> None:
    """More than 2 %, and more than moments differ, of one arm against another."""
    assert disturbed(two_arms(alone, beside)) is wanted
    assert not disturbed([bursts(ALONE, *alone), bursts(BESIDE, *beside)])


def test_small_shifts_are_seen_in_several_replicates() -> None:
    """One may have met another moment of the machine; as far in each it is the arms' doing."""
    shifted = two_arms((1.0,) * 10, (1.04,) * 30)
    assert not disturbed(shifted)
    assert disturbed(shifted, shifted, shifted)


def test_the_order_of_measurements_changes_nothing() -> None:
    """Which is drawn anew in each replicate: the same arms are meant."""
    shifted = two_arms((1.0,) * 10, (1.04,) * 30)
    turned = shifted[::-1]
    assert disturbed(shifted, turned, shifted)
    assert disturbed(turned, shifted, turned)
    steady = two_arms((1.0,) * 10, (1.0,) * 30)
    assert not disturbed(steady, steady[::-1], steady)


def test_replicates_that_know_nothing_contradict_nothing() -> None:
    """As where calls alone were disturbed: one that does know is as certain as by itself."""
    shifted = two_arms((1.0,) * 10, (1.3,) * 30)
    untold = [each for each in shifted if each.metric == BESIDE]
    assert disturbed(shifted)
    assert disturbed(shifted, untold, untold)
    assert not disturbed(untold, untold)


def test_arms_are_compared_in_the_blocks_they_share() -> None:
    """Those of a calibration have some of their own, at other moments of the machine."""
    slow = range(30, 60)
    one = [bursts(ALONE, *[1.0] * 10), bursts(BESIDE, *[1.0] * 30, *[1.5] * 30)]
    first = factories.measurement(BESIDE, "first", (0.5,) * 30, tuple(range(30)))
    last = factories.measurement(BESIDE, "last", (0.75,) * 30, tuple(slow))
    others = [bursts(ALONE, *[0.5] * 10, arm=arm) for arm in ("first", "last")]
    found = shifts([*one, first, last, *others])
    assert [pair for pair, _ in found] == [(BASELINE, "first"), (BASELINE, "last")]
    assert [round(each.value, 6) for _, each in found] == [0.0, 0.0]


def test_replicates_that_contradict_each_other_say_nothing() -> None:
    """What comes and goes is the machine."""
    found = [two_arms((1.0,) * 10, (beside,) * 30) for beside in (1.3, 1.0, 0.8)]
    assert disturbed(found[0])
    assert not disturbed(*found)


def test_what_slows_all_arms_alike_is_the_machine() -> None:
    """It changes no speedup."""
    assert not disturbed(two_arms((1.0, 1.0), (1.5, 1.5, 1.5), other=1 / 1.5))


def test_an_arm_that_was_not_timed_alone_is_passed_over() -> None:
    """There is nothing to compare it with."""
    found = [bursts(BESIDE, 1.0), bursts(BESIDE, 1.0, arm="ts"), bursts(ALONE, 9.0, arm="ts")]
    assert not disturbed(found)
    assert not disturbed([])


def test_disturbed_blocks_tell_nothing_of_interference() -> None:
    """What something else slowed down doesn't count."""
    found = two_arms((1.0, 1.0), (1.0, 9.0, 9.0, 1.0))
    assert not disturbed(found, blocks=(1, 2))
    assert disturbed(found, blocks=(0, 3))
    assert not disturbed(found, blocks=(0, 1, 2, 3))


def on_a_machine(
    slow: float, fast: float, rng: random.Random, shift: float = 0.0
) -> list[Measurement]:
    """Draw a replicate: each arm alone at a moment of its own, then both in blocks.

    Args:
        slow: by how much the machine's speed differs from moment to moment.
        fast: likewise from block to block.
        rng: what is random is drawn from.
        shift: what the baseline takes longer beside the other.
    """

    def seconds(moment: float, blocks: int, factor: float = 1.0) -> list[float]:
        return [factor * math.exp(moment + rng.gauss(0.0, fast)) for _ in range(blocks)]

    first, second, both = (rng.gauss(0.0, slow) for _ in range(3))
    return [
        bursts(ALONE, *seconds(first, 10)), bursts(ALONE, *seconds(second, 10), arm="inductor"),
        bursts(BESIDE, *seconds(both, 40, 1 + shift)),
        bursts(BESIDE, *seconds(both, 40), arm="inductor"),
    ]  # fmt: skip


@pytest.mark.parametrize("replicates", [3, 5])
@pytest.mark.parametrize(("slow", "fast"), [(0.0, 0.003), (0.01, 0.01), (0.05, 0.02), (0.2, 0.05)])
def test_how_often_arms_are_accused_wrongly(slow: float, fast: float, replicates: int) -> None:
    """Hardly ever, and in 5 % of cases where the machine varies by far more than is assumed."""
    rng = random.Random(0)
    accused = [
        disturbed(*(on_a_machine(slow, fast, rng) for _ in range(replicates))) for _ in range(200)
    ]
    assert sum(accused) <= (0.06 if slow > 0.01 else 0.01) * len(accused)


@pytest.mark.parametrize(
    ("slow", "shift", "least"), [(0.003, 0.04, 0.95), (0.01, 0.08, 0.9), (0.05, 0.4, 0.85)]
)
def test_how_often_arms_that_do_are_noticed(slow: float, shift: float, least: float) -> None:
    """The smaller what they do, the steadier a machine that takes."""
    rng = random.Random(0)
    noticed = [disturbed(*(on_a_machine(slow, slow, rng, shift) for _ in range(3)))
               for _ in range(100)]  # fmt: skip
    assert sum(noticed) >= least * len(noticed)


def apart_record(*apart: Measurement, lost: tuple[str, ...] = ()) -> Record:
    """Make a record whose arms took twice as long, or thrice, beside each other."""
    measurements = [
        bursts(ALONE, 1.0, 1.0), bursts(ALONE, 0.5, 0.5, arm="inductor"),
        bursts(BESIDE, 2.0, 2.0), bursts(BESIDE, 1.5, 1.5, arm="inductor"),
    ]  # fmt: skip
    absent = tuple(Absence(metric=ISOLATED, arm=arm, reason="gone") for arm in lost)
    return factories.record(measurements=(*measurements, *apart), absent=absent)


def turn(arm: str, block: int, *seconds: float) -> Measurement:
    """Make the latencies of one turn."""
    return factories.measurement(ISOLATED, arm, seconds, (block,) * len(seconds))


def test_turns_apart_take_the_place_of_blocks() -> None:
    """The speedup is that of arms in processes of their own, over all turns."""
    record = apart_record(
        turn(BASELINE, 0, 1.0, 1.0), turn("inductor", 0, 0.5, 0.5),
        turn("inductor", 1, 0.51, 0.51), turn(BASELINE, 1, 1.0, 1.0),
    )  # fmt: skip
    case = summarize_case([record])
    (arm,) = case.arms
    assert (case.is_isolated, case.interferes) == (True, False)
    assert arm.speedup is not None
    assert arm.speedup.value == pytest.approx((0.5 * 0.51) ** -0.5)
    assert case.baseline.latency_s == 1.0


def test_interference_that_was_not_helped_is_said() -> None:
    """Without turns, or where one was lost, the blocks are what there is."""
    one = turn(BASELINE, 0, 1.0), turn("inductor", 0, 0.5)
    for record in (apart_record(), apart_record(*one, lost=("inductor",))):
        case = summarize_case([record])
        assert (case.is_isolated, case.interferes) == (False, True)
        assert case.arms[0].speedup is not None
        assert case.arms[0].speedup.value == pytest.approx(2.0 / 1.5)


def test_no_mean_holds_a_case_whose_arms_disturbed_each_other() -> None:
    """Neither that of speedups nor those of compile times and of memory; it has passed."""
    usual = (each for each in factories.measured_record().measurements if each.metric != "latency")
    record = apart_record()
    record = msgspec.structs.replace(record, measurements=(*record.measurements, *usual))
    (arm,) = summarize_suite([summarize_case([record])])
    assert (arm.passed, arm.counted) == (1, 1)
    assert (arm.speedups, arm.compile_times_s, arm.compressions) == ((), (), ())


def test_turns_that_say_the_same_leave_it_to_the_blocks() -> None:
    """What seemed to be the arms' doing was the machine's; blocks compare arms better."""
    record = apart_record(
        turn(BASELINE, 0, 4.0), turn("inductor", 0, 3.0),
        turn("inductor", 1, 1.5), turn(BASELINE, 1, 2.0),
    )  # fmt: skip
    case = summarize_case([record])
    assert (case.is_isolated, case.interferes, case.is_conclusive) == (False, False, True)
    assert case.arms[0].speedup is not None
    assert case.arms[0].speedup.value == pytest.approx(2.0 / 1.5)
    disturbed = summarize_case([msgspec.structs.replace(record, disturbed_isolated_runs=True)])
    assert not disturbed.is_conclusive


def test_turns_that_vary_too_much_say_nothing() -> None:
    """What isn't shown isn't said."""
    record = apart_record(
        turn(BASELINE, 0, 6.0), turn("inductor", 0, 2.0),
        turn("inductor", 1, 1.4), turn(BASELINE, 1, 3.6),
    )  # fmt: skip
    case = summarize_case([record])
    assert (case.is_isolated, case.interferes, case.is_conclusive) == (False, False, True)


def test_arms_apart_start_from_a_wider_assumption() -> None:
    """They share neither layout nor moment."""
    record = apart_record(
        turn(BASELINE, 0, 1.0), turn("inductor", 0, 0.5),
        turn("inductor", 1, 0.5), turn(BASELINE, 1, 1.0),
    )  # fmt: skip
    (arm,) = summarize_case([record]).arms
    assert arm.speedup is not None
    assert arm.speedup.high / arm.speedup.low > 1.1
    assert summarize_case(
        [msgspec.structs.replace(record, disturbed_isolated_runs=True)]
    ).is_disturbed


def test_turns_that_were_lost_in_every_replicate_leave_it_open() -> None:
    """Blocks in which arms may have disturbed each other conclude nothing, however many."""
    lost = apart_record(turn(BASELINE, 0, 1.0), lost=("inductor",))
    records = [msgspec.structs.replace(lost, replicate=each) for each in range(3)]
    assert not summarize_case(records).is_conclusive


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
            bursts(BESIDE, 1.0, 1.0, 1.0, 9.0), bursts(BESIDE, 0.5, 0.5, 0.5, 0.5, arm="inductor"),
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
    """One that waited is enough, as they are of one case; and they teach nothing about others."""
    usual = [factories.measured_record(replicate=each) for each in range(3)]
    waited = [msgspec.structs.replace(record, waited=record.replicate == 1) for record in usual]
    widths = []
    for records in (usual, waited):
        speedup = summarize_case(records).arms[0].speedup
        assert speedup is not None
        widths.append(math.log(speedup.high / speedup.low))
    assert widths[1] > 2 * widths[0]
    cases = [
        msgspec.structs.replace(record, case=factories.case(name))
        for name in ("a", "b", "c", "d")
        for record in waited
    ]
    assert list(scatters(cases, "inductor"))
    assert not list(
        scatters([msgspec.structs.replace(each, waited=True) for each in cases], "inductor")
    )


def test_arms_that_were_looked_at_tell_though_one_was_not() -> None:
    """That another arm's calls alone were disturbed takes nothing from what two others say."""
    arms = (BASELINE, "onnxrt", "inductor")
    found = [
        bursts(ALONE, 1.0, 1.0), bursts(ALONE, 0.5, 0.5, arm="onnxrt"),
        bursts(BESIDE, 1.5, 1.5), bursts(BESIDE, 0.5, 0.5, arm="onnxrt"),
        bursts(BESIDE, 0.5, 0.5, arm="inductor"),
    ]  # fmt: skip
    record = factories.record(factories.case(arms=arms), measurements=tuple(found))
    assert summarize_case([record]).interferes
    calm = msgspec.structs.replace(record, measurements=(*found[:2], *found[3:]))
    assert not summarize_case([calm]).interferes
