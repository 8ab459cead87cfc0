"""Building an arm of a case inside a worker: its own weights, compiled, checked and warmed up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.checking.checking import (
    Checks,
    check,
    check_after_timing,
)
from dynamometer.common.checking.form import keeping_what_is_set
from dynamometer.common.checking.further import Further, check_further_calls
from dynamometer.common.checking.looking import Call, Settings, make_call, replaced_by
from dynamometer.common.checking.reference import reference_of
from dynamometer.common.checking.snapshots import Snapshot, state_of
from dynamometer.common.checking.steps import Step, make_step
from dynamometer.common.interfaces.outcome import (
    NondeterministicError,
    SkippedError,
    is_out_of_memory,
)
from dynamometer.common.measuring.arm_backends import available_backend, compiler_of_functions
from dynamometer.common.measuring.blame import TORCH_KERNELS
from dynamometer.common.measuring.threads import busy_threads
from dynamometer.common.measuring.timing import Stopwatch
from dynamometer.common.measuring.warm_up import WarmUp, warm_up_to_steady
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy import accuracy
from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.dynamo.capture import capture, internals
from dynamometer.dynamo.capture.phases import Phases
from dynamometer.dynamo.ensemble.ensemble import Ensemble
from dynamometer.dynamo.interface import Fallback
from dynamometer.results.values.cases import BASELINE, Mode
from dynamometer.results.values.records import PASSED, CaptureStats, Outcome, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context, StageClock
    from dynamometer.dynamo.backends.backends import Backend
    from dynamometer.dynamo.capture.capture import Counters
    from dynamometer.results.values.cases import Case, ModelSpec
    from dynamometer.results.values.choices import Choice


@dataclass(frozen=True)
class CompiledArm:
    """An arm that computes what eager does.

    Attributes:
        name: of the arm.
        step: one step; the same for every arm but for the callable inside.
        preparing_s: seconds of the backend's own work before the first step.
        first_steps_s: seconds of each step that was judged, the first one first.
        capture: what Dynamo captured; `None` where Dynamo is not involved.
        start: the state its model began with; of parameters the names alone, once its calls are
            compared.
        checks: what was compared of it so far.
        spent: what compiling was spent in until its second step.
        cached_graphs: how many of its graphs the compiler found in its caches.
        choices: of an arm made of decisions, what was decided for its graphs.
        counters: Dynamo's before it was compiled; `None` where torch has not all of them.
    """

    name: str
    step: Step
    preparing_s: float
    first_steps_s: tuple[float, ...]
    capture: CaptureStats | None
    start: Snapshot
    checks: Checks
    spent: Phases
    cached_graphs: int
    choices: tuple[Choice, ...] = ()
    counters: Counters | None = None

    @property
    def outcome(self) -> Outcome:
        """Flag a backend that compiled nothing: its 1.00x would be eager's own."""
        seen = self.capture
        if seen is not None and seen.ops == 0:  # where all must be one graph, it may be empty
            what = "operator" if seen.graphs else "graph"
            reason = f"Dynamo captured no {what}, so nothing was compiled"
            detail = "; ".join(seen.breaks) or None
        elif seen is not None and seen.fallbacks >= seen.graphs:
            reason, detail = f"the backend failed on every graph: {seen.fallback_reason}", None
        else:
            return PASSED
        return Outcome(status=Status.FAIL, stage=Stage.COMPILE, reason=reason, detail=detail)


@dataclass(frozen=True)
class WarmArm:
    """An arm that is ready to be timed.

    Attributes:
        compiled: the arm.
        warm_up: the steps that were taken until it was steady.
        threads: that its steps keep busy besides the calling one, on a CPU.
        calls: steps until it was steady and its threads were known.
        spent: what compiling was spent in until it was steady.
    """

    compiled: CompiledArm
    warm_up: WarmUp
    threads: frozenset[int]
    calls: int
    spent: Phases

    @property
    def compile_s(self) -> float | None:
        """Seconds of compiling: what the first steps took beyond as many steady ones.

        The backend's own work before them is part of it; `None` for the baseline, and where no
        window of the warm-up was without compiling.
        """
        further_s = self.warm_up.excess_s
        if self.compiled.name == BASELINE or further_s is None:
            return None
        latency_s = self.warm_up.latency_s
        excess_s = sum(max(0.0, step_s - latency_s) for step_s in self.compiled.first_steps_s)
        return self.compiled.preparing_s + excess_s + further_s


def stopwatch(context: Context) -> Stopwatch:
    """Return the watch every arm of a case is timed with."""
    return Stopwatch(synchronize=context.device.synchronize)


def run_reference(context: Context, loaded: LoadedModel, *, briefly: bool = False) -> Reference:
    """Run eager, and give what it computes; all calls are as few as may be if `briefly`.

    Raises:
        SkippedError: the model runs at one size only, and several were asked for.
        NondeterministicError: two runs differ; names the first leaf that does.
    """
    case, seed = context.job.case, context.job.seed
    settings = Settings(seed, tolerance_of(case, context.job.spec), is_brief=briefly)
    try:
        reference = reference_of(loaded, case, settings, partial(_further_run, context.stages))
    except NondeterministicError:
        raise
    except Exception as error:
        if case.dynamic and not is_out_of_memory(error) and _runs_at_one_size(context, loaded):
            msg = f"it runs at one size only: {error}"
            raise SkippedError(msg) from error
        raise
    if not TORCH_KERNELS.issuperset(context.job.arms):
        reference.make_runs()
    return reference


def _further_run(stages: StageClock) -> AbstractContextManager[None]:
    """Announce a run of eager beside its own.

    That eager doesn't run is known by its first runs, of which no arm is to blame. Later ones are
    part of comparing the arm that is at work.
    """
    if stages.stage is Stage.EAGER:
        return stages.at(Stage.EAGER)
    return stages.at(Stage.COMPARE, stages.arm)


def tolerance_of(case: Case, spec: ModelSpec) -> float:
    """Return what share of itself a result of a case may be off by."""
    if spec.tolerance is not None:
        return spec.tolerance
    return accuracy.tolerance_of(case.device, case.dtype, case.mode)


def _runs_at_one_size(context: Context, loaded: LoadedModel) -> bool:
    own = replace(loaded, others=()).copy()
    try:
        make_step(own.module, own, context.job.case.mode, context.job.seed).call()
    except Exception:  # noqa: BLE001  then it is the model that is at fault, not the other sizes
        return False
    return True


def compile_arm(
    context: Context, loaded: LoadedModel, name: str, reference: Reference
) -> CompiledArm:
    """Compile one arm on its own copy of the weights, and check its first two steps.

    Raises:
        SkippedError: the backend is not available here.
        WrongResultError: it computes something else than eager.
        Exception: whatever the backend or the model raises.
    """
    stages, watch = context.stages, stopwatch(context)
    counters, began = [capture.Counters.take()], Phases.now()
    cached = internals.graphs_from_caches()
    calls_s: list[float] = []

    def take(call: Callable[[], object]) -> object:
        started = watch.now()
        output = call()
        watch.synchronize()
        calls_s.append(watch.now() - started)
        if len(calls_s) == 1:
            counters.append(capture.Counters.take())
        return output

    with stages.at(Stage.COMPILE, name):
        own = loaded.copy()
        start, weights = Snapshot.of(own, beside=reference.original), state_of(own)
        with keeping_what_is_set():
            backend = available_backend(name, context.job)
            started = watch.now()
            step = _step(context, backend, own)
        preparing_s = watch.now() - started
        mode = context.job.case.mode
        start = start.compiled(weights, mode, lambda: replaced_by(reference.fresh()[0]))
        del weights
        first = make_call(step, start, Call.FIRST, reference.settings, take)
    with stages.at(Stage.RUN, name):
        second = make_call(step, start, Call.SECOND, reference.settings, take)
    spent = Phases.now().since(began)
    with stages.at(Stage.COMPARE, name):
        checks = check(Checks(), reference, Call.FIRST, first)
        checks = check(checks, reference, Call.SECOND, second)
    before, after_first_call = counters
    return CompiledArm(
        name=name,
        step=step,
        preparing_s=preparing_s,
        first_steps_s=_steps_s(calls_s, len(step.calls)),
        capture=_captured(
            backend,
            before.stats_since(after_first_call) if before and after_first_call else None,
        ),
        start=start,
        checks=checks,
        spent=spent,
        cached_graphs=internals.graphs_from_caches() - cached,
        choices=backend.choices if isinstance(backend, Ensemble) else (),
        counters=before,
    )


def _captured(backend: Backend, seen: CaptureStats | None) -> CaptureStats | None:
    """Add to what Dynamo captured, where that is known, the graphs the backend failed on."""
    if seen is None or not backend.captures:
        return None
    compiler = getattr(backend, "compiler", None)
    failures = compiler.failures if isinstance(compiler, Fallback) else []
    if not failures:
        return seen
    reason = f"{type(failures[0]).__name__}: {failures[0]}"
    return msgspec.structs.replace(seen, fallbacks=len(failures), fallback_reason=reason)


def check_again(
    context: Context, arm: CompiledArm, reference: Reference, calls: int = 0
) -> CompiledArm:
    """Compare calls of an arm that has been called before.

    Args:
        context: the job and what it is done with.
        arm: its first two calls have been compared.
        reference: what the arm is held to.
        calls: how many it has made since then.

    Raises:
        WrongResultError: one of them came to something else than eager's.
        Exception: whatever the backend or the model raises.
    """
    is_first = not context.job.replicate
    rewritten = context.is_guarded or (is_first and not reference.settings.is_brief)
    further = Further(calls, stopwatch(context).now, briefly=not is_first, rewritten=rewritten)
    with context.stages.at(Stage.RUN, arm.name):
        checks = check_further_calls(arm.step, arm.start, reference, arm.checks, further)
    return replace(
        arm,
        checks=checks,
        start=arm.start.beside_parameters(),
        capture=_with_limit_hits(arm.capture, arm.counters),
    )


def _with_limit_hits(seen: CaptureStats | None, since: Counters | None) -> CaptureStats | None:
    """Add to what was captured the frames that Dynamo has given up on by now."""
    if seen is None or since is None:
        return seen
    return msgspec.structs.replace(seen, recompile_limit_hits=since.recompile_limit_hits())


def check_at_last(arm: CompiledArm, loaded: LoadedModel, reference: Reference) -> CompiledArm:
    """Compare calls of an arm that was timed.

    Args:
        arm: it has been checked again before.
        loaded: the model that it was compiled from a copy of.
        reference: what the arm is held to.

    Raises:
        WrongResultError: one of them came to something else than eager's.
        Exception: whatever the backend or the model raises.
    """
    start = arm.start
    if arm.step.mode is Mode.TRAINING:
        begun = state_of(loaded)
        kept = {
            path: begun.get(path) if each is None else each for path, each in start.kept.items()
        }
        start = replace(start, kept=kept)
    return replace(arm, checks=check_after_timing(arm.step, start, reference, arm.checks))


def checked_arm(
    context: Context, loaded: LoadedModel, name: str, reference: Reference
) -> CompiledArm:
    """Compile an arm that is not to be timed in this form, and compare all calls of it.

    Raises:
        Exception: as `compile_arm` and `check_again` do.
    """
    with context.guarding(name):
        compiled = compile_arm(context, loaded, name, reference)
    with context.guarding(name):
        return check_again(context, compiled, reference)


def warm_up_arm(context: Context, arm: CompiledArm) -> WarmArm:
    """Take steps until the arm is steady, and see which threads they need."""
    calls = 0

    def call() -> object:
        nonlocal calls
        calls += 1
        return arm.step.call()

    with context.stages.at(Stage.RUN, arm.name), state.keeping_settings():
        began = Phases.now()
        warm_up = warm_up_to_steady(stopwatch(context), call, capture.frames_seen)
        spent = arm.spent.plus(Phases.now().since(began))
        threads = threads_of(context, call)
    return WarmArm(arm, warm_up, threads, calls, spent)


def threads_of(context: Context, call: Callable[[], object]) -> frozenset[int]:
    """Return which threads a step keeps busy; none on an accelerator, where they don't decide."""
    return busy_threads(call) if context.job.case.device == "cpu" else frozenset()


def compiled_step(
    context: Context, loaded: LoadedModel, name: str, *, dynamic: bool | None = None
) -> Step:
    """Return an arm's step on the loaded module itself, with nothing compared.

    Args:
        context: the job and what it is done with.
        loaded: the arm's own copy.
        name: of the arm.
        dynamic: whether sizes are dynamic dimensions; `None` for as Dynamo is set.

    Raises:
        SkippedError: the backend is not available here.
    """
    backend = available_backend(name, context.job)
    if isinstance(backend, ThroughDynamo):
        backend = replace(backend, dynamic=dynamic)
    return _step(context, backend, loaded)


def _step(context: Context, backend: Backend, loaded: LoadedModel) -> Step:
    """Compile a module, and the optimizer's step where that is asked for.

    Raises:
        UsageError: the backend can't compile an optimizer.
    """
    case, seed = context.job.case, context.job.seed
    if isinstance(backend, Ensemble):  # a model as a whole is decided for all calls of a step
        backend = replace(backend, others=loaded.others, key=loaded.model_key)
    compiled = backend.compile(loaded.module, loaded.args, loaded.kwargs)
    if not case.compiled_optimizer:
        return make_step(compiled, loaded, case.mode, seed)
    return make_step(compiled, loaded, case.mode, seed, compiler_of_functions(backend))


def _steps_s(calls_s: list[float], calls: int) -> tuple[float, ...]:
    """Add up the seconds of calls to those of steps."""
    starts = range(0, len(calls_s), calls)
    return tuple(sum(calls_s[start : start + calls]) for start in starts)
