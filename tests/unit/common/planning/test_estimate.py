from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common.planning import estimate as module
from dynamometer.common.planning.estimate import TimeEstimate
from dynamometer.common.studies.calibration.arms import ARMS
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE, Mode, Scale

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.values.cases import RunPlan
    from dynamometer.results.values.records import Record

SPECS = (factories.model_spec("a"), factories.model_spec("b"))
START_S = 10.0


def estimate(plan: RunPlan, runs: Path) -> TimeEstimate:
    """Estimate a whole plan."""
    return module.estimate(plan, plan.cases, runs)


def earlier_run(runs: Path, name: str, *records: Record) -> None:
    """Leave a run behind."""
    cases = tuple({record.case.id: record.case for record in records}.values())
    planned = factories.plan(*SPECS, **({"cases": cases} if cases else {}))
    store.create(runs / name, factories.manifest(planned))
    with store.RunStore(runs / name) as events:
        for record in records:
            events.append(record)


def one_replicate(**fields: object) -> RunPlan:
    """Plan one replicate of two models."""
    return factories.plan(*SPECS, replicates=1, **fields)


def took(plan: RunPlan, index: int, seconds: float, replicate: int = 0) -> Record:
    """Make a record of a case of a plan that took so long."""
    stages = {"load": seconds / 4, "measure": seconds * 3 / 4}
    return factories.record(plan.cases[index], replicate=replicate, seconds=stages)


def test_without_earlier_runs_everything_is_guessed(tmp_path: Path) -> None:
    """A guess is positive, and says that it is one; a missing folder is no fault."""
    found = estimate(one_replicate(), tmp_path / "runs")
    assert found.known_cases == 0
    assert found.seconds > START_S


def test_guesses_grow_with_the_work(tmp_path: Path) -> None:
    """More arms, a larger scale or more replicates take longer; each replicate less than one."""
    base = estimate(one_replicate(), tmp_path).seconds
    arms = (BASELINE, "inductor", "ts")
    more_arms = factories.plan(*SPECS, arms=arms, replicates=1)
    tiny = one_replicate(cases=tuple(factories.case(spec.name, scale=Scale.TINY) for spec in SPECS))
    three = estimate(factories.plan(*SPECS, replicates=3), tmp_path).seconds
    training = one_replicate(
        cases=tuple(factories.case(spec.name, mode=Mode.TRAINING) for spec in SPECS)
    )
    assert estimate(more_arms, tmp_path).seconds > base
    assert estimate(training, tmp_path).seconds > base
    assert estimate(tiny, tmp_path).seconds < base
    assert base < three < 3 * base


def test_an_arm_is_guessed_by_the_compiler_in_its_name(tmp_path: Path) -> None:
    """One of a user's own, or of a calibration, compiles as long as what it is made of."""
    seconds = {
        arm: estimate(factories.plan(*SPECS, arms=(BASELINE, arm), replicates=1), tmp_path).seconds
        for arm in ("inductor", "my_package:inductor_again", "my_package:other")
    }
    assert seconds["inductor"] == seconds["my_package:inductor_again"]
    assert seconds["inductor"] > seconds["my_package:other"]


def test_a_calibration_is_guessed_at_what_one_took(tmp_path: Path) -> None:
    """Eight small models in twelve replicates: 66 minutes on two cores."""
    specs = tuple(factories.model_spec(name) for name in "abcdefgh")
    cases = tuple(factories.case(spec.name, ARMS, scale=Scale.SMALL) for spec in specs)
    experiments = ("in_pairs", "naive")
    plan = factories.plan(*specs, cases=cases, replicates=12, experiments=experiments)
    assert 60 < estimate(plan, tmp_path).seconds / 60 < 72


def test_earlier_runs_replace_guesses(tmp_path: Path) -> None:
    """What a case took before is what it is expected to take."""
    plan = one_replicate()
    earlier_run(tmp_path, "1", took(plan, 0, 100.0), took(plan, 1, 20.0))
    assert estimate(plan, tmp_path) == TimeEstimate(START_S + 120.0, 2)


def test_the_newest_run_counts(tmp_path: Path) -> None:
    """Of several runs the last says how long a case takes."""
    plan = one_replicate()
    for name, seconds in (("20260102", 7.0), ("20260101", 1000.0)):
        earlier_run(tmp_path, name, took(plan, 0, seconds), took(plan, 1, seconds))
    assert estimate(plan, tmp_path).seconds == pytest.approx(START_S + 14.0)


def test_later_replicates_are_no_history(tmp_path: Path) -> None:
    """Later replicates find warm caches, so they don't say how long a first one takes."""
    plan = one_replicate()
    earlier_run(tmp_path, "1", took(plan, 0, 1.0, replicate=1))
    assert estimate(plan, tmp_path).known_cases == 0


def test_other_cases_are_no_history(tmp_path: Path) -> None:
    """A case at another scale is another case."""
    plan = one_replicate()
    other = factories.record(factories.case("a", scale=Scale.TINY))
    earlier_run(tmp_path, "1", other)
    assert estimate(plan, tmp_path).known_cases == 0


def test_others_like_it_say_more_than_a_guess(tmp_path: Path) -> None:
    """What other models took with these arms; of another scale or mode they say nothing."""
    plan = one_replicate()
    earlier_run(tmp_path, "1", took(plan, 0, 100.0))
    assert estimate(plan, tmp_path) == TimeEstimate(START_S + 200.0, 1)
    failed = factories.failure(factories.Status.FAIL)
    at_once = msgspec.structs.replace(took(plan, 0, 1.0), outcome=failed)
    earlier_run(tmp_path, "2", at_once)
    guessed = estimate(plan, tmp_path / "none").seconds
    assert START_S + 1.0 < estimate(plan, tmp_path).seconds < guessed
    elsewhere = tuple(factories.case(spec.name, mode=Mode.TRAINING) for spec in SPECS)
    other = one_replicate(cases=elsewhere)
    assert estimate(other, tmp_path) == estimate(other, tmp_path / "none")


def test_damaged_runs_are_passed_over(tmp_path: Path) -> None:
    """An estimate is not worth an error."""
    plan = one_replicate()
    earlier_run(tmp_path, "1", took(plan, 0, 5.0))
    earlier_run(tmp_path, "2")
    (tmp_path / "2" / store.EVENTS).write_text("nonsense\n")
    (tmp_path / "3").mkdir()
    (tmp_path / "notes.txt").write_text("")
    assert estimate(plan, tmp_path).known_cases == 1


def test_skipped_models_take_no_time(tmp_path: Path) -> None:
    """A model that isn't run isn't waited for."""
    plan = factories.plan(factories.model_spec("a", skipped="broken"), replicates=1)
    assert estimate(plan, tmp_path) == TimeEstimate(0.0, 0)


def test_only_what_is_left_takes_time(tmp_path: Path) -> None:
    """What a run has already done is not waited for again."""
    plan = one_replicate()
    earlier_run(tmp_path, "1", took(plan, 0, 100.0), took(plan, 1, 20.0))
    assert module.estimate(plan, plan.cases[1:], tmp_path) == TimeEstimate(START_S + 20.0, 1)
    assert module.estimate(plan, (), tmp_path).seconds == 0.0


def test_a_skip_is_no_history(tmp_path: Path) -> None:
    """That a model was skipped doesn't say how long it takes when it is run."""
    plan = one_replicate()
    skip = factories.failure(factories.Status.SKIP)
    earlier_run(tmp_path, "1", factories.record(plan.cases[0], outcome=skip, seconds={}))
    assert estimate(plan, tmp_path) == estimate(plan, tmp_path / "none")


def test_other_studies_are_no_history(tmp_path: Path) -> None:
    """A case takes a tenth of the time where nothing is timed."""
    plan = one_replicate()
    record = msgspec.structs.replace(took(plan, 0, 1.0), experiments=("accuracy",))
    earlier_run(tmp_path, "1", record)
    assert estimate(plan, tmp_path).known_cases == 0


def test_one_case_that_is_left_runs_alone(tmp_path: Path) -> None:
    """However many a plan has at a time."""
    plan = one_replicate()
    earlier_run(tmp_path, "1", took(plan, 0, 100.0), took(plan, 1, 20.0))
    several = msgspec.structs.replace(plan, jobs=4)
    assert module.estimate(several, plan.cases[1:], tmp_path).seconds == START_S + 20.0
    assert module.estimate(several, plan.cases, tmp_path).seconds == START_S + 60.0
