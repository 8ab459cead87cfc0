from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.results.comparison.entries import identity_of, of_arms, of_outcome
from dynamometer.results.comparison.noise import learnt
from dynamometer.results.comparison.quantities import COMPILE_TIME, EAGER_LATENCY, SPEEDUP
from dynamometer.results.statistics.summary import ending_of, summarize_case
from dynamometer.results.values.cases import BASELINE, IDENTITY, MatmulPrecision, Overrides
from dynamometer.results.values.records import ASSUMED_SD, ArmResult, BetweenProcessSd, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.comparison.entries import Entry


def test_what_is_compared_of_an_arm() -> None:
    """Speedup, compile time, memory and both latencies, with what was captured."""
    (entry,) = of_arms([factories.measured_record(replicate=each) for each in range(3)])
    assert entry.arm == "inductor"
    assert entry.passed
    assert entry.quantities["speedup"].value == pytest.approx(1.25)
    assert len(entry.quantities["speedup"].replicates) == 3
    assert entry.quantities["compile_time"].value == pytest.approx(12.5)
    assert entry.quantities["compile_time"].condition == "cold"
    assert entry.quantities["eager_latency"].value == pytest.approx(10.0, rel=0.01)
    assert entry.quantities["latency"].value == pytest.approx(8.0, rel=0.01)
    assert entry.expectation.captured_ops == 40
    assert entry.command == "./torchbench.py --only alexnet"


def test_an_arm_that_failed_has_no_figures() -> None:
    """Whatever was measured of it: who compares can't take that for a result."""
    record = factories.measured_record()
    wrong = factories.failure(Status.FAIL_ACCURACY)
    arms = (ArmResult(arm=BASELINE, outcome=factories.PASSED),
            ArmResult(arm="inductor", outcome=wrong))  # fmt: skip
    (entry,) = of_arms([msgspec.structs.replace(record, outcome=wrong, arms=arms)])
    assert not entry.passed
    assert entry.quantities == {}


def test_a_disturbed_case_is_doubted() -> None:
    """Nothing is concluded from what was measured of it."""
    record = factories.measured_record()
    disturbed = msgspec.structs.replace(record, disturbed_blocks=(0, 1, 2, 3))
    (entry,) = of_arms([disturbed])
    assert entry.doubt == "disturbed"


def test_caches_that_no_process_found_empty() -> None:
    """Compile times from filled caches are not those from empty ones."""
    warm = factories.cold_and_warm(warm_s=3.0)[1]
    (entry,) = of_arms([warm])
    assert entry.quantities["compile_time"].condition == "warm"
    assert entry.quantities["compile_time"].value == pytest.approx(3.0)


def test_an_arm_without_a_cold_compile_time_is_compared_by_none() -> None:
    """As in the summary: where another arm's is cold, a warm one doesn't stand in for it."""
    record = factories.measured_record(factories.case(arms=(BASELINE, "inductor", "ts")))
    measured = tuple(
        factories.measurement("compile_time_warm", "ts", (1.0,))
        if (each.metric, each.arm) == ("compile_time", "ts")
        else each
        for each in record.measurements
    )
    records = [msgspec.structs.replace(record, measurements=measured)]
    inductor, other = of_arms(records)
    assert inductor.quantities["compile_time"].condition == "cold"
    assert "compile_time" not in other.quantities
    summarized = summarize_case(records)
    assert [each.compile_s for each in summarized.arms] == [12.5, None]


def test_the_identity_of_a_case() -> None:
    """Everything but its arms, so that equal text means an equal case."""
    case = factories.case(nopython=True, overrides=Overrides(disable=("m:f",)))
    identity = identity_of(case)
    assert tuple(identity) == IDENTITY
    assert identity["settings"] == "nopython --disable-frame m:f"
    assert identity["model"] == "alexnet +overrides"
    precise = factories.case(matmul_precision=MatmulPrecision.HIGH, nopython=True)
    assert identity_of(precise)["settings"] == "matmul_high nopython"
    assert identity_of(factories.case(batch_size=None))["batch_size"] == "own"


def test_any_study_is_compared_by_how_cases_end() -> None:
    """The first failure of several replicates counts."""
    failed = factories.record(replicate=1, outcome=factories.failure(Status.OOM))
    records = [factories.record(), failed]
    (entry,) = of_outcome(records, ending_of(records))
    assert entry.outcome.status is Status.OOM
    assert entry.arm == "speedup"


def test_what_cases_tell_of_each_other() -> None:
    """Of many, speedups get one spread between processes; compile times their own."""
    entries = []
    for model in range(30):
        records = []
        for replicate, off in enumerate((-0.004, 0.0, 0.004)):
            record = factories.measured_record(
                factories.case(f"m{model}"), replicate=replicate,
                seconds={BASELINE: 0.010, "inductor": 0.008 * math.exp(off * (1 + model % 3))},
            )  # fmt: skip
            records.append(record)
        entries += of_arms(records)
    found = learnt(entries)
    (sd,) = {each.quantities["speedup"].between_sd for each in found}
    assert 0.004 < sd.sd_log < 0.012
    assert sd.df > 3
    (compiled,) = {each.quantities["compile_time"].between_sd for each in found}
    assert compiled.sd_log < COMPILE_TIME.assumed.sd_log / 3  # they are all alike
    assert compiled.df == 30


@pytest.mark.parametrize("off", [0.3, 0.06])
def test_compile_times_from_filled_caches_widen_what_is_assumed_of_those_from_empty_ones(
    off: float,
) -> None:
    """In later replicates; they are other work, and so worth no more than a guess."""
    found = learnt([entry for model in range(10) for entry in _compiled(f"m{model}", off)])
    (told,) = {each.quantities["compile_time"].between_sd for each in found}
    assert off < told.sd_log < 1.2 * off
    assert told.df == COMPILE_TIME.assumed.df


def test_compile_times_from_filled_caches_narrow_nothing() -> None:
    """The next run's first compilation may still take longer."""
    found = learnt([entry for model in range(10) for entry in _compiled(f"m{model}", 0.01)])
    (told,) = {each.quantities["compile_time"].between_sd for each in found}
    assert told == COMPILE_TIME.assumed


def test_one_case_that_compiled_anew_does_not_speak_for_all() -> None:
    """As where a file of the caches was gone."""
    offs = [2.0, *(0.01 for _ in range(9))]
    found = learnt([each for model, off in enumerate(offs) for each in _compiled(f"m{model}", off)])
    (told,) = {each.quantities["compile_time"].between_sd for each in found}
    assert told == COMPILE_TIME.assumed


def test_compile_times_of_filled_caches_alone_say_nothing_of_empty_ones() -> None:
    """An arm whose graphs another had compiled has only those; they are alike, and others not."""
    alike = [
        entry
        for model in range(10)
        for entry in of_arms([
            msgspec.structs.replace(factories.cold_and_warm(warm_s=1.0)[1], replicate=each,
                                    case=factories.case(f"w{model}"))
            for each in range(3)
        ])
    ]  # fmt: skip
    (entry,) = _compiled("m", 0.0)
    *others, cold = learnt([*alike, entry])
    assert cold.quantities["compile_time"].between_sd == COMPILE_TIME.assumed
    assert {each.quantities["compile_time"].condition for each in others} == {"warm"}
    assert others[0].quantities["compile_time"].between_sd.sd_log < COMPILE_TIME.assumed.sd_log / 2


def _compiled(model: str, off: float) -> list[Entry]:
    """Compiled once from empty caches, and three times from filled ones, which are `off`."""
    warm_s = [math.exp(each) for each in (-off, 0.0, off)]
    cold, *_ = factories.cold_and_warm(warm_s=1.0)
    warm = [factories.cold_and_warm(warm_s=each)[1] for each in warm_s]
    case = factories.case(model)
    records = [msgspec.structs.replace(each, case=case, replicate=replicate)
               for replicate, each in enumerate((cold, *warm))]  # fmt: skip
    return of_arms(records)


def _case(model: str, offs: Sequence[float], arms: int = 1) -> list[Entry]:
    """Backends as fast as each other, beside an eager that is off by so much in each replicate."""
    names = [f"arm{index}" for index in range(arms)]
    case = factories.case(model, arms=(BASELINE, *names))
    return of_arms([
        factories.measured_record(
            case, replicate=replicate,
            seconds={BASELINE: 0.010 * math.exp(off), **dict.fromkeys(names, 0.008)},
        )
        for replicate, off in enumerate(offs)
    ])  # fmt: skip


def test_a_case_teaches_itself_nothing_by_its_other_arms() -> None:
    """They share eager's processes: what these are off by was counted once for each arm."""
    found = learnt(_case("m", (-0.001, 0.0, 0.001), arms=4))
    assert {each.quantities["speedup"].between_sd for each in found} == {ASSUMED_SD}
    assert {each.quantities["eager_latency"].between_sd for each in found} == {
        EAGER_LATENCY.assumed
    }


@pytest.mark.parametrize("name", ["speedup", "eager_latency"])
def test_several_arms_of_others_teach_as_much_as_one(name: str) -> None:
    """Runs of many backends are no better known."""
    offs = (-0.004, 0.0, 0.004)
    alone, beside = (
        learnt([each for model in range(5) for each in _case(f"m{model}", offs, arms)])
        for arms in (1, 4)
    )
    assert beside[0].quantities[name].between_sd == alone[0].quantities[name].between_sd
    assert alone[0].quantities[name].between_sd.sd_log < ASSUMED_SD.sd_log or name != "speedup"


@pytest.mark.parametrize("others", [23, 40])
def test_no_case_teaches_itself(others: int) -> None:
    """However many there are: it would count twice, as its own replicates count besides."""
    calm = [each for model in range(others) for each in _case(f"m{model}", (-0.004, 0.0, 0.004))]
    *_, wild = learnt([*calm, *_case("w", (-0.5, 0.0, 0.5))])
    assert wild.quantities["eager_latency"].between_sd.sd_log < EAGER_LATENCY.assumed.sd_log


@pytest.mark.parametrize("name", ["speedup", "compile_time"])
def test_arms_speak_for_no_other(name: str) -> None:
    """Those that compiled anew, or scatter, leave what is judged of a calm one as it is."""
    offs, far = (-0.004, 0.0, 0.004), (-0.4, 0.0, 0.4)
    calm = [each for model in range(4) for each in (*_compiled(f"m{model}", 0.01),
                                                    *_case(f"c{model}", offs))]  # fmt: skip
    wild = [
        replace(each, arm=f"wild{number}")
        for model in range(4)
        for number, each in enumerate((*_compiled(f"m{model}", 2.0), *_case(f"c{model}", far)))
    ]
    beside = [each.quantities.get(name) for each in learnt([*calm, *wild])]
    assert beside[: len(calm)] == [each.quantities.get(name) for each in learnt(calm)]
    ours, theirs = ([each.between_sd.sd_log for each in found if each is not None]
                    for found in (beside[: len(calm)], beside[len(calm) :]))  # fmt: skip
    assert max(ours) < max(theirs)


def test_what_was_disturbed_teaches_nothing() -> None:
    """Nothing is concluded from it, and so neither of others by it."""
    calm = [each for model in range(6) for each in _case(f"m{model}", (-0.004, 0.0, 0.004))]
    wild = [replace(each, doubt="disturbed") for each in _case("w", (-0.2, 0.0, 0.2))]
    alone, beside = learnt(calm), learnt([*calm, *wild])
    for name in ("speedup", "eager_latency", "latency"):
        sds = [each.quantities[name].between_sd for each in beside]
        assert sds[: len(calm)] == [each.quantities[name].between_sd for each in alone]
    assert beside[-1].quantities["speedup"].between_sd != ASSUMED_SD  # it learns from others


def test_what_was_known_stays_where_there_is_no_other_case() -> None:
    """Its own replicates count besides."""
    known = BetweenProcessSd(sd_log=0.005, df=20.0)
    records = [
        msgspec.structs.replace(factories.measured_record(replicate=each), between_sd=known)
        for each in range(3)
    ]
    (entry,) = learnt(of_arms(records))
    assert entry.quantities["speedup"].between_sd == known
    assert entry.quantities["speedup"].kind is SPEEDUP


def test_cases_tell_how_far_processes_differ_beside_what_was_known() -> None:
    """A machine may have become less steady since."""
    known = BetweenProcessSd(sd_log=0.005, df=8.0)
    found = learnt([
        replace(each, quantities={"speedup": replace(each.quantities["speedup"], between_sd=known)})
        for model in range(8)
        for each in _case(f"m{model}", (-0.03, 0.0, 0.03))
    ])  # fmt: skip
    assert min(each.quantities["speedup"].between_sd.sd_log for each in found) > 0.01
