"""The worker's half of the speedup and accuracy experiments: build the arms, visit them."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common import arms
from dynamometer.common.arms import CompiledArm, SettledArm
from dynamometer.common.messages import Findings
from dynamometer.common.outcome import attempt, worst
from dynamometer.common.speedup import absences
from dynamometer.common.timing import measure_blocks
from dynamometer.dynamo import capture
from dynamometer.results.cases import BASELINE
from dynamometer.results.metrics import (
    COMPILE_TIME,
    COMPILE_TIME_WARM,
    KERNEL_TIME,
    LATENCY,
    MINOR_FAULTS,
)
from dynamometer.results.records import PASSED, ArmResult, Measurement, Outcome, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.arms import Reference
    from dynamometer.common.experiment import Context
    from dynamometer.common.suite import LoadedModel
    from dynamometer.common.timing import Visit

_PADDING_BLOCKS = 64
_PADDING_BYTES = (16, 65_536)


def measure(context: Context) -> Findings:
    """Build the arms in random order on a randomly padded heap, then visit them in blocks."""
    job, stages = context.job, context.stages
    cold = not any(Path(job.cache_dir).iterdir())
    loaded, reference = _load(context)
    rng = random.Random(f"{job.seed}/{job.replicate}/{job.case.id}")  # noqa: S311  no secret
    order = rng.sample(job.arms, len(job.arms))
    padding: list[bytearray] = []
    settled: dict[str, SettledArm] = {}
    results: dict[str, ArmResult] = {}
    for name in order:
        padding.extend(pad_heap(rng))
        arm = attempt(stages, partial(_build, context, loaded, name, reference))
        results[name] = _arm_result(name, arm)
        if isinstance(arm, SettledArm) and results[name].outcome == PASSED:
            settled[name] = arm
    del reference  # and with it whatever was computed in float64
    if BASELINE in settled and len(settled) > 1:
        frames = capture.frames_seen()
        with stages.at(Stage.MEASURE):
            visits = _measure(context, settled, rng)
        results = _unsettle(results) if capture.frames_seen() > frames else results
    else:
        visits = []
    del padding
    metric = COMPILE_TIME if cold else COMPILE_TIME_WARM
    found = (*_compile_times(metric, settled), *_latencies(visits))
    findings = _findings(context, loaded, results, order)
    return msgspec.structs.replace(
        findings, measurements=found, absent=absences(findings.arms, found)
    )


def check(context: Context) -> Findings:
    """Compile the arms and compare what they compute with eager; time nothing."""
    loaded, reference = _load(context)
    results: dict[str, ArmResult] = {}
    for name in context.job.arms:
        action = partial(arms.compile_arm, context, loaded, name, reference)
        results[name] = _arm_result(name, attempt(context.stages, action))
    return _findings(context, loaded, results, context.job.arms)


def _load(context: Context) -> tuple[LoadedModel, Reference]:
    with context.stages.at(Stage.LOAD):
        loaded = context.load()
    with context.stages.at(Stage.EAGER):
        return loaded, arms.run_reference(context, loaded)


def _build(context: Context, loaded: LoadedModel, name: str, reference: Reference) -> SettledArm:
    return arms.settle_arm(context, arms.compile_arm(context, loaded, name, reference))


def pad_heap(rng: random.Random) -> list[bytearray]:
    """Take a random number of blocks of random size, so that no two replicates share a layout.

    Arms built first and second lie at different addresses; where that is the same in every
    replicate, identical arms differ by up to 0.6 % and no number of replicates shows it.
    """
    low, high = _PADDING_BYTES
    return [bytearray(rng.randint(low, high)) for _ in range(rng.randrange(_PADDING_BLOCKS))]


def _arm_result(name: str, arm: SettledArm | CompiledArm | Outcome) -> ArmResult:
    if isinstance(arm, Outcome):
        return ArmResult(arm=name, outcome=arm)
    compiled = arm.compiled if isinstance(arm, SettledArm) else arm
    return ArmResult(
        arm=name,
        outcome=compiled.outcome,
        capture=compiled.capture,
        max_error=compiled.max_error,
        steady=arm.warm_up.steady if isinstance(arm, SettledArm) else None,
    )


def _measure(context: Context, settled: dict[str, SettledArm], rng: random.Random) -> list[Visit]:
    names = [name for name in context.job.arms if name in settled]
    return measure_blocks(
        arms.stopwatch(context),
        {name: settled[name].compiled.step.call for name in names},
        {name: settled[name].warm_up.latency_s for name in names},
        context.job.protocol,
        rng,
    )


def _unsettle(results: dict[str, ArmResult]) -> dict[str, ArmResult]:
    """Mark captured arms unsteady: something was compiled while they were being timed."""
    return {
        name: msgspec.structs.replace(result, steady=False) if result.capture else result
        for name, result in results.items()
    }


def _findings(
    context: Context, loaded: LoadedModel, results: dict[str, ArmResult], order: Sequence[str]
) -> Findings:
    ordered = tuple(results[name] for name in context.job.arms)
    failed = [
        result.outcome for result in ordered if result.arm == BASELINE and result.outcome != PASSED
    ]
    outcomes = failed or [result.outcome for result in ordered if result.arm != BASELINE]
    return Findings(
        # An arm that can't run here takes nothing from those that did.
        outcome=worst([each for each in outcomes if each.status is not Status.SKIP] or outcomes),
        arms=ordered,
        build_order=tuple(order),
        notes=loaded.notes,
        device_name=context.device.name,
    )


def _compile_times(metric: str, settled: dict[str, SettledArm]) -> list[Measurement]:
    return [
        Measurement(metric=metric, unit="s", arm=name, samples=(arm.compile_s,))
        for name, arm in settled.items()
        if arm.compile_s is not None
    ]


def _latencies(visits: list[Visit]) -> list[Measurement]:
    found = []
    for arm in dict.fromkeys(visit.arm for visit in visits):
        own = [visit for visit in visits if visit.arm == arm]
        blocks = tuple(visit.block for visit in own)
        found += [
            Measurement(
                metric=LATENCY,
                unit="s",
                arm=arm,
                samples=tuple(sample for visit in own for sample in visit.samples_s),
                blocks=tuple(visit.block for visit in own for _ in visit.samples_s),
            ),
            Measurement(
                metric=MINOR_FAULTS,
                unit="1/call",
                arm=arm,
                samples=tuple(visit.minor_faults_per_call for visit in own),
                blocks=blocks,
            ),
            Measurement(
                metric=KERNEL_TIME,
                unit="s/call",
                arm=arm,
                samples=tuple(visit.kernel_s_per_call for visit in own),
                blocks=blocks,
            ),
        ]
    return found
