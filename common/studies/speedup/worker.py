"""The worker's half: arms built, compared, and timed in blocks or one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.measuring import arms
from dynamometer.common.measuring.measurements import counted, latencies
from dynamometer.common.measuring.timed_arms import TimedArms, machine, pad_heap
from dynamometer.common.measuring.timing import measure_blocks
from dynamometer.common.measuring.warm_up import warm_up_to_steady
from dynamometer.common.randomness import seeded_rng
from dynamometer.common.studies.arms_beside_eager import findings_of, load
from dynamometer.common.studies.speedup.absences import absences
from dynamometer.common.studies.speedup.isolated_runs import ISOLATED_RUNS
from dynamometer.dynamo.capture import capture
from dynamometer.results.statistics.interference import LONGEST_DISTURBANCE, was_checked
from dynamometer.results.values.metrics import LATENCY, LATENCY_ALONE, LATENCY_ISOLATED
from dynamometer.results.values.records import PASSED, ArmResult, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.studies.experiment import Context

_UNCHECKED = "whether the arms disturb each other is not known: their calls alone were disturbed"
_WAITED = "threads of several arms don't fit on the processors: others' were idle before each burst"


def measure(context: Context, groups: Sequence[Sequence[str]] = ()) -> Findings:
    """Build the arms in random order on a randomly padded heap, then time them in blocks.

    Args:
        context: the job and what it is done with.
        groups: arms that share blocks, where these are not all of them.
    """
    job = context.job
    timed = TimedArms(context)
    loaded, reference = load(context)
    order = timed.rng.sample(job.arms, len(job.arms))
    for name in order:
        timed.build(name, loaded, reference)
    timed.forgo_timing(reference)
    # What eager came to is kept meanwhile: arms are held to it again.
    blocks = timed.time_together(groups or (job.arms,))
    timed.time_guards()
    timed.look_after(loaded, reference)
    bursts = [each for each in blocks.bursts if timed.results[each.arm].outcome == PASSED]
    found = (
        *timed.compile_times(),
        *latencies(LATENCY_ALONE, timed.alone),
        *latencies(LATENCY, bursts),
        *counted(bursts),
    )
    results = _as_unsteady(timed.results) if timed.compiled_late else timed.results
    findings = findings_of(context, loaded, results, order, reference.constancy.moved_by)
    looked = job.case.device != "cpu" or was_checked(found)
    notes = [note for note, holds in ((_UNCHECKED, not looked), (_WAITED, blocks.waited)) if holds]
    return msgspec.structs.replace(
        findings,
        notes=(*findings.notes, *notes),
        measurements=found,
        absent=absences(findings.arms, found, timed.compiled_always),
        disturbed_blocks=blocks.disturbed,
        loads=blocks.loads,
        repeated_blocks=blocks.repeats,
        waited=blocks.waited,
    )


def measure_isolated(context: Context) -> Findings:
    """Time the one arm of this process, in an isolated run; its results were compared before."""
    job, stages = context.job, context.stages
    (name,) = job.arms
    rng = seeded_rng(job.seed, job.replicate, job.isolated_run, job.case.id)
    with stages.at(Stage.LOAD):
        loaded = context.load()
    padding = pad_heap(rng)
    with stages.at(Stage.COMPILE, name):
        step = arms.compiled_step(context, loaded, name)
    with stages.at(Stage.MEASURE, name):
        warm_up = warm_up_to_steady(arms.stopwatch(context), step.call, capture.frames_seen)
        latencies_s = {name: warm_up.latency_s, "": job.fastest_s or warm_up.latency_s}
        budget_s = job.protocol.arm_budget_s / ISOLATED_RUNS
        protocol = msgspec.structs.replace(job.protocol, arm_budget_s=budget_s)
        blocks = measure_blocks(
            arms.stopwatch(context), {name: step.call}, latencies_s, protocol, rng,
            machine(context),
        )  # fmt: skip
    del padding
    blocks_made = len({burst.block for burst in blocks.bursts})
    too_many = len(blocks.disturbed) > LONGEST_DISTURBANCE * blocks_made
    isolated = [
        replace(burst, block=job.isolated_run) for burst in blocks.undisturbed or blocks.bursts
    ]
    notes = () if warm_up.steady else (f"{name} was not steady in its isolated run",)
    return Findings(
        outcome=PASSED,
        measurements=tuple(latencies(LATENCY_ISOLATED, isolated)),
        disturbed_blocks=(job.isolated_run,) if too_many else (),
        loads=tuple(
            msgspec.structs.replace(each, isolated=(name, job.isolated_run))
            for each in blocks.loads
        ),
        repeated_blocks=blocks.repeats,
        notes=notes,
        device_name=context.device.name,
    )


def _as_unsteady(results: dict[str, ArmResult]) -> dict[str, ArmResult]:
    """Mark captured arms unsteady: something was compiled while one was being timed."""
    return {
        name: msgspec.structs.replace(result, steady=False) if result.capture else result
        for name, result in results.items()
    }
