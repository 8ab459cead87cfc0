"""The worker's half: arms held to eager in either mode, and what is captured where."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.checking.steps import make_step
from dynamometer.common.interfaces.outcome import attempt
from dynamometer.common.measuring import arms
from dynamometer.common.measuring.timed_arms import arm_result
from dynamometer.common.studies.arms_beside_eager import findings_of, load
from dynamometer.dynamo import state
from dynamometer.dynamo.capture import coverage
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.parity import FullGraph, Parity
from dynamometer.results.values.records import PASSED, ArmResult, Outcome, Stage, Status, packed

if TYPE_CHECKING:
    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.coverage import Coverage


def judge(context: Context) -> Findings:
    """Run eager twice, which must agree, then each arm in either mode.

    Raises:
        NondeterministicError: eager disagrees with itself.
        Exception: whatever the model raises in eager.
    """
    loaded, reference = load(context, briefly=True)
    # Eager's two runs are what its arm would be held to.
    results = {BASELINE: ArmResult(arm=BASELINE, outcome=PASSED)}
    full: list[FullGraph] = []
    for name in context.job.arms:
        if name != BASELINE:
            results[name] = _arm(context, loaded, name, reference)
            full.append(_full_graph(context, loaded, results[name], reference))
    found = findings_of(context, loaded, results, context.job.arms)
    parity = Parity(
        full_graph=tuple(full),
        coverage=_coverage(context, loaded, results),
        entry=loaded.entry,
    )
    return msgspec.structs.replace(found, found=packed(parity))


def _arm(context: Context, loaded: LoadedModel, name: str, reference: Reference) -> ArmResult:
    """Compile an arm and hold all its calls to eager.

    A model of which nothing is captured works: here it isn't asked whether compiling it is worth
    anything.
    """
    action = partial(arms.checked_arm, context, loaded, name, reference)
    found = arm_result(name, attempt(context.stages, action))
    captured_none = found.capture is not None and found.capture.graphs == 0
    return msgspec.structs.replace(found, outcome=PASSED) if captured_none else found


def _full_graph(
    context: Context, loaded: LoadedModel, found: ArmResult, reference: Reference
) -> FullGraph:
    """Return how an arm ends that must be one graph: it is run so only where that is not known."""
    if context.job.case.nopython or found.outcome.status is not Status.PASS or _is_one(found):
        return FullGraph(arm=found.arm, outcome=found.outcome, is_inferred=True)
    state.forget_compiled()  # or what was compiled for the other mode counts towards the limit
    case = msgspec.structs.replace(context.job.case, nopython=True)
    strict = replace(context, job=msgspec.structs.replace(context.job, case=case))
    result = _arm(strict, loaded, found.arm, reference)
    return FullGraph(arm=found.arm, outcome=result.outcome)


def _is_one(found: ArmResult) -> bool:
    """Return whether one graph is all there was, in every call."""
    seen = found.capture
    return (
        seen is not None
        and seen.graphs == 1
        and seen.frames == seen.frames_ok == 1
        and not seen.breaks
        and not seen.recompiles
    )


def _coverage(
    context: Context, loaded: LoadedModel, results: dict[str, ArmResult]
) -> Coverage | None:
    """Count what is captured of a model that works and is not one graph."""
    several = [
        each
        for name, each in results.items()
        if name != BASELINE and each.outcome == PASSED and not _is_one(each)
    ]
    if not several or context.job.case.nopython:
        return None
    found = attempt(context.stages, partial(_counted, context, loaded))
    return None if isinstance(found, Outcome) else found


def _counted(context: Context, loaded: LoadedModel) -> Coverage:
    with context.stages.at(Stage.MEASURE):
        own = loaded.copy()
        capture = coverage.Capture.of(own.module, context.device.synchronize)
        step = make_step(capture.compiled, own, context.job.case.mode, context.job.seed)
        return coverage.measure(capture, step.call, timed=False)
