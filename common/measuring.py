"""The worker's half of the speedup and accuracy experiments: build the arms, visit them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dynamometer.common import arms
from dynamometer.common.apart import TURNS
from dynamometer.common.arms import CompiledArm, SettledArm
from dynamometer.common.messages import Findings
from dynamometer.common.orders import drawn_from
from dynamometer.common.outcome import VisitError, attempt, classify, worst
from dynamometer.common.speedup import absences
from dynamometer.common.surroundings import Machine, read_counters
from dynamometer.common.threads import ArmThreads
from dynamometer.common.timing import (
    Blocks,
    after_a_rest,
    alone,
    in_longer_runs,
    measure_blocks,
    settle,
)
from dynamometer.dynamo import capture, internals
from dynamometer.results.cases import BASELINE
from dynamometer.results.interference import (
    LONGEST_DISTURBANCE,
    agree,
    seems_to_interfere,
    was_checked,
)
from dynamometer.results.metrics import (
    COMPILE_PHASES,
    COMPILE_TIME,
    COMPILE_TIME_WARM,
    KERNEL_TIME,
    LATENCY,
    LATENCY_ALONE,
    LATENCY_APART,
    MINOR_FAULTS,
)
from dynamometer.results.records import PASSED, ArmResult, Measurement, Outcome, Stage, Status

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from dynamometer.common.arms import Reference
    from dynamometer.common.experiment import Context
    from dynamometer.common.suite import LoadedModel
    from dynamometer.common.timing import Visit
    from dynamometer.results.cases import Protocol

T = TypeVar("T")

_UNCHECKED = "whether the arms disturb each other is not known: their calls alone were disturbed"
_RESTED = "threads of several arms don't fit on the processors: each rested before others' visits"
_PADDING_BLOCKS = 64
_PADDING_BYTES = (16, 65_536)


def measure(context: Context, groups: Sequence[Sequence[str]] = ()) -> Findings:
    """Build the arms in random order on a randomly padded heap, then visit them in blocks.

    Args:
        context: the job and what it is done with.
        groups: arms that share blocks, where these are not all of them.
    """
    job = context.job
    bench = _Bench(context)
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
        *_kernel_work(blocks.visits),
    )
    results = _unsettle(bench.results) if bench.compiled_late else bench.results
    findings = _findings(context, loaded, results, order)
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


class _Bench:
    """The arms of one process: built one after the other, then visited together.

    Attributes:
        rng: what is random here is drawn from.
        results: how building each arm ended, and timing it.
        alone: visits to each arm before the next was built.
        compiled_late: whether something was compiled while an arm was being timed.
    """

    def __init__(self, context: Context) -> None:
        self.rng = drawn_from(context.job.seed, context.job.replicate, context.job.case.id)
        self.results: dict[str, ArmResult] = {}
        self.alone: list[Visit] = []
        self.compiled_late = False
        self._context = context
        self._caches = self._cached()
        self._settled: dict[str, SettledArm] = {}
        self._found_cached: set[str] = set()
        self._padding: list[bytearray] = []

    def build(self, name: str, loaded: LoadedModel, reference: Reference) -> None:
        """Build an arm on a padded heap; if it does what eager does, time it alone."""
        self._padding.extend(pad_heap(self.rng))
        untouched = self._cached() == self._caches
        action = partial(_build, self._context, loaded, name, reference)
        arm = attempt(self._context.stages, action)
        self.results[name] = arm_result(name, arm)
        if not isinstance(arm, SettledArm) or self.results[name].outcome != PASSED:
            return
        self._settled[name] = arm
        if arm.compiled.cached_graphs and not untouched:
            self._found_cached.add(name)
        with self._context.stages.at(Stage.MEASURE, name):
            frames = capture.frames_seen()
            visits = self._time(partial(_visit_alone, self._context, arm, self.rng))
            self.alone += visits if visits and capture.frames_seen() == frames else ()

    def visit_together(self, groups: Sequence[Sequence[str]]) -> Blocks:
        """Visit the arms of each group in blocks; without one that fails, if others are left."""
        blocks = Blocks()
        with self._context.stages.at(Stage.MEASURE):
            for group in groups:
                found = None
                while found is None and (present := self._present(group)):
                    action = partial(
                        _measure_together, self._context, present, self.alone, self.rng
                    )
                    found = self._time(action)
                blocks = blocks.then(found or Blocks())
        self._padding.clear()
        return blocks

    def time_guards(self) -> None:
        """Add to what was captured of an arm how long its steps take to check guards."""
        for name, arm in self._settled.items():
            seen = self.results[name].capture
            if seen is None:
                continue
            with self._context.stages.at(Stage.MEASURE, name):
                action = partial(internals.lookup_s, arm.compiled.step.call)
                spent_s = attempt(self._context.stages, action)
            if isinstance(spent_s, float):
                timed = msgspec.structs.replace(seen, guards_s=spent_s)
                self.results[name] = msgspec.structs.replace(self.results[name], capture=timed)

    def compile_times(self) -> list[Measurement]:
        """Give compile times, but for arms that found in the caches what another had compiled."""
        metric = COMPILE_TIME_WARM if self._caches else COMPILE_TIME
        left_out = set() if self._caches else self._found_cached
        return _compile_times(
            metric, {name: arm for name, arm in self._settled.items() if name not in left_out}
        )

    def _cached(self) -> frozenset[str]:
        """Name what is in the compilers' caches."""
        return frozenset(path.name for path in Path(self._context.job.cache_dir).iterdir())

    def _present(self, group: Sequence[str]) -> dict[str, SettledArm]:
        """Give the arms of a group that can be timed together, if there are two."""
        present = {name: self._settled[name] for name in group if name in self._settled}
        return present if BASELINE in self._settled and len(present) > 1 else {}

    def _time(self, action: Callable[[], T]) -> T | None:
        """Time arms; one that fails is out."""
        frames = capture.frames_seen()
        found: T | None = None
        try:
            found = action()
        except VisitError as failure:
            outcome = classify(failure, Stage.MEASURE)
            self._settled.pop(failure.arm)
            self.alone = [visit for visit in self.alone if visit.arm != failure.arm]
            result = self.results[failure.arm]
            self.results[failure.arm] = msgspec.structs.replace(result, outcome=outcome)
        self.compiled_late |= capture.frames_seen() > frames
        return found


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


def check(context: Context) -> Findings:
    """Compile the arms and compare what they compute with eager; time nothing."""
    loaded, reference = load(context)
    results: dict[str, ArmResult] = {}
    for name in context.job.arms:
        action = partial(arms.compile_arm, context, loaded, name, reference)
        results[name] = arm_result(name, attempt(context.stages, action))
    return _findings(context, loaded, results, context.job.arms)


def load(context: Context) -> tuple[LoadedModel, Reference]:
    """Load the case's model, and run what its arms are held to."""
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


def arm_result(name: str, arm: SettledArm | CompiledArm | Outcome) -> ArmResult:
    """Say how building an arm ended, and what was captured of it."""
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


def _visit_alone(context: Context, arm: SettledArm, rng: random.Random) -> tuple[Visit, ...]:
    """Time an arm before any later one is built, to be compared with its visits in blocks.

    Nothing if something else disturbed that, nor on an accelerator: there a sample ends with a
    wait for the device, and how many calls share one depends on arms that are not built yet.
    """
    if context.job.case.device != "cpu":
        return ()
    name, latency_s = arm.compiled.name, arm.warm_up.latency_s
    blocks = measure_blocks(
        arms.stopwatch(context),
        {name: arm.compiled.step.call},
        {name: latency_s},
        alone(latency_s, context.job.protocol),
        rng,
        machine(context),
    )
    return () if blocks.disturbed else blocks.visits


def _measure_together(
    context: Context,
    settled: dict[str, SettledArm],
    by_itself: Sequence[Visit],
    rng: random.Random,
) -> Blocks:
    """Visit the arms for short times, or for longer ones where arms don't bear short ones.

    The shorter visits are the more alike is what else goes on during those of two arms.
    """
    protocol = context.job.protocol
    calls = {name: settled[name].compiled.step.call for name in context.job.arms if name in settled}
    latencies_s = {name: settled[name].warm_up.latency_s for name in calls}
    threads = ArmThreads.now({name: settled[name].threads for name in calls})
    usual = visit_in_turn(context, calls, latencies_s, threads, protocol, rng)
    alone_found = latencies(LATENCY_ALONE, by_itself)
    found = [*alone_found, *latencies(LATENCY, usual.visits)]
    if usual.rested or not seems_to_interfere(found, usual.disturbed):
        return usual
    long = visit_in_turn(context, calls, latencies_s, threads, in_longer_runs(protocol), rng)
    same = agree(latencies(LATENCY, usual.calm), latencies(LATENCY, long.calm))
    return usual if same else long


def visit_in_turn(
    context: Context,
    calls: Mapping[str, Callable[[], object]],
    latencies_s: Mapping[str, float],
    threads: ArmThreads,
    protocol: Protocol,
    rng: random.Random,
) -> Blocks:
    """Visit arms in blocks, with rests in between where their threads don't fit together."""
    watch = arms.stopwatch(context)
    if threads.clash:
        watch, protocol = replace(watch, rest=threads.rest), after_a_rest(protocol)
    blocks = measure_blocks(watch, calls, latencies_s, protocol, rng, machine(context))
    return replace(blocks, rested=threads.clash)


def machine(context: Context) -> Machine:
    """Watch what else goes on on this machine and its accelerator."""
    return Machine(read_counters, context.device.is_disturbed)


def _unsettle(results: dict[str, ArmResult]) -> dict[str, ArmResult]:
    """Mark captured arms unsteady: something was compiled while one was being timed."""
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
    found = []
    for name, arm in settled.items():
        if arm.compile_s is None:
            continue
        spent_s = {metric: arm.compile_s}
        for phase, seconds in arm.compiled.phases_s.items():
            spent_s[COMPILE_PHASES[phase]] = seconds
        found += [
            Measurement(metric=what, unit="s", arm=name, samples=(seconds,))
            for what, seconds in spent_s.items()
        ]
    return found


def latencies(metric: str, visits: Sequence[Visit]) -> list[Measurement]:
    """Give the samples of each arm, with their blocks."""
    return [
        Measurement(
            metric=metric,
            unit="s",
            arm=arm,
            samples=tuple(sample for visit in own for sample in visit.samples_s),
            blocks=tuple(visit.block for visit in own for _ in visit.samples_s),
        )
        for arm, own in _by_arm(visits).items()
    ]


def _kernel_work(visits: Sequence[Visit]) -> list[Measurement]:
    """Give what the kernel did for each arm: served page faults, and whatever took it time."""
    found = []
    for arm, own in _by_arm(visits).items():
        blocks = tuple(visit.block for visit in own)
        faults = tuple(visit.minor_faults_per_call for visit in own)
        seconds = tuple(visit.kernel_s_per_call for visit in own)
        found += [
            Measurement(metric=MINOR_FAULTS, unit="1/call", arm=arm, samples=faults, blocks=blocks),
            Measurement(metric=KERNEL_TIME, unit="s/call", arm=arm, samples=seconds, blocks=blocks),
        ]
    return found


def _by_arm(visits: Sequence[Visit]) -> dict[str, list[Visit]]:
    found: dict[str, list[Visit]] = {}
    for visit in visits:
        found.setdefault(visit.arm, []).append(visit)
    return found
