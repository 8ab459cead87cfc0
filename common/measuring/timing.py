"""How calls are timed: bursts and blocks. Clocks and devices are passed in."""

from __future__ import annotations

import gc
import itertools
import math
import os
import resource
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.interfaces.outcome import BurstError, end_if_forked
from dynamometer.dynamo.clock import Clock
from dynamometer.results.statistics.disturbance import disturbed_blocks, disturbs
from dynamometer.results.values.metrics import COUNTED
from dynamometer.results.values.records import BlockLoad

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from dynamometer.common.machine.surroundings import Surroundings
    from dynamometer.results.values.cases import Protocol
    from dynamometer.results.values.records import Load

_LONG_CALL_S = 0.3
_MAX_REPEATS = 2
"""How often disturbed blocks are measured again (docs/measuring.md, step 6)."""

_LONGEST_REPEATING = 2.0
"""Blocks are repeated until this many times the budget is spent, or slow calls take for ever; where
calls are counted there is no budget."""

_STRETCH_S = 0.25
"""Blocks that are watched together: the counters go by ticks of 10 ms."""

_ALONE_S, _BLOCKS_ALONE = 0.2, 20


def _at_once(arm: str) -> None:
    """Let an arm be timed whatever others left behind."""


@dataclass(frozen=True)
class Stopwatch:
    """Times calls on a device, arm after arm.

    Attributes:
        synchronize: returns when the device has done everything it was given.
        wait: returns when an arm may be timed: what others left behind is idle.
        now: seconds from any fixed point.
    """

    synchronize: Callable[[], None]
    wait: Callable[[str], None] = _at_once
    now: Callable[[], float] = field(default_factory=lambda: Clock.now)

    def mean_s(self, call: Callable[[], object], calls: int) -> float:
        """Time a number of calls, the wait for the device included, in seconds per call."""
        started = self.now()
        for _ in range(calls):
            call()
        self.synchronize()
        return (self.now() - started) / calls


@dataclass(frozen=True)
class Burst:
    """One run of calls of one arm.

    Attributes:
        arm: whose calls.
        block: index of the block it belongs to.
        samples_s: seconds per call, each the mean over as many calls as last `sample_s`.
        calls: how many were counted.
        counted: what the operating system counted, per counted call, by name of its metric.
    """

    arm: str
    block: int
    samples_s: tuple[float, ...]
    calls: int
    counted: Mapping[str, float]


def burst_orders(arms: Sequence[str], rng: random.Random) -> tuple[list[str], list[str]]:
    """Draw the orders of two blocks: every arm once, then once more in reverse (AB BA or BA AB)."""
    order = list(arms)
    rng.shuffle(order)
    return order, order[::-1]


@dataclass(frozen=True)
class Blocks:
    """What was measured block by block; in each, every arm was timed once.

    Attributes:
        bursts: those of every block's last measuring, in their order.
        loads: what others did meanwhile, stretch by stretch.
        disturbed: the blocks that were disturbed whenever they were measured.
        repeats: how often a block was measured again.
        waited: whether bursts began when other arms' threads were idle.
    """

    bursts: tuple[Burst, ...] = ()
    loads: tuple[BlockLoad, ...] = ()
    disturbed: tuple[int, ...] = ()
    repeats: int = 0
    waited: bool = False

    @property
    def undisturbed(self) -> list[Burst]:
        """The bursts of blocks that nothing disturbed."""
        return [burst for burst in self.bursts if burst.block not in self.disturbed]

    def then(self, later: Blocks) -> Blocks:
        """Add blocks that were measured after these, numbered on from them."""
        start = 1 + max((burst.block for burst in self.bursts), default=-1)
        return Blocks(
            (*self.bursts, *(replace(each, block=start + each.block) for each in later.bursts)),
            (*self.loads, *(_moved(each, start) for each in later.loads)),
            (*self.disturbed, *(start + block for block in later.disturbed)),
            self.repeats + later.repeats,
            self.waited or later.waited,
        )


def _moved(found: BlockLoad, by: int) -> BlockLoad:
    return msgspec.structs.replace(found, first=found.first + by, last=found.last + by)


def measure_blocks(
    watch: Stopwatch,
    calls: Mapping[str, Callable[[], object]],
    latencies_s: Mapping[str, float],
    protocol: Protocol,
    rng: random.Random,
    surroundings: Surroundings,
) -> Blocks:
    """Time the arms block by block until the budget is spent.

    Args:
        watch: times the calls.
        calls: one step of each arm.
        latencies_s: a first estimate of each arm's seconds per call; the smallest fixes how many
            calls make a sample, and may be that of an arm that isn't here.
        protocol: lengths of bursts, number of blocks (which come in twos), budget.
        rng: draws the order of the bursts.
        surroundings: tells what else went on during a stretch of blocks, which is repeated if that
            disturbed.

    Raises:
        BurstError: an arm failed.
    """
    fastest_s = min(latencies_s.values())
    paces = {arm: pace(latencies_s[arm], fastest_s, protocol) for arm in calls}
    stretches = _Stretches(watch, calls, paces, protocol, rng)
    bursts: list[Burst] = []
    loads: list[BlockLoad] = []
    repeats = 0
    while not stretches.enough(bursts):
        first = bursts[-1].block + 1 if bursts else 0
        own, load, again = _measure_undisturbed(stretches, first, surroundings)
        loads.append(BlockLoad(first=first, last=own[-1].block, load=load))
        repeats += again * (own[-1].block + 1 - first)
        bursts += own
    return Blocks(tuple(bursts), tuple(loads), disturbed_blocks(loads), repeats)


def _measure_undisturbed(
    stretches: _Stretches, first: int, surroundings: Surroundings
) -> tuple[list[Burst], Load, int]:
    """Measure a stretch, again while something disturbs it, and say how often it was again."""
    repeats = 0
    while True:
        surroundings.begin()
        own = stretches.measure(first)
        load = surroundings.load()
        if not disturbs(load) or stretches.are_late() or repeats == _MAX_REPEATS:
            return own, load, repeats
        repeats += 1


class _Stretches:
    """Blocks one after the other, for as long as Linux's counters need to tell anything."""

    def __init__(
        self,
        watch: Stopwatch,
        calls: Mapping[str, Callable[[], object]],
        paces: Mapping[str, Pace],
        protocol: Protocol,
        rng: random.Random,
    ) -> None:
        self._budget_s = protocol.arm_budget_s * len(calls)
        self._watch, self._calls, self._paces = watch, calls, paces
        self._protocol, self._rng = protocol, rng
        self._started = watch.now()

    def are_late(self) -> bool:
        """Return whether there is no time left to measure any of them again."""
        counted = self._protocol.calls is not None
        return not counted and self._spent_s() > _LONGEST_REPEATING * self._budget_s

    def _spent_s(self) -> float:
        return self._watch.now() - self._started

    def enough(self, bursts: Sequence[Burst]) -> bool:
        """Return whether nothing more is to be measured after these."""
        rules, blocks = self._protocol, bursts[-1].block + 1 if bursts else 0
        if blocks < rules.min_blocks:
            return False
        if rules.calls is None:
            return blocks >= rules.max_blocks or self._spent_s() > self._budget_s
        counted = dict.fromkeys(self._calls, 0)
        for burst in bursts:
            counted[burst.arm] += burst.calls
        return min(counted.values()) >= rules.calls

    def measure(self, first: int) -> list[Burst]:
        """Measure blocks from one on, until they have taken a quarter of a second."""
        found: list[Burst] = []
        most = max(self._protocol.max_blocks, self._protocol.min_blocks)
        gc.collect()
        gc.disable()
        try:
            began_s = self._spent_s()
            for start in itertools.count(first, 2):
                for block, order in enumerate(burst_orders(list(self._calls), self._rng), start):
                    found += [self._time_burst(arm, block) for arm in order]
                if self._spent_s() - began_s >= _STRETCH_S or start + 2 >= most:
                    return found
        finally:
            gc.enable()
        return found

    def _time_burst(self, arm: str, block: int) -> Burst:
        call, pace = self._calls[arm], self._paces[arm]
        self._watch.wait(arm)
        own = os.getpid()
        try:
            return _time_burst(self._watch, arm, block, call, pace, self._protocol.burst_s)
        except BaseException as error:
            end_if_forked(own, error)
            raise BurstError(arm) from error


def alone(latency_s: float, protocol: Protocol) -> Protocol:
    """Shorten a protocol to what shows whether an arm's latency alone is that in blocks.

    Two bursts will do of calls that are long.
    """
    burst_s = max(protocol.burst_s, protocol.burst_calls * latency_s)
    blocks = min(_BLOCKS_ALONE, max(4, round(_ALONE_S / burst_s)))
    blocks = 2 if latency_s > _LONG_CALL_S else blocks
    return msgspec.structs.replace(protocol, min_blocks=blocks, max_blocks=blocks, calls=None)


def after_waiting(protocol: Protocol) -> Protocol:
    """Lengthen bursts that begin with cold caches and threads asleep.

    Eager beside ONNX Runtime is then within 10 % of what it is in a process of its own; with
    one discarded call it is up to 1.4 times as slow (docs/decisions/0007-error-bars.md).
    """
    return msgspec.structs.replace(protocol, discarded_s=0.030, burst_s=0.030)


@dataclass(frozen=True)
class Pace:
    """How an arm's bursts go.

    Attributes:
        discarded: calls that are thrown away.
        fewest: calls that count, at least.
        per_sample: calls of one sample.
    """

    discarded: int
    fewest: int
    per_sample: int


def pace(latency_s: float, fastest_s: float, protocol: Protocol) -> Pace:
    """Fix how an arm is timed.

    Args:
        latency_s: of the arm.
        fastest_s: of the fastest arm, which fixes the calls of a sample for all: a sample ends
            with a wait for the device, and arms that wait less often per call would look faster.
        protocol: lengths of bursts and samples.
    """
    share = math.ceil((protocol.calls or 0) / protocol.min_blocks)
    per_sample = math.ceil(protocol.sample_s / max(fastest_s, 1e-9))
    if latency_s > _LONG_CALL_S:
        # One call is long enough for others' threads to be idle, and more take minutes.
        return Pace(discarded=1, fewest=max(1, share), per_sample=per_sample)
    discarded = max(protocol.discarded_calls, round(protocol.discarded_s / max(latency_s, 1e-9)))
    return Pace(discarded, max(protocol.burst_calls, share), per_sample)


def _time_burst(
    watch: Stopwatch,
    arm: str,
    block: int,
    call: Callable[[], object],
    pace: Pace,
    burst_s: float,
) -> Burst:
    """Make one run: discarded warm-up calls, then the calls that count.

    The first calls after another arm find its threads spinning and its data in the caches, so they
    are discarded.
    """
    watch.mean_s(call, pace.discarded)
    before = resource.getrusage(resource.RUSAGE_SELF)
    samples: list[float] = []
    counted_s = 0.0
    while counted_s < burst_s or len(samples) * pace.per_sample < pace.fewest:
        samples.append(watch.mean_s(call, pace.per_sample))
        counted_s += samples[-1] * pace.per_sample
    after = resource.getrusage(resource.RUSAGE_SELF)
    made = len(samples) * pace.per_sample
    return Burst(
        arm=arm,
        block=block,
        samples_s=tuple(samples),
        calls=made,
        counted={each.name: (each.total(after) - each.total(before)) / made for each in COUNTED},
    )
