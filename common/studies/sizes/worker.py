"""The worker's half of `--sweep-sizes`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import torch

from dynamometer.common.checking import shapes
from dynamometer.common.checking.checking import check_first_calls
from dynamometer.common.checking.looking import replaced_by
from dynamometer.common.checking.snapshots import Snapshot, state_of
from dynamometer.common.checking.steps import make_step
from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.interfaces.outcome import attempt
from dynamometer.common.measuring import arms
from dynamometer.common.measuring.blame import attempt_arm
from dynamometer.common.measuring.measurements import latencies
from dynamometer.common.measuring.threads import ArmThreads
from dynamometer.common.measuring.timed_arms import arm_result, pad_heap, time_in_blocks
from dynamometer.common.measuring.timing import Blocks
from dynamometer.common.measuring.warm_up import warm_up_to_steady
from dynamometer.common.randomness import seeded_rng
from dynamometer.common.studies.arms_beside_eager import load
from dynamometer.dynamo.capture import capture, sizes
from dynamometer.dynamo.trees import tree_map_only
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import PASSED, Absence, ArmResult, Outcome, Stage, packed
from dynamometer.results.values.sizes import NOT_REACHED, STATIC, latency_at

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.records import Measurement
    from dynamometer.results.values.sizes import SizeSweep

Calls = dict[str, "Callable[[], object]"]


def sweep(context: Context) -> Findings:
    """Observe, compile for all sizes and for each, and time them size by size.

    What is compiled for all is compared with eager at every size, before anything is timed. The
    sizes that were timed stand whatever ends the process at a later one.
    """
    job, stages = context.job, context.stages
    arm = job.arms[-1]
    rng = seeded_rng(job.seed, job.replicate, job.case.id)
    loaded, reference = load(context)
    names = shapes.names(job.spec, job.case)
    with stages.at(Stage.COMPILE, arm):
        seen = _observe(loaded.copy(), names)
    padding = pad_heap(rng)
    action = partial(arms.checked_arm, context, loaded, arm, reference)
    compiled = attempt_arm(context, arm, reference, action)
    result = arm_result(arm, compiled)
    judged = Findings(
        outcome=result.outcome,
        arms=(ArmResult(arm=BASELINE, outcome=PASSED), result),
        found=packed(seen),
        notes=loaded.notes,
        device_name=context.device.name,
    )
    if not isinstance(compiled, arms.CompiledArm) or result.outcome != PASSED:
        return judged
    eager = make_step(loaded.module, loaded, job.case.mode, job.seed)
    found: list[Measurement] = []
    absent: list[Absence] = []
    timed = Blocks()

    def known(reached: int) -> Findings:
        return msgspec.structs.replace(
            judged,
            measurements=tuple(found),
            absent=(*absent, *_not_reached(range(reached, len(names)), job.arms)),
            disturbed_blocks=timed.disturbed,
            loads=timed.loads,
            repeated_blocks=timed.repeats,
            waited=timed.waited,
        )

    for index in range(len(names)):
        context.keep(known(index))
        padding += pad_heap(rng)
        at_size = {BASELINE: eager.calls[index], arm: compiled.step.calls[index]}
        static = attempt(stages, partial(_static, context, loaded, index, arm))
        if isinstance(static, Outcome):
            absent.append(_absence(index, STATIC, static.reason))
        else:
            at_size[STATIC] = static
        blocks, missing = _timed(context, index, at_size, rng)
        absent += missing
        if blocks is None:
            continue
        before = len(timed.bursts)
        timed = timed.then(blocks)
        found += latencies(latency_at(index), timed.bursts[before:])
    del padding
    return known(len(names))


def _observe(own: LoadedModel, names: tuple[str, ...]) -> SizeSweep:
    calls = [(each.args, dict(each.kwargs)) for each in own.calls]
    return sizes.observe(own.module, calls, names)


def _absence(index: int, arm: str, reason: str | None) -> Absence:
    return Absence(metric=latency_at(index).name, arm=arm, reason=reason or "it failed")


def _not_reached(indices: Iterable[int], names: tuple[str, ...]) -> list[Absence]:
    """Return what is missing if the process ends before it has timed anything at some sizes."""
    return [_absence(index, each, NOT_REACHED) for index in indices for each in (*names, STATIC)]


def _static(context: Context, loaded: LoadedModel, index: int, arm: str) -> Callable[[], object]:
    """Compile for one size alone, which is then the only one there is; all of it, or fail.

    Raises:
        WrongResultError: it computes something else than eager at this size.
        Exception: whatever the backend or the model raises.
    """
    inputs = loaded.calls[index]
    alone = replace(loaded, args=inputs.args, kwargs=inputs.kwargs, others=(), model_key=None)
    own = alone.copy().with_inputs(partial(tree_map_only, torch.Tensor, torch.clone))  # no marks
    start, weights = Snapshot.of(own), state_of(own)
    with context.stages.at(Stage.COMPILE, arm):
        reference = arms.run_reference(context, alone)
        step = arms.compiled_step(context.strict(), own, arm, dynamic=False)
        mode = context.job.case.mode
        start = start.compiled(weights, mode, lambda: replaced_by(reference.fresh()[0]))
        check_first_calls(step, start, reference)
    return step.call


def _timed(
    context: Context, index: int, at_size: Calls, rng: random.Random
) -> tuple[Blocks | None, list[Absence]]:
    """Time arms at one size; without what is compiled for it alone if they fail with that."""
    absent: list[Absence] = []
    blocks = attempt(context.stages, partial(_measure, context, at_size, rng))
    if isinstance(blocks, Outcome) and STATIC in at_size:
        absent.append(_absence(index, STATIC, blocks.reason))
        at_size = {name: call for name, call in at_size.items() if name != STATIC}
        blocks = attempt(context.stages, partial(_measure, context, at_size, rng))
    if isinstance(blocks, Outcome):
        return None, [*absent, *(_absence(index, each, blocks.reason) for each in at_size)]
    return blocks, absent


def _measure(context: Context, calls: Calls, rng: random.Random) -> Blocks:
    watch = arms.stopwatch(context)
    with context.stages.at(Stage.MEASURE):
        steady_s = {
            name: warm_up_to_steady(watch, call, capture.frames_seen).latency_s
            for name, call in calls.items()
        }
        threads = {name: arms.threads_of(context, call) for name, call in calls.items()}
        return time_in_blocks(
            context, calls, steady_s, ArmThreads.now(threads), context.job.protocol, rng
        )
