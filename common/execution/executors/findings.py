"""What stands of a worker that has ended: what it reported, or what is made of how it ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import msgspec

from dynamometer.common import registry
from dynamometer.common.execution.abnormal_exits import KeepsFindings, arms_at_exit, name_exit
from dynamometer.common.interfaces.messages import Findings
from dynamometer.results.store import logs
from dynamometer.results.store.bounds import MOST_FOREIGN_BYTES, shortened
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import from_json
from dynamometer.results.values.records import NOTHING, Outcome, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dynamometer.common.execution.process import Worker
    from dynamometer.common.studies.experiment import Experiment
    from dynamometer.results.values.cases import Case, RunPlan, Value
    from dynamometer.results.values.records import Manifest

_WITHOUT_DETAIL = frozenset({Status.PASS, Status.SKIP})

_NAME_CHARACTERS = 80

_SLACK_S = 10.0
"""By which the seconds of a worker may be more than passed here: it may start before that is known.
"""


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
    if problem := _problem(worker, arms, is_foreign=registry.suite(manifest.plan.suite).is_foreign):
        found = _failure(problem)
    else:
        found = _checked(reported or _of_end(worker, case, manifest, experiment), experiment)
    if found.outcome.status is not Status.PASS:
        found = experiment.salvage(found, arms)
    notes = (*found.notes, *worker.uncontained)
    if worker.receiver.foreign_bytes:
        count = worker.receiver.foreign_bytes
        notes = (*notes, f"the model wrote {count} bytes to the result channel")
    return msgspec.structs.replace(found, outcome=_with_detail(found.outcome, worker), notes=notes)


def seconds_by_stage(worker: Worker, plan: RunPlan) -> Mapping[Stage, float]:
    """Return what a worker that has ended says it spent; nothing where that can't be so."""
    is_foreign = registry.suite(plan.suite).is_foreign
    if worker.report is None or (is_foreign and _problem_of_seconds(worker)):
        return {}
    return worker.report.seconds


def _problem(worker: Worker, arms: tuple[str, ...], *, is_foreign: bool) -> str | None:
    """Say what no worker of ours reports: what a model gets hold of it may send anything through.

    Args:
        worker: has ended.
        arms: those that it dealt with.
        is_foreign: whether it ran code that nobody has read.
    """
    found = worker.report.findings if worker.report else worker.interim
    if found is None:
        return None
    results = [each.arm for each in found.arms]
    if len(set(results)) < len(results):
        return "its process reports an arm more than once"
    if not is_foreign:  # studies may name more arms, such as what is compiled for one size alone
        return None
    if unknown := set(_arms_named(found)).difference(arms):
        name = shortened(min(unknown), _NAME_CHARACTERS)
        return f"its process reports arms that it did not have, such as {name!r}"
    size = len(msgspec.json.encode(found))
    if size > MOST_FOREIGN_BYTES:
        return f"its process reports {size} bytes, more than {MOST_FOREIGN_BYTES}"
    return _problem_of_seconds(worker)


def _arms_named(found: Findings) -> Iterator[str]:
    """Give every arm that findings say something of."""
    for some in (found.arms, found.measurements, found.absent):
        yield from (each.arm for each in some)
    yield from found.build_order
    yield from (each.isolated[0] for each in found.loads if each.isolated)


def _problem_of_seconds(worker: Worker) -> str | None:
    spent = worker.report.seconds.values() if worker.report else ()
    passed_s = time.monotonic() - worker.started
    if any(each < 0 for each in spent) or not sum(spent) <= passed_s + _SLACK_S:
        return "its process reports seconds that can't have passed"
    return None


def _failure(reason: str) -> Findings:
    return Findings(outcome=Outcome(status=Status.FAIL, stage=Stage.WORKER, reason=reason))


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
        return msgspec.structs.replace(_failure(str(error)), notes=found.notes)
    return found


def _with_detail(outcome: Outcome, worker: Worker) -> Outcome:
    """Add the end of what the worker wrote, and nobody before it, where there is nothing better."""
    if outcome.status in _WITHOUT_DETAIL or outcome.detail is not None or worker.log is None:
        return outcome
    detail = logs.tail(worker.log, worker.log_begins) or None
    return msgspec.structs.replace(outcome, detail=detail)
