"""The worker's half: arms built, compared, and timed in blocks or one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.measuring import arms
from dynamometer.common.measuring.measurements import counted, latencies
from dynamometer.common.measuring.timing import measure_blocks, settle
from dynamometer.common.measuring.visiting import Bench, machine, pad_heap
from dynamometer.common.orders import drawn_from
from dynamometer.common.studies.arms_beside_eager import findings_of, load
from dynamometer.common.studies.speedup.absences import absences
from dynamometer.common.studies.speedup.turns import TURNS
from dynamometer.dynamo.capture import capture
from dynamometer.results.statistics.interference import LONGEST_DISTURBANCE, was_checked
from dynamometer.results.values.metrics import LATENCY, LATENCY_ALONE, LATENCY_APART
from dynamometer.results.values.records import PASSED, ArmResult, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.studies.experiment import Context

_UNCHECKED = "whether the arms disturb each other is not known: their calls alone were disturbed"
_RESTED = "threads of several arms don't fit on the processors: each rested before others' visits"


def measure(context: Context, groups: Sequence[Sequence[str]] = ()) -> Findings:
    """Build the arms in random order on a randomly padded heap, then visit them in blocks.

    Args:
        context: the job and what it is done with.
        groups: arms that share blocks, where these are not all of them.
    """
    job = context.job
    bench = Bench(context)
    loaded, reference = load(context)
    order = bench.rng.sample(job.arms, len(job.arms))
    for name in order:
        bench.build(name, loaded, reference)
    del reference  # and with it whatever was computed in float64
    blocks = bench.visit_together(groups or (job.arms,))
    bench.time_guards()
    found = (
        *bench.compile_times(),
        *latencies(LATENCY_ALONE, bench.alone),
        *latencies(LATENCY, blocks.visits),
        *counted(blocks.visits),
    )
    results = _unsettle(bench.results) if bench.compiled_late else bench.results
    findings = findings_of(context, loaded, results, order)
    looked = job.case.device != "cpu" or was_checked(found)
    notes = [note for note, holds in ((_UNCHECKED, not looked), (_RESTED, blocks.rested)) if holds]
    return msgspec.structs.replace(
        findings,
        notes=(*findings.notes, *notes),
        measurements=found,
        absent=absences(findings.arms, found),
        disturbed_blocks=blocks.disturbed,
        repeated_blocks=blocks.repeats,
        rested=blocks.rested,
    )


def measure_apart(context: Context) -> Findings:
    """Time the one arm of this process, which takes its turn; its results were compared before."""
    job, stages = context.job, context.stages
    (name,) = job.arms
    rng = drawn_from(job.seed, job.replicate, job.turn, job.case.id)
    with stages.at(Stage.LOAD):
        loaded = context.load()
    padding = pad_heap(rng)
    with stages.at(Stage.COMPILE, name):
        step = arms.compiled_step(context, loaded, name)
    with stages.at(Stage.MEASURE, name):
        warm_up = settle(arms.stopwatch(context), step.call, capture.frames_seen)
        latencies_s = {name: warm_up.latency_s, "": job.fastest_s or warm_up.latency_s}
        budget_s = job.protocol.arm_budget_s / TURNS
        protocol = msgspec.structs.replace(job.protocol, arm_budget_s=budget_s)
        blocks = measure_blocks(
            arms.stopwatch(context), {name: step.call}, latencies_s, protocol, rng,
            machine(context),
        )  # fmt: skip
    del padding
    blocks_made = len({visit.block for visit in blocks.visits})
    too_many = len(blocks.disturbed) > LONGEST_DISTURBANCE * blocks_made
    turned = [replace(visit, block=job.turn) for visit in blocks.calm or blocks.visits]
    notes = () if warm_up.steady else (f"{name} had not settled when timed apart",)
    return Findings(
        outcome=PASSED,
        measurements=tuple(latencies(LATENCY_APART, turned)),
        disturbed_blocks=(job.turn,) if too_many else (),
        repeated_blocks=blocks.repeats,
        notes=notes,
        device_name=context.device.name,
    )


def _unsettle(results: dict[str, ArmResult]) -> dict[str, ArmResult]:
    """Mark captured arms unsteady: something was compiled while one was being timed."""
    return {
        name: msgspec.structs.replace(result, steady=False) if result.capture else result
        for name, result in results.items()
    }
