"""Building an arm of a case inside a worker: its own weights, compiled, settled and checked."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynamometer.common import registry
from dynamometer.common.outcome import NondeterministicError, SkippedError, WrongResultError
from dynamometer.common.timing import Stopwatch, WarmUp, settle
from dynamometer.dynamo import accuracy, capture, state
from dynamometer.dynamo.backends import as_backend
from dynamometer.results.schema import BASELINE, CaptureStats, Outcome, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.common.experiment import Context
    from dynamometer.common.suite import LoadedModel
    from dynamometer.dynamo.backends import Backend


@dataclass(frozen=True)
class BuiltArm:
    """An arm that is ready to be timed.

    Attributes:
        name: of the arm.
        call: one step; the same for every arm but for the callable inside.
        compile_s: seconds of compiling: the backend's own work and what the first calls took
            beyond as many steady ones. `None` for the baseline.
        warm_up: the calls that were made until it settled.
        capture: what Dynamo captured; `None` where Dynamo is not involved.
        max_error: largest relative deviation from eager.
    """

    name: str
    call: Callable[[], object]
    compile_s: float | None
    warm_up: WarmUp
    capture: CaptureStats | None
    max_error: float | None


def stopwatch(context: Context) -> Stopwatch:
    """Give the watch every arm of a case is timed with."""
    return Stopwatch(now=time.perf_counter, synchronize=context.device.synchronize)


def step_of(call: Callable[..., Any], loaded: LoadedModel) -> Callable[[], object]:
    """Bind a callable to the model's inputs; the one step that every arm runs."""
    return functools.partial(call, *loaded.args, **loaded.kwargs)


def reference_output(context: Context, loaded: LoadedModel) -> object:
    """Run eager twice and give its output.

    Raises:
        NondeterministicError: the two runs differ; names the first leaf that does.
    """
    outputs = []
    for _ in range(2):
        own = loaded.copy()  # a forward that changes its buffers or inputs changes only these
        state.seed_everything(context.job.seed)
        outputs.append(step_of(own.module, own)())
    first, second = outputs
    difference = accuracy.compare(first, second, tolerance=0.0).mismatch
    if difference:
        msg = f"two eager runs from one seed differ at {difference}"
        raise NondeterministicError(msg)
    return first


def build(context: Context, loaded: LoadedModel, name: str, reference: object) -> BuiltArm:
    """Build one arm on its own copy of the weights.

    Raises:
        SkippedError: the backend is not available here.
        WrongResultError: its output is not eager's.
        Exception: whatever the backend or the model raises.
    """
    stages, case = context.stages, context.job.case
    watch = stopwatch(context)
    before = capture.Snapshot.take()
    with stages.at(Stage.COMPILE, name):
        backend = _available_backend(name, case.device)
        own = loaded.copy()
        started = watch.now()
        step = step_of(backend.compile(own.module, own.args, own.kwargs), own)
        preparing_s = watch.now() - started
        state.seed_everything(context.job.seed)
        output, first_s = _timed(watch, step)
    with stages.at(Stage.COMPARE, name):
        comparison = _check(context, reference, output)
        del output
    with stages.at(Stage.RUN, name):
        warm_up = settle(watch, step, capture.frames_seen)
    compiling_s = preparing_s + max(0.0, first_s - warm_up.latency_s) + warm_up.excess_s
    return BuiltArm(
        name=name,
        call=step,
        compile_s=None if name == BASELINE else compiling_s,
        warm_up=warm_up,
        capture=before.stats_since() if backend.captures else None,
        max_error=comparison.max_error,
    )


def outcome_of(arm: BuiltArm) -> Outcome:
    """Flag a backend that was given nothing to compile: its 1.00x would be eager's own."""
    if arm.capture is not None and arm.capture.graphs == 0:
        return Outcome(
            status=Status.FAIL,
            stage=Stage.COMPILE,
            reason="Dynamo captured no graph, so nothing was compiled",
            detail="; ".join(arm.capture.breaks) or None,
        )
    return Outcome(status=Status.PASS)


def compiled_step(context: Context, loaded: LoadedModel, name: str) -> Callable[[], object]:
    """Give an arm's step on the loaded module itself, for a process that holds no other arm.

    Raises:
        SkippedError: the backend is not available here.
    """
    backend = _available_backend(name, context.job.case.device)
    return step_of(backend.compile(loaded.module, loaded.args, loaded.kwargs), loaded)


def load_backend(name: str) -> Backend:
    """Give the backend of an arm.

    Raises:
        UsageError: it can't be imported.
        TypeError: what was imported is no backend.
    """
    return as_backend(registry.resolve("backends", name))


def _available_backend(name: str, device: str) -> Backend:
    backend = load_backend(name)
    reason = backend.available(device)
    if reason:
        raise SkippedError(reason)
    return backend


def _timed(watch: Stopwatch, step: Callable[[], object]) -> tuple[object, float]:
    started = watch.now()
    output = step()
    watch.synchronize()
    return output, watch.now() - started


def _check(context: Context, reference: object, output: object) -> accuracy.Comparison:
    tolerance = context.job.spec.tolerance
    if tolerance is None:
        tolerance = accuracy.DEFAULT_TOLERANCE[context.job.case.device]
    comparison = accuracy.compare(reference, output, tolerance)
    if comparison.mismatch:
        raise WrongResultError(comparison.mismatch)
    return comparison
