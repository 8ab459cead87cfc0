"""The worker's half: arms held to eager in either mode, and what is captured where.

Default mode comes first, of all arms. What it came to stands whatever ends the process then.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.checking.steps import make_step
from dynamometer.common.interfaces.messages import Findings, Progress
from dynamometer.common.interfaces.outcome import attempt
from dynamometer.common.interfaces.suite import TellingSuite
from dynamometer.common.measuring import arms
from dynamometer.common.measuring.blame import attempt_arm
from dynamometer.common.measuring.timed_arms import arm_result
from dynamometer.common.studies.arms_beside_eager import findings_of, load
from dynamometer.dynamo import state
from dynamometer.dynamo.capture import capture, coverage
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.parity import NOT_REACHED, UNDER_WAY, FullGraph, Parity
from dynamometer.results.values.records import PASSED, ArmResult, Outcome, Stage, Status, packed

if TYPE_CHECKING:
    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.coverage import Coverage
    from dynamometer.results.values.records import CaptureStats


_SELDOM = 10_000
"""New objects after which Python looks for garbage, rather than after some hundred: compiling makes
millions that are none, and here neither time nor memory is measured."""


def judge(context: Context) -> Findings:
    """Run eager, which must agree with itself, then each arm in either mode.

    Raises:
        NondeterministicError: eager disagrees with itself.
        Exception: whatever the model raises in eager.
    """
    usual, *older = gc.get_threshold()
    gc.set_threshold(max(_SELDOM, usual), *older)
    # A graph that its backend fails on would run in eager, which gives right results all the same.
    context = context.strict()
    ready = _ready(context)
    if isinstance(ready, Outcome):
        return Findings(outcome=ready)
    loaded, reference = ready
    # Eager's own calls are what its arm would be held to.
    judged = {
        name: _arm(context, loaded, name, reference)
        for name in context.job.arms
        if name != BASELINE
    }
    results = {BASELINE: ArmResult(arm=BASELINE, outcome=PASSED)}
    results |= {name: each.result for name, each in judged.items()}
    found = findings_of(context, loaded, results, context.job.arms)
    full = {name: _known_full_graph(context, each) for name, each in judged.items()}

    def with_(coverage: Coverage | None) -> Findings:
        parity = Parity(full_graph=tuple(full.values()), coverage=coverage, entry=loaded.entry)
        return msgspec.structs.replace(found, found=packed(parity))

    for name, known in full.items():
        if not known.is_inferred:
            full[name] = msgspec.structs.replace(known, outcome=UNDER_WAY)
            context.keep(with_(None))
            full[name] = _full_graph(context, loaded, name, reference)
    is_counted = not context.job.case.nopython and any(
        each.result.outcome == PASSED and not each.is_one for each in judged.values()
    )
    if not is_counted:
        return with_(None)
    context.keep(with_(None))
    return with_(_coverage(context, loaded))


def _ready(context: Context) -> tuple[LoadedModel, Reference] | Outcome:
    """Load the model and run it; what ends loading is told with how far that came."""
    if not isinstance(context.suite, TellingSuite):
        return load(context, briefly=True)
    told = [""]

    def tell(doing: str) -> None:
        told.append(doing)
        context.send(Progress(stage=Stage.LOAD, arm=None, doing=doing or None))

    telling = replace(context, suite=context.suite.telling(tell))
    found = attempt(context.stages, partial(load, telling, briefly=True))
    if isinstance(found, Outcome) and found.status is not Status.SKIP and told[-1]:
        return msgspec.structs.replace(found, reason=f"{told[-1]}: {found.reason}")
    return found


@dataclass(frozen=True)
class _Judged:
    """An arm in default mode.

    Attributes:
        result: how it ended.
        is_one: whether it works and one graph is all there was, in every call.
    """

    result: ArmResult
    is_one: bool


def _arm(context: Context, loaded: LoadedModel, name: str, reference: Reference) -> _Judged:
    """Compile an arm and hold all its calls to eager.

    A model of which nothing is captured works: here it isn't asked whether compiling it is worth
    anything.
    """
    frames = 0

    def build() -> arms.CompiledArm:
        nonlocal frames
        with context.guarding(name):
            compiled = arms.compile_arm(context, loaded, name, reference)
            frames = capture.frames_seen()
            return arms.check_again(context, compiled, reference)

    found = arm_result(name, attempt_arm(context, name, reference, build))
    if found.capture is not None and found.capture.ops == 0:
        found = msgspec.structs.replace(found, outcome=PASSED)
    is_one = found.outcome == PASSED and capture.frames_seen() == frames and _is_one(found.capture)
    return _Judged(found, is_one)


def _is_one(seen: CaptureStats | None) -> bool:
    """Return whether one graph is all that the first two calls came to."""
    return (
        seen is not None
        and seen.graphs == 1
        and seen.frames == seen.frames_ok == 1
        and not seen.breaks
        and not seen.recompiles
    )


def _known_full_graph(context: Context, judged: _Judged) -> FullGraph:
    """Return how an arm ends that must be one graph, or `NOT_REACHED` if it has to be tried."""
    found = judged.result
    is_known = context.job.case.nopython or found.outcome.status is not Status.PASS
    if is_known or judged.is_one:
        return FullGraph(arm=found.arm, outcome=found.outcome, is_inferred=True)
    return FullGraph(arm=found.arm, outcome=NOT_REACHED)


def _full_graph(
    context: Context, loaded: LoadedModel, name: str, reference: Reference
) -> FullGraph:
    """Run an arm as one graph."""
    state.forget_compiled()  # or what was compiled for the other mode counts towards the limit
    case = msgspec.structs.replace(context.job.case, nopython=True)
    strict = replace(context, job=msgspec.structs.replace(context.job, case=case))
    return FullGraph(arm=name, outcome=_arm(strict, loaded, name, reference).result.outcome)


def _coverage(context: Context, loaded: LoadedModel) -> Coverage | None:
    """Count what is captured of a model."""
    found = attempt(context.stages, partial(_counted, context, loaded))
    return None if isinstance(found, Outcome) else found


def _counted(context: Context, loaded: LoadedModel) -> Coverage:
    with context.stages.at(Stage.MEASURE):
        own = loaded.copy()
        counted = coverage.Capture.of(own.module, context.device.synchronize)
        step = make_step(counted.compiled, own, context.job.case.mode, context.job.seed)
        return coverage.measure(counted, step.call, timed=False)
