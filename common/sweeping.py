"""The worker's half of `--sweep-sizes`."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch.utils._pytree import tree_map_only

from dynamometer.common import arms, shapes
from dynamometer.common.measuring import latencies, machine, pad_heap
from dynamometer.common.messages import Findings
from dynamometer.common.steps import make_step
from dynamometer.common.timing import measure_blocks, settle
from dynamometer.dynamo import capture, sizes
from dynamometer.results.cases import BASELINE
from dynamometer.results.records import PASSED, ArmResult, Stage
from dynamometer.results.sizes import STATIC, metric_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.common.experiment import Context
    from dynamometer.common.suite import LoadedModel
    from dynamometer.common.timing import Blocks
    from dynamometer.results.records import Measurement

Calls = dict[str, "Callable[[], object]"]


def sweep(context: Context) -> Findings:
    """Observe, compile for all sizes and for each, and time them size by size.

    What is compiled for all goes through the sizes in their order before anything is timed.
    """
    job, stages = context.job, context.stages
    arm = job.arms[-1]
    rng = random.Random(f"{job.seed}/{job.replicate}/{job.case.id}")  # noqa: S311  no secret
    with stages.at(Stage.LOAD):
        loaded = context.load()
        names = shapes.names(job.spec, job.case)
    with stages.at(Stage.COMPILE, arm):
        own = loaded.copy()
        calls = [(each.args, dict(each.kwargs)) for each in own.calls]
        seen = sizes.observe(own.module, calls, names)
        padding = pad_heap(rng)
        eager = make_step(loaded.module, loaded, job.case.mode, job.seed)
        compiled = arms.compiled_step(context, loaded.copy(), arm)
        for call in compiled.calls:
            call()
        alone = [_static(context, loaded, index, arm) for index in range(len(names))]
    found: list[Measurement] = []
    disturbed = repeats = 0
    with stages.at(Stage.MEASURE):
        for index, static in enumerate(alone):
            at_size = {BASELINE: eager.calls[index], arm: compiled.calls[index], STATIC: static}
            blocks = _measure(context, at_size, rng)
            found += latencies(metric_at(index), blocks.calm or blocks.visits)
            disturbed += bool(blocks.disturbed and not blocks.calm)
            repeats += blocks.repeats
    del padding
    note = (f"something else was busy at {disturbed} of the sizes",) if disturbed else ()
    return Findings(
        outcome=PASSED,
        arms=tuple(ArmResult(arm=each, outcome=PASSED) for each in job.arms),
        measurements=tuple(found),
        sizes=seen,
        repeated_blocks=repeats,
        notes=(*loaded.notes, *note),
        device_name=context.device.name,
    )


def _static(context: Context, loaded: LoadedModel, index: int, arm: str) -> Callable[[], object]:
    """Compile for one size alone, which is then the only one there is."""
    inputs = loaded.calls[index]
    own = replace(loaded, args=inputs.args, kwargs=inputs.kwargs, others=()).copy()
    own = own.with_inputs(partial(tree_map_only, torch.Tensor, torch.clone))  # without marks
    (call,) = arms.compiled_step(context, own, arm, dynamic=False).calls
    call()
    return call


def _measure(context: Context, calls: Calls, rng: random.Random) -> Blocks:
    watch = arms.stopwatch(context)
    settled_s = {
        name: settle(watch, call, capture.frames_seen).latency_s for name, call in calls.items()
    }
    return measure_blocks(watch, calls, settled_s, context.job.protocol, rng, machine(context))
