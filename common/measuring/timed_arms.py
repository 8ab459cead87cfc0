"""The arms of one worker: built one after the other, then timed together."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dynamometer.common.interfaces.outcome import BurstError, attempt, classify
from dynamometer.common.machine.surroundings import Machine, read_counters
from dynamometer.common.machine.temporary import TEMPORARY
from dynamometer.common.measuring import arms
from dynamometer.common.measuring.arms import CompiledArm, WarmArm
from dynamometer.common.measuring.blame import attempt_arm
from dynamometer.common.measuring.measurements import compile_times
from dynamometer.common.measuring.threads import ArmThreads
from dynamometer.common.measuring.timing import Blocks, after_waiting, alone, measure_blocks
from dynamometer.common.randomness import seeded_rng
from dynamometer.dynamo import state
from dynamometer.dynamo.capture import capture, internals
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.metrics import COMPILE_TIME, COMPILE_TIME_WARM
from dynamometer.results.values.records import PASSED, ArmResult, Outcome, Stage, Status

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.measuring.timing import Burst
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.cases import Protocol
    from dynamometer.results.values.records import Measurement

T = TypeVar("T")

_MOVED = "it isn't timed: eager computes something else by now"

_PADDING_BLOCKS = 64
_PADDING_BYTES = (16, 65_536)


class TimedArms:
    """The arms of one process: built one after the other, then timed together.

    Attributes:
        rng: what is random here is drawn from.
        results: how building each arm ended, and timing it.
        alone: bursts of each arm before the next was built.
        compiled_late: whether something was compiled while an arm was being timed.
    """

    def __init__(self, context: Context) -> None:
        """Take note of what is in the compilers' caches before the first arm is built."""
        self.rng = seeded_rng(context.job.seed, context.job.replicate, context.job.case.id)
        self.results: dict[str, ArmResult] = {}
        self.alone: list[Burst] = []
        self.compiled_late = False
        self._context = context
        self._is_warm = any(Path(context.job.cache_dir).iterdir())
        self._cached_before: frozenset[str] | None = None
        self._warm: dict[str, WarmArm] = {}
        self._shares_caches: set[str] = set()
        self._padding: list[bytearray] = []

    def build(self, name: str, loaded: LoadedModel, reference: Reference) -> None:
        """Build an arm on a padded heap; if it does what eager does, time it alone."""
        self._padding.extend(pad_heap(self.rng))
        cached = self._cached()
        if self._cached_before is None:  # eager may have compiled something of its own by now
            self._cached_before = cached
        action = partial(_build, self._context, loaded, name, reference)
        arm = attempt_arm(self._context, name, reference, action)
        self.results[name] = arm_result(name, arm)
        if not isinstance(arm, WarmArm) or self.results[name].outcome != PASSED:
            return
        self._warm[name] = arm
        uses_caches = arm.compiled.cached_graphs or self._cached() - cached
        if uses_caches and cached - self._cached_before:
            self._shares_caches.add(name)
        with self._context.stages.at(Stage.MEASURE, name):
            frames = capture.frames_seen()
            bursts = self._time(partial(_time_alone, self._context, arm, self.rng))
            self.alone += bursts if bursts and capture.frames_seen() == frames else ()

    def forgo_timing(self, reference: Reference) -> None:
        """Time no arm where eager has become another: what that takes is no measure of them."""
        if reference.constancy.has_moved:
            outcome = Outcome(status=Status.SKIP, stage=Stage.MEASURE, reason=_MOVED)
            for name in [each for each in self._warm if each != BASELINE]:
                self._drop(name, outcome)

    def time_together(self, groups: Sequence[Sequence[str]]) -> Blocks:
        """Time the arms of each group in blocks; without one that fails, if others are left."""
        blocks = Blocks()
        with self._context.stages.at(Stage.MEASURE):
            for group in groups:
                found = None
                while found is None and (present := self._present(group)):
                    action = partial(_measure_together, self._context, present, self.rng)
                    found = self._time(action)
                blocks = blocks.then(found or Blocks())
        self._padding.clear()
        return blocks

    def time_guards(self) -> None:
        """Add to what was captured of an arm how long its steps take to check guards."""
        for name, arm in self._warm.items():
            seen = self.results[name].capture
            if seen is None:
                continue
            with self._context.stages.at(Stage.MEASURE, name):
                action = partial(internals.lookup_s, arm.compiled.step.call)
                with state.keeping_settings():
                    spent_s = attempt(self._context.stages, action)
            if isinstance(spent_s, float):
                timed = msgspec.structs.replace(seen, guards_s=spent_s)
                self.results[name] = msgspec.structs.replace(self.results[name], capture=timed)

    def look_after(self, loaded: LoadedModel, reference: Reference) -> None:
        """Fail arms that are wrong by now, or do something to the others.

        No arm is to blame where eager comes to something else by now, as a model that counts calls.

        Args:
            loaded: the model that they were compiled from copies of.
            reference: what they are held to.
        """
        changed = BASELINE not in self._warm
        for name in sorted(self._warm, key=lambda each: each != BASELINE):
            with self._context.stages.at(Stage.RUN, name):
                action = partial(
                    _look_once_more, self._context, self._warm[name], loaded,
                    None if changed else reference,
                )  # fmt: skip
                found = attempt(self._context.stages, action)
            result = self.results[name]
            if name == BASELINE:
                changed = isinstance(found, Outcome)
            elif isinstance(found, Outcome):
                self._drop(name, found)
            else:
                now = arm_result(name, found)
                self.results[name] = msgspec.structs.replace(now, capture=result.capture)

    def compile_times(self) -> list[Measurement]:
        """Return compile times; cold ones but of arms whose compiler had been used by others.

        It finds more than whole graphs: Inductor takes kernels of other graphs, too.
        """
        metric = COMPILE_TIME_WARM if self._is_warm else COMPILE_TIME
        left_out = set() if self._is_warm else self._shares_caches
        return compile_times(
            metric, {name: arm for name, arm in self._warm.items() if name not in left_out}
        )

    @property
    def compiled_always(self) -> frozenset[str]:
        """The arms that compiled something in every window of their warm-up."""
        return frozenset(name for name, arm in self._warm.items() if arm.warm_up.compiled_always)

    def _cached(self) -> frozenset[str]:
        """Name the files in the compilers' caches."""
        root = Path(self._context.job.cache_dir)
        walked = os.walk(root, onerror=_unless_gone)
        files = (Path(folder, name).relative_to(root) for folder, _, names in walked
                 for name in names)  # fmt: skip
        return frozenset(str(each) for each in files if each.parts[0] != TEMPORARY)

    def _present(self, group: Sequence[str]) -> dict[str, WarmArm]:
        """Return the arms of a group that can be timed together, if there are two."""
        present = {name: self._warm[name] for name in group if name in self._warm}
        return present if BASELINE in self._warm and len(present) > 1 else {}

    def _time(self, action: Callable[[], T]) -> T | None:
        """Time arms; one that fails is out."""
        frames = capture.frames_seen()
        found: T | None = None
        try:
            with state.keeping_settings():  # a model may leave some otherwise in each call
                found = action()
        except BurstError as failure:
            self._drop(failure.arm, classify(failure, Stage.MEASURE))
        self.compiled_late |= capture.frames_seen() > frames
        return found

    def _drop(self, name: str, outcome: Outcome) -> None:
        """Let an arm end so, without what was timed of it alone."""
        self._warm.pop(name)
        self.alone = [burst for burst in self.alone if burst.arm != name]
        self.results[name] = msgspec.structs.replace(self.results[name], outcome=outcome)


def _unless_gone(error: OSError) -> None:
    """Pass over what vanishes meanwhile."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _build(context: Context, loaded: LoadedModel, name: str, reference: Reference) -> WarmArm:
    with context.guarding(name):
        compiled = arms.compile_arm(context, loaded, name, reference)
    with context.guarding(name):  # another number of threads has Dynamo compile anew: before timing
        warm = arms.warm_up_arm(context, compiled)
        compiled = arms.check_again(context, warm.compiled, reference, warm.calls)
        return replace(warm, compiled=compiled)


def _look_once_more(
    context: Context, arm: WarmArm, loaded: LoadedModel, reference: Reference | None
) -> WarmArm:
    """Compare an arm that was timed; without a reference it is only called."""
    with context.guarding(arm.compiled.name):
        if reference is not None:
            return replace(arm, compiled=arms.check_at_last(arm.compiled, loaded, reference))
        arm.compiled.step.call()
        checks = arm.compiled.checks.but_for("calls after the timing: eager differs by then")
        return replace(arm, compiled=replace(arm.compiled, checks=checks))


def pad_heap(rng: random.Random) -> list[bytearray]:
    """Take a random number of blocks of random size, so that no two replicates share a layout.

    Arms built first and second lie at different addresses; where that is the same in every
    replicate, identical arms differ by up to 0.6 % and no number of replicates shows it.
    """
    low, high = _PADDING_BYTES
    return [bytearray(rng.randint(low, high)) for _ in range(rng.randrange(_PADDING_BLOCKS))]


def arm_result(name: str, arm: WarmArm | CompiledArm | Outcome) -> ArmResult:
    """Return how building an arm ended, and what was captured of it."""
    if isinstance(arm, Outcome):
        return ArmResult(arm=name, outcome=arm)
    compiled = arm.compiled if isinstance(arm, WarmArm) else arm
    return ArmResult(
        arm=name,
        outcome=compiled.outcome,
        capture=compiled.capture,
        max_error=compiled.checks.max_error,
        checked_calls=compiled.checks.calls,
        unchecked=compiled.checks.reservations,
        choices=compiled.choices,
        steady=arm.warm_up.steady if isinstance(arm, WarmArm) else None,
    )


def _time_alone(context: Context, arm: WarmArm, rng: random.Random) -> tuple[Burst, ...]:
    """Time an arm before any later one is built, to be compared with its bursts in blocks.

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
    return () if blocks.disturbed else blocks.bursts


def _measure_together(context: Context, warm: dict[str, WarmArm], rng: random.Random) -> Blocks:
    """Time the arms for short times: what else goes on during those of two is then alike."""
    calls = {name: warm[name].compiled.step.call for name in context.job.arms if name in warm}
    latencies_s = {name: warm[name].warm_up.latency_s for name in calls}
    threads = ArmThreads.now({name: warm[name].threads for name in calls})
    return time_in_blocks(context, calls, latencies_s, threads, context.job.protocol, rng)


def time_in_blocks(
    context: Context,
    calls: Mapping[str, Callable[[], object]],
    latencies_s: Mapping[str, float],
    threads: ArmThreads,
    protocol: Protocol,
    rng: random.Random,
) -> Blocks:
    """Time arms in blocks; where their threads don't fit together, wait until others are idle."""
    watch = arms.stopwatch(context)
    if threads.clash:
        watch, protocol = replace(watch, wait=threads.wait), after_waiting(protocol)
    blocks = measure_blocks(watch, calls, latencies_s, protocol, rng, machine(context))
    return replace(blocks, waited=threads.clash)


def machine(context: Context) -> Machine:
    """Watch what else goes on on this machine and its accelerator."""
    return Machine(read_counters, context.device.is_disturbed)
