"""Every registered experiment, as the parent sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from protocols import deviations

from dynamometer.common import registry
from dynamometer.common.execution.preparation.experiments import FILL, TOOLCHAIN, experiment_of
from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.experiment import Experiment, WorkerSpec
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import PASSED, Absence, ArmResult, Status

if TYPE_CHECKING:
    from dynamometer.results.values.cases import RunPlan

ARMS = (BASELINE, "inductor", "ts")

DISTURBING = Findings(
    outcome=PASSED,
    arms=tuple(ArmResult(arm=arm, outcome=PASSED) for arm in ARMS),
    measurements=tuple(
        factories.measurement(metric, arm, (seconds,) * 4, (0, 1, 2, 3))
        for arm in ARMS
        for metric, seconds in (
            ("latency_alone", 0.010),
            ("latency", 0.010 if arm == "ts" else 0.013),
        )
    ),
)
"""Arms some of which take longer beside each other than alone."""


ALL = [
    *((study, name) for study in registry.targets("studies")
      for name in registry.study(study).modules),
    *((registry.DEFAULT_STUDY, name) for name in (TOOLCHAIN, FILL)),
]  # fmt: skip


@pytest.fixture(params=ALL, ids="-".join)
def experiment(request: pytest.FixtureRequest) -> Experiment:
    """The experiment of a name."""
    return experiment_of(*request.param)


@pytest.fixture
def plan() -> RunPlan:
    """A plan of one case with three arms."""
    return factories.plan(arms=ARMS)


def test_it_has_the_protocols_methods(experiment: Experiment) -> None:
    """Methods and their arguments are those of the interface."""
    assert deviations(Experiment, experiment) == []


@pytest.mark.parametrize("replicate", [0, 1, 2])
def test_processes_deal_with_arms_of_the_case(
    experiment: Experiment, plan: RunPlan, replicate: int
) -> None:
    """Each process has at least one arm, all the case's, and none has an isolated run twice."""
    processes = experiment.processes(plan.cases[0], plan, replicate, [DISTURBING])
    arms = [(arm, process.isolated_run) for process in processes for arm in process.arms]
    assert all(isinstance(process, WorkerSpec) and process.arms for process in processes)
    assert {arm for arm, _ in arms} <= set(ARMS)
    assert len(arms) == len(set(arms))


def test_the_first_replicate_is_never_sat_out(experiment: Experiment, plan: RunPlan) -> None:
    """An experiment that was asked for happens, if there is a reason for it."""
    assert experiment.processes(plan.cases[0], plan, 0, [DISTURBING])


def test_arms_have_isolated_runs_only_if_they_disturb_each_other(plan: RunPlan) -> None:
    """Each has two then, the second time in reverse."""
    experiment = experiment_of("speedup", "isolated")
    (case,) = plan.cases
    calm = msgspec.structs.replace(DISTURBING, measurements=DISTURBING.measurements[::2])
    assert experiment.processes(case, plan, 0, []) == ()
    assert experiment.processes(case, plan, 0, [calm]) == ()
    busy = msgspec.structs.replace(DISTURBING, disturbed_blocks=(0, 1, 2))
    assert experiment.processes(case, plan, 0, [busy]) == ()
    longer_alone = [
        factories.measurement(each.metric, each.arm, each.samples * 5, tuple(range(20)))
        if each.metric == "latency_alone"
        else each
        for each in DISTURBING.measurements
    ]
    busy = msgspec.structs.replace(busy, measurements=tuple(longer_alone))
    assert experiment.processes(case, plan, 0, [busy]) == ()
    runs = experiment.processes(case, plan, 0, [DISTURBING])
    order = [arm for process in runs for arm in process.arms]
    assert order[:3] == order[:2:-1]
    assert [process.isolated_run for process in runs] == [0, 0, 0, 1, 1, 1]
    arms = [each for each in DISTURBING.measurements if each.arm != BASELINE]
    lost = msgspec.structs.replace(DISTURBING, measurements=tuple(arms))
    assert experiment.processes(case, plan, 0, [lost]) == ()


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASS])
def test_salvage_accounts_for_what_failed(experiment: Experiment, status: Status) -> None:
    """After a process failed, the findings still are findings and keep the notes."""
    failed = Findings(
        outcome=factories.failure(status, reason="gone"), arms=(), notes=("weights substituted",)
    )
    salvaged = experiment.salvage(failed, ARMS)
    assert salvaged.notes == failed.notes
    if salvaged.outcome == PASSED:
        assert {each.arm for each in salvaged.absent} == set(ARMS)
        assert {each.reason for each in salvaged.absent} == {"gone"}
    else:
        assert salvaged.outcome == failed.outcome


def test_the_speedup_names_every_arm_after_a_failure() -> None:
    """The experiment that the record's arms come from leaves none out, nor replaces what it has."""
    experiment = experiment_of("speedup", "speedup")
    outcome = factories.failure()
    bare = experiment.salvage(Findings(outcome=outcome), ARMS)
    assert [(each.arm, each.outcome) for each in bare.arms] == [(arm, outcome) for arm in ARMS]
    known = Findings(outcome=outcome, arms=(ArmResult(arm="ts", outcome=outcome),))
    assert experiment.salvage(known, ARMS).arms == known.arms


def test_the_speedup_says_what_is_missing_after_a_failure() -> None:
    """Every metric that was asked for has a reason, but for the baseline's compile time."""
    experiment = experiment_of("speedup", "speedup")
    outcome = factories.failure()
    absent = experiment.salvage(Findings(outcome=outcome), ARMS).absent
    assert [(each.arm, each.metric) for each in absent] == [
        (BASELINE, "latency"),
        ("inductor", "latency"),
        ("inductor", "compile_time"),
        ("ts", "latency"),
        ("ts", "compile_time"),
    ]
    assert {each.reason for each in absent} == {outcome.reason}


def test_the_speedup_keeps_what_a_worker_said_of_what_is_missing() -> None:
    """It knows more than can be seen of its findings, where another arm failed."""
    bad = factories.failure()
    results = [
        ArmResult(arm=arm, outcome=bad if arm == "ts" else PASSED)
        for arm in (BASELINE, "inductor", "ts")
    ]
    said = Absence(metric="compile_time", arm="inductor", reason="it was compiling all the time")
    timed = [factories.measurement("latency", arm) for arm in (BASELINE, "inductor")]
    findings = Findings(outcome=bad, arms=tuple(results), measurements=tuple(timed), absent=(said,))
    absent = experiment_of("speedup", "speedup").salvage(findings, ARMS).absent
    assert [each.reason for each in absent if each.arm == "inductor"] == [said.reason]
    assert [each.metric for each in absent if each.arm == "ts"] == ["latency", "compile_time"]
