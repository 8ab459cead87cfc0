"""What stands of a worker that has ended: what it reported, or what is made of how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import msgspec

from dynamometer.common.execution.abnormal_exits import KeepsFindings, arms_at_exit, name_exit
from dynamometer.common.interfaces.messages import Findings
from dynamometer.results.store import logs
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import from_json
from dynamometer.results.values.records import NOTHING, Outcome, Stage, Status

if TYPE_CHECKING:
    from dynamometer.common.execution.process import Worker
    from dynamometer.common.studies.experiment import Experiment
    from dynamometer.results.values.cases import Case, Value
    from dynamometer.results.values.records import Manifest

_WITHOUT_DETAIL = frozenset({Status.PASS, Status.SKIP})


@runtime_checkable
class FindsValue(Protocol):
    """An experiment that finds something beside measurements (`Findings.found`).

    Attributes:
        finds: of what type, which only its study reads. A process that passes has found one.
    """

    finds: ClassVar[type[Value]]


def findings_from(
    worker: Worker, experiment: Experiment, case: Case, arms: tuple[str, ...], manifest: Manifest
) -> Findings:
    """Take a worker's findings, or make some of how it ended.

    Args:
        worker: has ended.
        experiment: that it was for.
        case: that it dealt with.
        arms: those of the case that it dealt with.
        manifest: of the run.
    """
    reported = worker.report.findings if worker.report else None
    found = _checked(reported or _of_end(worker, case, manifest, experiment), experiment)
    if found.outcome.status is not Status.PASS:
        found = experiment.salvage(found, arms)
    notes = (*found.notes, *worker.uncontained)
    if worker.receiver.foreign_bytes:
        count = worker.receiver.foreign_bytes
        notes = (*notes, f"the model wrote {count} bytes to the result channel")
    return msgspec.structs.replace(found, outcome=_with_detail(found.outcome, worker), notes=notes)


def _of_end(worker: Worker, case: Case, manifest: Manifest, experiment: Experiment) -> Findings:
    """Return what stands of a worker that sent no report."""
    plan = manifest.plan
    machine_bytes = manifest.environment.memory_bytes // plan.jobs  # as many workers share it
    memory_bytes = min(plan.memory_limit_bytes or machine_bytes, machine_bytes)
    outcome = name_exit(worker, plan.timeout_s, memory_bytes)
    kept = worker.interim
    if kept is None or outcome.status is Status.INFRA:
        return Findings(outcome=outcome, arms=arms_at_exit(worker, case, outcome))
    if isinstance(experiment, KeepsFindings):
        kept = experiment.ended(kept, outcome)
    notes = (*kept.notes, f"{outcome.reason}: what was known by then stands")
    return msgspec.structs.replace(kept, notes=notes)


def _checked(found: Findings, experiment: Experiment) -> Findings:
    """Put a failure in the place of findings that can't be read: foreign code may send anything."""
    if found.found == NOTHING and found.outcome.status is not Status.PASS:
        return found
    kind: Any = experiment.finds if isinstance(experiment, FindsValue) else Any
    try:
        from_json(bytes(found.found), kind, "what its process says it found")
    except StoreError as error:
        outcome = Outcome(status=Status.FAIL, stage=Stage.WORKER, reason=str(error))
        return Findings(outcome=outcome, notes=found.notes)
    return found


def _with_detail(outcome: Outcome, worker: Worker) -> Outcome:
    """Add the end of what the worker wrote, and nobody before it, where there is nothing better."""
    if outcome.status in _WITHOUT_DETAIL or outcome.detail is not None or worker.log is None:
        return outcome
    detail = logs.tail(worker.log, worker.log_begins) or None
    return msgspec.structs.replace(outcome, detail=detail)
