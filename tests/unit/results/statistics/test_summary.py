from __future__ import annotations

import math
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.results.statistics.memory import FEWEST_BYTES, Compression
from dynamometer.results.statistics.summary import (
    ArmSummary,
    summarize_case,
    summarize_cases,
    summarize_suite,
)
from dynamometer.results.statistics.verdicts import judge
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import PASSED, ArmResult, CaptureStats, Stage, Status

if TYPE_CHECKING:
    from dynamometer.results.values.records import Outcome, Record


def test_a_measured_case() -> None:
    """What a case with three replicates comes to, number by number."""
    records = [factories.measured_record(replicate=each) for each in range(3)]
    case = summarize_case(records)
    (arm,) = case.arms
    assert case.baseline.name == BASELINE
    assert case.baseline.speedup is None
    assert case.outcome == arm.outcome == PASSED
    assert arm.speedup is not None
    assert arm.speedup.value == pytest.approx(0.010 / 0.008)
    assert arm.speedup.n == 3
    assert arm.latency_s == pytest.approx(0.008 * 1.0005)
    assert arm.compile_s == pytest.approx(12.5)
    assert arm.memory.needed_bytes == pytest.approx(400 * factories.MIB)
    assert arm.memory.residue_bytes == pytest.approx(30 * factories.MIB)
    assert arm.capture is not None
    assert arm.capture.graphs == 3
    assert arm.steady is True


def test_latency_is_the_median_over_replicates() -> None:
    """One slow process doesn't move the latency."""
    records = [
        factories.measured_record(replicate=each, seconds={BASELINE: seconds, "inductor": 1.0})
        for each, seconds in enumerate((1.0, 50.0, 1.0))
    ]
    assert summarize_case(records).baseline.latency_s == pytest.approx(1.0, rel=0.01)


def test_cold_compile_times_hide_warm_ones() -> None:
    """Replicates that find warm caches say nothing of a cold compile, unless all of them do."""
    first, second = (factories.measured_record(replicate=each) for each in range(2))
    warm = factories.measurement("compile_time_warm", "inductor", (0.1,))
    second = msgspec.structs.replace(second, measurements=(warm,))
    (arm,) = summarize_case([first, second]).arms
    assert (arm.compile_s, arm.compile_times_s, arm.compiled_cold) == (12.5, (12.5,), True)
    (arm,) = summarize_case([second]).arms
    assert (arm.compile_s, arm.compile_times_s, arm.compiled_cold) == (0.1, (0.1,), False)
    (arm,) = summarize_case([factories.record()]).arms
    assert (arm.compile_s, arm.compile_times_s, arm.compiled_cold) == (None, (), None)


def test_an_arm_without_a_cold_compile_time_has_none() -> None:
    """Where another arm's is cold, a warm one doesn't stand in for it."""
    records = [
        factories.record(
            factories.case(arms=(BASELINE, "inductor", "ts")),
            replicate=replicate,
            measurements=tuple(factories.measurement(metric, arm, (1.0,)) for metric, arm in found),
        )
        for replicate, found in enumerate(
            (
                [("compile_time", "inductor"), ("compile_backend_time", "inductor")],
                [("compile_time_warm", "inductor"), ("compile_time_warm", "ts"),
                 ("compile_backend_time", "ts")],
            )
        )
    ]  # fmt: skip
    inductor, other = summarize_case(records).arms
    assert (inductor.compile_s, inductor.compiled_cold) == (1.0, True)
    assert (other.compile_s, other.compiled_cold, other.phases_s) == (None, None, {})
    assert other.warm_compile_s == 1.0


def test_compiling_pays_sooner_from_filled_caches() -> None:
    """Each call saves 2 ms of 10; without a warm compile time nothing is said of it."""
    first, second = factories.cold_and_warm(warm_s=0.5)
    case = summarize_case([first, second])
    (arm,) = case.arms
    cold, filled = case.breakeven(arm), case.warm_breakeven(arm)
    assert cold is not None
    assert filled is not None
    assert cold.calls == pytest.approx(12.5 / 0.002, rel=0.01)
    assert filled.calls == pytest.approx(0.5 / 0.002, rel=0.01)
    assert filled.low is not None
    assert filled.high is not None
    assert filled.low < filled.calls < filled.high
    alone = summarize_case([first])
    assert alone.warm_breakeven(alone.arms[0]) is None


def test_compile_times_of_several_replicates_are_kept() -> None:
    """Where each compiled from empty caches, the median is reported, and all can be seen."""
    records = []
    for replicate, seconds in enumerate((9.0, 30.0, 10.0)):
        cold = factories.measurement("compile_time", "inductor", (seconds,))
        records.append(factories.record(replicate=replicate, measurements=(cold,)))
    (arm,) = summarize_case(records).arms
    assert (arm.compile_s, arm.compile_times_s) == (10.0, (9.0, 30.0, 10.0))


def test_the_first_failure_is_the_outcome() -> None:
    """A pass in one replicate doesn't hide a failure in another."""
    failed = factories.failure(Status.CRASH)
    records = [factories.record(), factories.record(replicate=1, outcome=failed)]
    case = summarize_case(records)
    assert case.outcome == failed
    assert case.arms[0].outcome == failed


def test_an_arm_is_steady_only_if_every_replicate_was() -> None:
    """One unsettled replicate is shown."""

    def settled(*, steady: bool | None) -> ArmResult:
        return ArmResult(arm="inductor", outcome=PASSED, steady=steady)

    def steady(values: list[bool | None]) -> bool | None:
        records = [factories.record(arms=(settled(steady=value),)) for value in values]
        return summarize_case(records).arms[0].steady

    assert steady([True, True, None]) is True
    assert steady([True, False]) is False
    assert steady([None]) is None


def test_capture_is_of_the_first_replicate_that_has_one() -> None:
    """A replicate that died early doesn't lose what another captured."""
    capture = CaptureStats(frames=1, frames_ok=1, graphs=1, ops=5)
    results = [
        ArmResult(arm="inductor", outcome=PASSED),
        ArmResult(arm="inductor", outcome=PASSED, capture=capture),
    ]
    records = [factories.record(arms=(result,)) for result in results]
    assert summarize_case(records).arms[0].capture == capture


@pytest.mark.parametrize(
    "missing", ["latency", "compile_time", "calls_memory", "residue_memory", "loaded_memory"]
)
def test_what_is_missing_is_none(missing: str) -> None:
    """A metric that wasn't measured is absent, never 0, and takes only itself along."""
    record = factories.measured_record()
    kept = tuple(each for each in record.measurements if each.metric != missing)
    case = summarize_case([msgspec.structs.replace(record, measurements=kept)])
    (arm,) = case.arms
    memory_missing = missing.endswith("memory")
    assert (arm.latency_s is None) == (missing == "latency")
    assert (arm.speedup is None) == (missing == "latency")
    assert (arm.compile_s is None) == (missing == "compile_time")
    assert (arm.memory.needed_bytes is None) == memory_missing
    assert (case.compression(arm).ratio is None) == memory_missing
    assert (case.compression(arm).reason is None) == (not memory_missing)


def test_a_record_without_arms_is_no_pass_of_them() -> None:
    """An arm that a failed replicate doesn't mention is never counted as passed."""
    record = factories.record(outcome=factories.failure(Status.INFRA), arms=())
    for arm in summarize_suite([summarize_case([record])]):
        assert arm.passed == 0


WRONG = factories.failure(Status.FAIL_ACCURACY, factories.Stage.COMPARE, "output: error 0.5")


def with_outcomes(record: Record, **outcomes: Outcome) -> Record:
    """Return a record everything of which was measured, but some of whose arms did not pass."""
    arms = tuple(
        msgspec.structs.replace(each, outcome=outcomes.get(each.arm, each.outcome))
        for each in record.arms
    )
    return msgspec.structs.replace(record, arms=arms, outcome=next(iter(outcomes.values())))


@pytest.mark.parametrize("failed", [0, 1, 2])
def test_an_arm_that_failed_once_has_no_performance(failed: int) -> None:
    """Whatever was measured of it, in that replicate or others; what was captured stays."""
    records = [factories.measured_record(replicate=each) for each in range(3)]
    records[failed] = with_outcomes(records[failed], inductor=WRONG)
    case = summarize_case(records)
    (arm,) = case.arms
    assert arm.outcome == WRONG
    assert arm.capture is not None
    assert arm == ArmSummary(name="inductor", outcome=WRONG, capture=arm.capture)
    assert case.breakeven(arm) is case.warm_breakeven(arm) is None
    assert case.compression(arm).ratio is None
    assert judge([case]) == []
    assert case.baseline.latency_s is not None


def test_what_fell_back_to_eager_has_no_error() -> None:
    """It equals eager exactly, which would be the best value there is."""
    failed = factories.failure(Status.FAIL, factories.Stage.COMPILE, "it raised")
    result = ArmResult(
        arm="inductor", outcome=failed, max_error=0.0, checked_calls=6, unchecked=("output: none",)
    )
    (arm,) = summarize_case([factories.record(arms=(result,), outcome=failed)]).arms
    assert (arm.max_error, arm.checked_calls, arm.unchecked) == (None, 0, ())


def test_what_guards_cost_is_a_time_like_others() -> None:
    """An arm that failed keeps its counts of guards, and not the seconds these take."""
    capture = CaptureStats(frames=1, frames_ok=1, graphs=1, ops=5, guards=7, guards_s=0.5)
    found = []
    for outcome in (PASSED, WRONG):
        result = ArmResult(arm="inductor", outcome=outcome, capture=capture)
        (arm,) = summarize_case([factories.record(arms=(result,), outcome=outcome)]).arms
        assert arm.capture is not None
        found.append((arm.capture.guards, arm.capture.guards_s))
    assert found == [(7, 0.5), (7, None)]


def test_an_arm_passes_only_beside_a_baseline_that_did() -> None:
    """Where eager itself fails in a replicate there is nothing the arm was compared with."""
    died = factories.failure(Status.OOM, factories.Stage.RUN, "no memory")
    first, second = (factories.measured_record(replicate=each) for each in range(2))
    case = summarize_case([first, with_outcomes(second, baseline=died)])
    assert case.outcome == case.baseline.outcome == case.arms[0].outcome == died
    assert case.arms[0].speedup is None
    (suite,) = summarize_suite([case])
    assert (suite.passed, suite.speedups, suite.compile_times_s) == (0, (), ())


SPARED = factories.failure(Status.SKIP, Stage.WORKER, "not measured: it ended the process")


@pytest.mark.parametrize(
    ("ended_by", "status", "counted"),
    [
        (BASELINE, Status.CRASH, 1),
        (BASELINE, Status.INFRA, 0),
        ("ts", Status.INFRA, 0),
        ("ts", Status.CRASH, 0),
    ],
)
def test_who_was_skipped_as_eager_ended_its_process_ended_as_eager_did(
    ended_by: str, status: Status, counted: int
) -> None:
    """So do all whose process ended by a fault of the harness; others were spared."""
    died = factories.failure(status, Stage.RUN, "it ended the process")
    case = factories.case(arms=(BASELINE, "inductor", "ts"))
    arms = tuple(
        ArmResult(arm=arm, outcome=died if arm == ended_by else SPARED) for arm in case.arms
    )
    found = summarize_case([factories.record(case, arms=arms, outcome=died)])
    is_spared = (ended_by, status) == ("ts", Status.CRASH)
    assert found.arms[0].outcome == (SPARED if is_spared else died)
    assert found.arms[1].outcome == died
    suite = summarize_suite([found])[0]
    assert (suite.passed, suite.counted) == (0, counted)


def test_a_fault_of_the_harness_is_in_no_pass_rate() -> None:
    """Nor is what was skipped; all else counts, whatever it was."""
    records = [
        factories.record(factories.case(status), outcome=factories.failure(status))
        for status in Status
    ]
    (suite,) = summarize_suite([summarize_case([each]) for each in records])
    assert (suite.passed, suite.counted) == (1, len(Status) - 2)


def test_an_arms_own_failure_is_told_before_the_baselines() -> None:
    """As it says more of the arm."""
    died = factories.failure(Status.OOM, factories.Stage.RUN, "no memory")
    record = with_outcomes(factories.measured_record(), baseline=died, inductor=WRONG)
    assert summarize_case([record]).arms[0].outcome == WRONG


def test_a_case_that_was_disturbed_never_pays() -> None:
    """Its speedup stands there, marked; nothing is concluded from it."""
    record = msgspec.structs.replace(factories.measured_record(), disturbed_blocks=(0, 1, 2))
    case = summarize_case([record])
    (arm,) = case.arms
    assert case.doubt == "disturbed"
    assert arm.speedup is not None
    assert case.breakeven(arm) is None
    assert summarize_case([factories.measured_record()]).doubt is None


def test_no_mean_holds_a_case_that_was_disturbed() -> None:
    """Neither that of speedups nor those of compile times and of memory; it has passed."""
    usual, other = (factories.measured_record(factories.case(name)) for name in "ab")
    disturbed = msgspec.structs.replace(other, disturbed_blocks=(0, 1, 2))
    (arm,) = summarize_suite(summarize_cases([usual, disturbed]))
    assert (arm.passed, arm.counted) == (2, 2)
    assert len(arm.speedups) == len(arm.compile_times_s) == len(arm.compressions) == 1


def test_an_arm_without_a_word_of_its_own_did_not_pass_a_case_that_failed() -> None:
    """Where a record tells of other arms alone, its outcome is all that is known of this one."""
    first, second = (factories.measured_record(replicate=each) for each in range(2))
    others = tuple(each for each in second.arms if each.arm == BASELINE)
    second = msgspec.structs.replace(second, arms=others, outcome=WRONG)
    (arm,) = summarize_case([first, second]).arms
    assert (arm.outcome, arm.speedup) == (WRONG, None)


def test_an_arm_that_was_left_out_is_not_blamed_for_another() -> None:
    """As tuning leaves out later what is slower; the end of the log is added to a crash."""
    case = factories.case(arms=(BASELINE, "inductor", "ts"))
    first = factories.measured_record(case)
    crash = factories.failure(Status.CRASH, factories.Stage.RUN, "killed by SIGSEGV")
    second = with_outcomes(factories.measured_record(case, replicate=1), inductor=crash)
    second = msgspec.structs.replace(
        second,
        arms=tuple(each for each in second.arms if each.arm != "ts"),
        measurements=tuple(each for each in second.measurements if each.arm != "ts"),
        outcome=msgspec.structs.replace(crash, detail="Fatal Python error"),
    )
    inductor, other = summarize_case([first, second]).arms
    assert inductor.outcome == crash
    assert other.outcome == PASSED
    assert other.speedup is not None
    assert other.speedup.n == 1


def test_an_arm_without_any_result_did_not_pass_where_others_failed() -> None:
    """It was never run."""
    case = factories.case(arms=(BASELINE, "inductor", "ts"))
    record = with_outcomes(factories.measured_record(case), inductor=WRONG)
    arms = tuple(each for each in record.arms if each.arm != "ts")
    _, other = summarize_case([msgspec.structs.replace(record, arms=arms)]).arms
    assert other.outcome == WRONG


def test_compression_ratio() -> None:
    """Above 1 the arm needs less than the baseline; what compilers leave is no part of it."""
    case = summarize_case(
        [factories.measured_record(peaks_mib={"inductor": 500.0}, residues_mib={"inductor": 39.0})]
    )
    assert case.compression(case.arms[0]) == Compression(pytest.approx(400 / 800))


def test_what_an_arm_keeps_is_memory_that_it_needs() -> None:
    """A pool that is taken once and kept takes as much as what eager takes in each call."""
    records = [
        factories.measured_record(
            peaks_mib={BASELINE: 300.0, "inductor": 0.0}, residues_mib={"inductor": 340.0}
        )
    ]
    case = summarize_case(records)
    assert case.arms[0].memory.needed_bytes == pytest.approx(600 * factories.MIB)
    assert case.compression(case.arms[0]) == Compression(pytest.approx(1.0))


def test_memory_is_the_median_over_replicates() -> None:
    """Each replicate's is kept, to show by how much they differ; of calls the largest counts."""
    records = [
        factories.measured_record(
            replicate=each, peaks_mib={"inductor": peak}, residues_mib={"inductor": residue}
        )
        for each, (peak, residue) in enumerate(((100.0, 36.0), (104.0, 30.0), (101.0, 33.0)))
    ]
    memory = summarize_case(records).arms[0].memory
    assert memory.calls == tuple(each * factories.MIB for each in (100, 104, 101))
    assert memory.residue == tuple(each * factories.MIB for each in (36, 30, 33))
    assert memory.calls_bytes == 101 * factories.MIB
    assert memory.residue_bytes == 33 * factories.MIB
    assert memory.needed_bytes == 401 * factories.MIB


@pytest.mark.parametrize("arm", [BASELINE, "inductor"])
@pytest.mark.parametrize(
    ("residue_mib", "needed_mib"), [(20.0, None), (22.0, 21), (45.0, 26), (62.0, None)]
)
def test_no_ratio_where_most_is_what_was_left_behind(
    arm: str, residue_mib: float, needed_mib: int | None
) -> None:
    """On either side: the model and its calls take 21 MiB, what is kept beyond 40 is needed too."""
    residues_mib = {BASELINE: 0.0, "inductor": 0.0, arm: residue_mib}
    record = factories.of_small_model(factories.measured_record(residues_mib=residues_mib))
    case = summarize_case([record])
    found = case.compression(case.arms[0])
    assert (found.ratio is not None) is (needed_mib is None)
    if needed_mib is not None:
        name = "eager" if arm == BASELINE else "the arm"
        assert (
            found.reason == f"{name} leaves {residue_mib:.0f} MiB behind and needs {needed_mib} MiB"
        )


def test_no_ratio_is_formed_of_next_to_nothing() -> None:
    """Less than a mebibyte is noise of the allocator."""
    record = factories.measured_record()
    small = tuple(
        msgspec.structs.replace(each, samples=(FEWEST_BYTES / 4,))
        if each.metric.endswith("memory")
        else each
        for each in record.measurements
    )
    case = summarize_case([msgspec.structs.replace(record, measurements=small)])
    assert case.compression(case.arms[0]).reason == "eager needs less than 1 MiB"


def test_records_of_before_have_no_memory() -> None:
    """What they call peak holds what compiling left behind, so that it is not compared."""
    record = factories.record(
        measurements=tuple(
            factories.measurement(metric, arm, (5e8,), unit="B")
            for metric in ("loaded_memory", "peak_memory")
            for arm in factories.ARMS
        )
    )
    case = summarize_case([record])
    assert case.arms[0].memory.needed_bytes is None
    assert case.compression(case.arms[0]) == Compression(
        None, "memory of eager is not known: it was not measured"
    )


def test_records_of_several_cases_are_no_case() -> None:
    """One line stands for one case."""
    records = [factories.record(factories.case(name)) for name in ("a", "b")]
    with pytest.raises(ValueError, match="got 2"):
        summarize_case(records)
    with pytest.raises(ValueError, match="got 0"):
        summarize_case([])


def test_records_are_grouped_in_order_of_appearance() -> None:
    """Interleaved replicates of several cases come out as the cases they are of."""
    cases = [factories.case(name) for name in ("b", "a")]
    records = [factories.record(case, replicate=n) for n in range(2) for case in cases]
    summaries = summarize_cases(records)
    assert [(each.case.model, len(each.records)) for each in summaries] == [("b", 2), ("a", 2)]


def test_a_suite_counts_what_it_stands_on() -> None:
    """Passed of counted, skipped apart; means over the passed alone, of all of them."""
    speeds = {"fast": 0.005, "slow": 0.020}
    records = [
        factories.measured_record(
            factories.case(name), seconds={BASELINE: 0.010, "inductor": seconds}
        )
        for name, seconds in speeds.items()
    ]
    wrong = factories.failure(Status.FAIL_ACCURACY)
    failed = factories.measured_record(
        factories.case("wrong"), seconds={BASELINE: 0.010, "inductor": 0.0001}
    )
    results = (
        ArmResult(arm=BASELINE, outcome=PASSED),
        ArmResult(arm="inductor", outcome=wrong),
    )
    records.append(msgspec.structs.replace(failed, outcome=wrong, arms=results))
    skip = factories.failure(Status.SKIP, reason="no kernel")
    records.append(factories.record(factories.case("skipped"), outcome=skip))
    (arm,) = summarize_suite(summarize_cases(records))
    assert (arm.passed, arm.counted) == (2, 3)
    assert [each.value for each in arm.speedups] == pytest.approx([2.0, 0.5])
    assert arm.geomean is not None
    assert arm.geomean.value == pytest.approx(1.0)
    assert arm.geomean.n == 2
    assert arm.mean == pytest.approx(1.25)
    assert len(arm.compile_times_s) == len(arm.compression_ratios) == 2


def test_a_suite_in_which_nothing_passed_has_no_mean() -> None:
    """A mean over no case is absent."""
    record = factories.record(outcome=factories.failure())
    (arm,) = summarize_suite([summarize_case([record])])
    assert arm.geomean is None
    assert arm.mean is None


def test_every_arm_gets_its_own_summary() -> None:
    """Backends that were measured side by side are told apart."""
    case = factories.case(arms=(BASELINE, "inductor", "ts"))
    record = factories.measured_record(
        case, seconds={BASELINE: 0.010, "inductor": 0.005, "ts": 0.020}
    )
    arms = summarize_suite([summarize_case([record])])
    assert {arm.name: math.log2(arm.speedups[0].value) for arm in arms} == {
        "inductor": pytest.approx(1.0),
        "ts": pytest.approx(-1.0),
    }
