"""What is recorded of a worker that ended without a report."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from dynamometer.common.interfaces.outcome import worst
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import ArmResult, Outcome, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.execution.process import Worker
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.results.values.cases import Case

_KERNEL_KILL_SHARE = 0.5
"""A worker that SIGKILL ended while it held this share of what it may take was killed for want of
memory."""


@runtime_checkable
class KeepsFindings(Protocol):
    """An experiment whose workers keep what is to stand of them, whatever ends them."""

    def ended(self, kept: Findings, outcome: Outcome) -> Findings:
        """Say, in the parent, what stands of a process that ended without a report.

        Args:
            kept: what it kept last.
            outcome: how it ended.
        """
        ...


def name_exit(worker: Worker, timeout_s: float, memory_bytes: int) -> Outcome:
    """Return how a worker ended, and where it was.

    Args:
        worker: sent no report.
        timeout_s: the limit it was run under.
        memory_bytes: that it may take: its limit, or its share of the machine's if that is less.
    """
    stage = worker.progress.stage if worker.progress else Stage.WORKER
    arm = worker.progress.arm if worker.progress else None
    status, reason = _cause(worker, timeout_s, memory_bytes)
    if stage is Stage.WORKER and status is Status.CRASH:
        status = Status.INFRA  # nothing of the model has been run
    where = f"at stage {stage}" + (f" of {arm}" if arm else "")
    doing = f"{worker.progress.doing}: " if worker.progress and worker.progress.doing else ""
    return Outcome(status=status, stage=stage, reason=f"{doing}{reason} {where}")


def is_harness_fault(worker: Worker) -> bool:
    """Return whether a worker ended with its fork server, or before it ran anything of a model."""
    if worker.report is not None or worker.killed is not None:
        return False
    return worker.ending is None or worker.progress is None


def arms_at_exit(worker: Worker, case: Case, outcome: Outcome) -> tuple[ArmResult, ...]:
    """Return how the arm that was at work ended; of the others that they were not measured.

    All end as the process did if none in particular was at work, if it was eager, to which all are
    held, or if no arm is to blame.
    """
    at_work = worker.progress.arm if worker.progress else None
    if at_work in {None, BASELINE} or outcome.status is Status.INFRA:
        return tuple(ArmResult(arm=arm, outcome=outcome) for arm in case.arms)
    spared = Outcome(
        status=Status.SKIP,
        stage=Stage.WORKER,
        reason=f"not measured: {at_work} ended the process ({outcome.status})",
    )
    return tuple(
        ArmResult(arm=arm, outcome=outcome if arm == at_work else spared) for arm in case.arms
    )


def culprit(worker: Worker, outcome: Outcome) -> str | None:
    """Return the arm that ended its process, if another process may do without it."""
    if worker.report or worker.interim or not worker.progress or outcome.status is Status.INFRA:
        return None
    return None if worker.progress.arm == BASELINE else worker.progress.arm


def left_to_run(arms: Sequence[str], without: str, *, decides: bool) -> tuple[str, ...]:
    """Return which arms are run again, in another process, without one that was no good to theirs.

    Beside eager alone nothing can be measured. Where something is decided it runs by itself all the
    same: only a process that reports names the graph or model, and that all its candidates fail is
    a decision, too: for eager.

    Args:
        arms: of the process.
        without: one of them, which ended the process, or changed what eager computes.
        decides: whether something is decided (`Study.decides`).
    """
    rest = tuple(each for each in arms if each != without)
    fewest = 1 if decides else 2
    return rest if without in arms and BASELINE in rest and len(rest) >= fewest else ()


def with_culprit(others: Findings, arm: str, found: Findings, arms: Sequence[str]) -> Findings:
    """Add an arm that was no good to the others to what another process found of these.

    Args:
        others: found without it.
        arm: which ended the first process, or changed eager there.
        found: made of that process.
        arms: of both.
    """
    # Where the other process ended too, `others` has a result for all arms, also for this one.
    results = {each.arm: each for each in found.arms}
    results |= {each.arm: each for each in others.arms if each.arm != arm}
    absent = (
        *(each for each in others.absent if each.arm != arm),
        *(each for each in found.absent if each.arm == arm),
    )
    return msgspec.structs.replace(
        others,
        outcome=worst([others.outcome, found.outcome]),
        arms=tuple(results[each] for each in arms),
        absent=absent,
        notes=tuple(dict.fromkeys((*found.notes, *others.notes))),
    )


def _cause(worker: Worker, timeout_s: float, memory_bytes: int) -> tuple[Status, str]:
    over_a_limit = {
        "timeout": (Status.TIMEOUT, f"killed after {timeout_s:g} s"),
        "memory": (Status.OOM, "killed over its memory limit"),
        "processes": (Status.CRASH, "killed over its limit of processes"),
    }
    if worker.killed is not None:
        return over_a_limit[worker.killed]
    if worker.ending is None:
        why = "the run's logs/fork-server.log may say why"
        return Status.INFRA, f"the fork server died, and the worker with it; {why}"
    number = worker.ending.wait_status & 0x7F
    if not number:
        code = worker.ending.wait_status >> 8
        return Status.CRASH, f"the process exited with code {code} and no result"
    if number == signal.SIGKILL and worker.ending.peak_bytes > _KERNEL_KILL_SHARE * memory_bytes:
        return Status.OOM, "killed by the operating system, most likely for want of memory"
    known = {each.value: each.name for each in signal.Signals}
    return Status.CRASH, f"killed by {known.get(number, f'signal {number}')}"
