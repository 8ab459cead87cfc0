from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import Literal

import factories
import pytest

from dynamometer.common.execution.abnormal_exits import arms_at_exit, left_to_run, name_exit
from dynamometer.common.execution.channel import Receiver
from dynamometer.common.execution.process import Limits, Worker
from dynamometer.common.interfaces.messages import Ended, Progress
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Outcome, Stage, Status

MACHINE_BYTES = 8 * 2**30
LOADS = Progress(stage=Stage.LOAD, arm=None)


def dead_worker(
    wait_status: int | None,
    progress: Progress | None = None,
    *,
    killed: Literal["timeout", "memory"] | None = None,
    peak_bytes: int = 2**20,
) -> Worker:
    """Make a worker that ended without a report."""
    return Worker(
        pid=1234,
        results=-1,
        receiver=Receiver("token"),
        started=time.monotonic(),
        progress=progress,
        killed=killed,
        ending=None
        if wait_status is None
        else Ended(pid=1234, wait_status=wait_status, peak_bytes=peak_bytes),
    )


def test_a_kill_near_the_workers_own_limit_is_for_want_of_memory() -> None:
    """Of several at the same time each may take but a part of the machine."""
    worker = dead_worker(signal.SIGKILL, LOADS, peak_bytes=3 * 2**30)
    assert name_exit(worker, 90.0, MACHINE_BYTES).status is Status.CRASH
    assert name_exit(worker, 90.0, 4 * 2**30).status is Status.OOM


def test_where_arms_are_decided_on_each_has_its_own_time() -> None:
    """Those before it have taken theirs, and it would be left out for good."""
    limits = Limits(timeout_s=600.0, memory_bytes=None)
    worker = dead_worker(None)
    worker.pid = 0
    worker.started -= 700
    worker._take(Progress(stage=Stage.COMPILE, arm="inductor"))
    worker.enforce(replace(limits, is_of_each_arm=True))
    assert worker.killed is None
    worker._take(Progress(stage=Stage.RUN, arm="inductor"))
    worker.arm_since -= 601
    worker._take(Progress(stage=Stage.COMPARE, arm="inductor"))
    worker.enforce(replace(limits, is_of_each_arm=True))
    assert worker.killed == "timeout"
    again = dead_worker(None)
    again.pid = 0
    again.started -= 700
    again._take(Progress(stage=Stage.COMPILE, arm="inductor"))
    again.enforce(limits)
    assert again.killed == "timeout"


def test_a_flooded_channel_is_left_for_the_limits() -> None:
    """Who writes without an end is still killed when its time is over."""
    worker = dead_worker(None)
    worker.results = os.open("/dev/zero", os.O_RDONLY)
    assert worker.read()
    worker.finish()


def name(worker: Worker) -> Outcome:
    """Name a death under a timeout of 90 s."""
    return name_exit(worker, 90.0, MACHINE_BYTES)


@pytest.mark.parametrize(
    ("worker", "status", "reason"),
    [
        (dead_worker(signal.SIGTERM, killed="timeout"), Status.TIMEOUT, "killed after 90 s"),
        (dead_worker(signal.SIGKILL, killed="memory"), Status.OOM, "over its memory limit"),
        (dead_worker(None), Status.INFRA, "the fork server died"),
        (dead_worker(3 << 8, LOADS), Status.CRASH, "exited with code 3 and no result"),
        (dead_worker(0, LOADS), Status.CRASH, "exited with code 0 and no result"),
        (dead_worker(signal.SIGSEGV, LOADS), Status.CRASH, "killed by SIGSEGV"),
        (dead_worker(signal.SIGABRT | 0x80, LOADS), Status.CRASH, "killed by SIGABRT"),
        (dead_worker(signal.SIGKILL, LOADS), Status.CRASH, "killed by SIGKILL"),
        (dead_worker(1 << 8), Status.INFRA, "exited with code 1 and no result at stage worker"),
        (
            dead_worker(signal.SIGKILL, peak_bytes=MACHINE_BYTES - 1),
            Status.OOM,
            "killed by the operating system, most likely for want of memory",
        ),
        (dead_worker(signal.SIGRTMIN + 6, LOADS), Status.CRASH, "killed by"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_deaths_have_names(worker: Worker, status: Status, reason: str) -> None:
    """Every way a worker can end without a report has its status and a reason."""
    found = name(worker)
    assert found.status is status
    assert found.reason is not None
    assert reason in found.reason


def test_a_death_is_placed() -> None:
    """The outcome says in which stage, and of which arm, the worker died."""
    nowhere = name(dead_worker(signal.SIGSEGV))
    assert nowhere.stage is Stage.WORKER
    assert nowhere.reason == "killed by SIGSEGV at stage worker"
    progress = Progress(stage=Stage.COMPILE, arm="inductor")
    placed = name(dead_worker(signal.SIGSEGV, progress=progress))
    assert placed.stage is Stage.COMPILE
    assert placed.reason == "killed by SIGSEGV at stage compile of inductor"
    progress = Progress(stage=Stage.LOAD, arm=None, doing="it can't be built")
    placed = name(dead_worker(signal.SIGSEGV, progress=progress))
    assert placed.reason == "it can't be built: killed by SIGSEGV at stage load"


def test_the_arm_at_work_is_blamed() -> None:
    """The others are skipped, with the name of the one that ended the process."""
    case = factories.case(arms=(BASELINE, "inductor", "ts"))
    worker = dead_worker(signal.SIGSEGV, progress=Progress(stage=Stage.COMPILE, arm="ts"))
    outcome = name(worker)
    results = {each.arm: each.outcome for each in arms_at_exit(worker, case, outcome)}
    assert list(results) == list(case.arms)
    assert results["ts"] == outcome
    for spared in (BASELINE, "inductor"):
        assert results[spared].status is Status.SKIP
        assert "ts ended the process (crash)" in (results[spared].reason or "")


def test_all_arms_are_blamed_where_none_was_at_work() -> None:
    """A death while loading or measuring is every arm's."""
    worker = dead_worker(signal.SIGSEGV, progress=Progress(stage=Stage.LOAD, arm=None))
    outcome = name(worker)
    results = arms_at_exit(worker, factories.case(), outcome)
    assert {each.outcome for each in results} == {outcome}


@pytest.mark.parametrize("arm", [BASELINE, "ts", None])
@pytest.mark.parametrize("stage", [Stage.COMPILE, Stage.RUN, Stage.MEASURE])
@pytest.mark.parametrize("killed", ["timeout", "memory", None])
def test_what_ends_eager_ends_all_that_is_held_to_it(
    killed: Literal["timeout", "memory"] | None, stage: Stage, arm: str | None
) -> None:
    """Which arm is built first is drawn, and the same model has one status."""
    case = factories.case(arms=(BASELINE, "inductor", "ts"))
    progress = Progress(stage=stage, arm=arm)
    worker = dead_worker(signal.SIGSEGV, killed=killed, progress=progress)
    outcome = name(worker)
    statuses = {each.arm: each.outcome.status for each in arms_at_exit(worker, case, outcome)}
    assert statuses["ts"] is outcome.status
    is_of_all = arm != "ts"
    assert (statuses["inductor"] is outcome.status) is is_of_all
    assert (statuses[BASELINE] is outcome.status) is is_of_all


@pytest.mark.parametrize("arm", [BASELINE, "ts", None])
def test_nobody_is_to_blame_for_a_fault_of_the_harness(arm: str | None) -> None:
    """Nobody is skipped either: that would count as a pass where PyTorch's files are read."""
    case = factories.case(arms=(BASELINE, "inductor", "ts"))
    worker = dead_worker(None, progress=Progress(stage=Stage.COMPILE, arm=arm))
    outcome = name(worker)
    assert outcome.status is Status.INFRA
    assert {each.outcome for each in arms_at_exit(worker, case, outcome)} == {outcome}


@pytest.mark.parametrize(
    ("arms", "ended_by", "measured", "decided"),
    [
        ((BASELINE, "a", "b"), "a", (BASELINE, "b"), (BASELINE, "b")),
        ((BASELINE, "a"), "a", (), (BASELINE,)),
        (("a",), "a", (), ()),
        (("a", "b"), "a", (), ()),
    ],
)
def test_what_is_left_is_run_where_that_tells_something(
    arms: tuple[str, ...],
    ended_by: str,
    measured: tuple[str, ...],
    decided: tuple[str, ...],
) -> None:
    """Never without eager; with eager alone where something is to be decided."""
    assert left_to_run(arms, ended_by, decides=False) == measured
    assert left_to_run(arms, ended_by, decides=True) == decided
