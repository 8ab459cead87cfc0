"""How calls are timed: settling, visits and blocks. Clocks and devices are passed in."""

from __future__ import annotations

import gc
import itertools
import math
import resource
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.interfaces.outcome import VisitError
from dynamometer.common.machine.surroundings import total
from dynamometer.results.values.metrics import COUNTED

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from dynamometer.common.machine.surroundings import Load, Surroundings
    from dynamometer.results.values.cases import Protocol

SETTLED_WITHIN = 0.01
"""Two successive windows whose medians agree this well count as steady (docs/measuring.md, step
5)."""

_WINDOW_S = 0.030
_WINDOW_CALLS = (3, 30)
_SLOW_CALL_S = 0.5
_LONG_CALL_S = 0.3
_SLOW_WINDOW_CALLS = 2
_MAX_REPEATS = 2
"""How often disturbed blocks are measured again (docs/measuring.md, step 6)."""

_LONGEST_REPEATING = 2.0
"""Blocks are repeated until this many times the budget is spent, or slow calls take for ever; where
calls are counted there is no budget."""

_STRETCH_S = 0.25
"""Blocks that are watched together: the counters go by ticks of 10 ms."""

_ALONE_S, _BLOCKS_ALONE = 0.2, 20
_MAX_WINDOWS = 12
_SETTLING_CAP_S = 2.0


def _at_once(arm: str) -> None:
    """Let an arm be visited whatever others left behind."""


@dataclass(frozen=True)
class Stopwatch:
    """Times calls on a device, arm after arm.

    Attributes:
        now: seconds from any fixed point.
        synchronize: returns when the device has done everything it was given.
        rest: returns when an arm may be visited: what others left behind has come to rest.
    """

    now: Callable[[], float]
    synchronize: Callable[[], None]
    rest: Callable[[str], None] = _at_once

    def mean_s(self, call: Callable[[], object], calls: int) -> float:
        """Time a number of calls, the wait for the device included, in seconds per call."""
        started = self.now()
        for _ in range(calls):
            call()
        self.synchronize()
        return (self.now() - started) / calls


@dataclass(frozen=True)
class WarmUp:
    """The calls of an arm from its first until its latency has settled.

    Attributes:
        total_s: seconds of all of them.
        calls: how many there were.
        latency_s: median of the last window.
        steady: whether two successive windows agreed and nothing was compiled in the last.
    """

    total_s: float
    calls: int
    latency_s: float
    steady: bool

    @property
    def excess_s(self) -> float:
        """Seconds these calls took beyond what as many steady ones would have."""
        return max(0.0, self.total_s - self.calls * self.latency_s)


def settle(watch: Stopwatch, call: Callable[[], object], compiled: Callable[[], int]) -> WarmUp:
    """Call until steady: windows' medians agree within 1 % and nothing new is compiled.

    Args:
        watch: times the calls.
        call: one step of the arm.
        compiled: counts what was compiled so far; a rise within a window makes it unsteady.
    """
    times = [watch.mean_s(call, 1)]
    second_s = watch.mean_s(call, 1)
    times.append(second_s)
    window = _window_calls(second_s)
    previous_s: float | None = None
    median_s, steady = second_s, False
    for index in range(_MAX_WINDOWS):
        before = compiled()
        times.extend(watch.mean_s(call, 1) for _ in range(window))
        median_s = statistics.median(times[-window:])
        agrees = previous_s is not None and abs(median_s / previous_s - 1) <= SETTLED_WITHIN
        steady = agrees and compiled() == before
        if steady or (index > 0 and sum(times[1:]) > _SETTLING_CAP_S):
            break
        previous_s = median_s
    return WarmUp(sum(times), len(times), median_s, steady)


def _window_calls(latency_s: float) -> int:
    if latency_s > _SLOW_CALL_S:
        return _SLOW_WINDOW_CALLS
    low, high = _WINDOW_CALLS
    return min(high, max(low, round(_WINDOW_S / max(latency_s, 1e-9))))


@dataclass(frozen=True)
class Visit:
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


def visit_orders(arms: Sequence[str], rng: random.Random) -> tuple[list[str], list[str]]:
    """Draw the orders of two blocks: every arm once, then once more in reverse (AB BA or BA AB)."""
    order = list(arms)
    rng.shuffle(order)
    return order, order[::-1]


@dataclass(frozen=True)
class Blocks:
    """What was measured block by block; in each, every arm was visited once.

    Attributes:
        visits: those of every block's last measuring, in their order.
        disturbed: the blocks that were disturbed whenever they were measured.
        repeats: how often a block was measured again.
        rested: whether visits began when other arms' threads had come to rest.
    """

    visits: tuple[Visit, ...] = ()
    disturbed: tuple[int, ...] = ()
    repeats: int = 0
    rested: bool = False

    @property
    def calm(self) -> list[Visit]:
        """The visits of blocks that nothing disturbed."""
        return [visit for visit in self.visits if visit.block not in self.disturbed]

    def then(self, later: Blocks) -> Blocks:
        """Add blocks that were measured after these, numbered on from them."""
        first = 1 + max((visit.block for visit in self.visits), default=-1)
        return Blocks(
            (*self.visits, *(replace(each, block=first + each.block) for each in later.visits)),
            (*self.disturbed, *(first + block for block in later.disturbed)),
            self.repeats + later.repeats,
            self.rested or later.rested,
        )


def measure_blocks(
    watch: Stopwatch,
    calls: Mapping[str, Callable[[], object]],
    latencies_s: Mapping[str, float],
    protocol: Protocol,
    rng: random.Random,
    surroundings: Surroundings,
) -> Blocks:
    """Visit the arms block by block until the budget is spent.

    Args:
        watch: times the calls.
        calls: one step of each arm.
        latencies_s: a first estimate of each arm's seconds per call; the smallest fixes how many
            calls make a sample, and may be that of an arm that isn't here.
        protocol: lengths of visits, number of blocks (which come in twos), budget.
        rng: draws the order of the visits.
        surroundings: tells what else went on during a stretch of blocks, which is repeated if that
            disturbed.

    Raises:
        VisitError: an arm failed.
    """
    fastest_s = min(latencies_s.values())
    paces = {arm: pace(latencies_s[arm], fastest_s, protocol) for arm in calls}
    stretches = _Stretches(watch, calls, paces, protocol, rng)
    visits: list[Visit] = []
    disturbed: list[int] = []
    calm: list[Load] = []
    repeats = 0
    while not stretches.enough(visits):
        first = visits[-1].block + 1 if visits else 0
        own, load, again = _measure_calmly(stretches, first, surroundings)
        blocks = range(first, own[-1].block + 1)
        repeats += again * len(blocks)
        visits += own
        if load.disturbs:
            disturbed += blocks
        else:
            calm.append(load)
    if total(calm).disturbs:  # what no single stretch shows, as counters go by ticks
        disturbed = sorted({visit.block for visit in visits})
    return Blocks(tuple(visits), tuple(disturbed), repeats)


def _measure_calmly(
    stretches: _Stretches, first: int, surroundings: Surroundings
) -> tuple[list[Visit], Load, int]:
    """Measure a stretch, again while something disturbs it, and say how often it was again."""
    repeats = 0
    while True:
        surroundings.begin()
        own = stretches.measure(first)
        load = surroundings.load()
        if not load.disturbs or stretches.are_late() or repeats == _MAX_REPEATS:
            return own, load, repeats
        repeats += 1


class _Stretches:
    """Blocks one after the other, for as long as the kernel's counters need to tell anything."""

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
        """Tell whether there is no time left to measure any of them again."""
        counted = self._protocol.calls is not None
        return not counted and self._spent_s() > _LONGEST_REPEATING * self._budget_s

    def _spent_s(self) -> float:
        return self._watch.now() - self._started

    def enough(self, visits: Sequence[Visit]) -> bool:
        """Tell whether nothing more is to be measured after these."""
        rules, blocks = self._protocol, visits[-1].block + 1 if visits else 0
        if blocks < rules.min_blocks:
            return False
        if rules.calls is None:
            return blocks >= rules.max_blocks or self._spent_s() > self._budget_s
        counted = dict.fromkeys(self._calls, 0)
        for visit in visits:
            counted[visit.arm] += visit.calls
        return min(counted.values()) >= rules.calls

    def measure(self, first: int) -> list[Visit]:
        """Measure blocks from one on, until they have taken a quarter of a second."""
        found: list[Visit] = []
        most = max(self._protocol.max_blocks, self._protocol.min_blocks)
        gc.collect()
        gc.disable()
        try:
            began_s = self._spent_s()
            for start in itertools.count(first, 2):
                for block, order in enumerate(visit_orders(list(self._calls), self._rng), start):
                    found += [self._visit(arm, block) for arm in order]
                if self._spent_s() - began_s >= _STRETCH_S or start + 2 >= most:
                    return found
        finally:
            gc.enable()
        return found

    def _visit(self, arm: str, block: int) -> Visit:
        call, pace = self._calls[arm], self._paces[arm]
        self._watch.rest(arm)
        try:
            return _visit(self._watch, arm, block, call, pace, self._protocol.visit_s)
        except BaseException as error:
            raise VisitError(arm) from error


def alone(latency_s: float, protocol: Protocol) -> Protocol:
    """Shorten a protocol to what shows whether an arm's latency alone is that in blocks.

    Two visits will do of calls that are long.
    """
    visit_s = max(protocol.visit_s, protocol.visit_calls * latency_s)
    blocks = min(_BLOCKS_ALONE, max(4, round(_ALONE_S / visit_s)))
    blocks = 2 if latency_s > _LONG_CALL_S else blocks
    return msgspec.structs.replace(protocol, min_blocks=blocks, max_blocks=blocks, calls=None)


def after_a_rest(protocol: Protocol) -> Protocol:
    """Lengthen visits that begin with cold caches and threads asleep.

    Eager beside ONNX Runtime is then within 10 % of what it is in a process of its own; with a
    lead-in of one call it is up to 1.4 times as slow (docs/decisions/0007-error-bars.md).
    """
    return msgspec.structs.replace(protocol, lead_in_s=0.030, visit_s=0.030)


@dataclass(frozen=True)
class Pace:
    """How an arm's visits go.

    Attributes:
        lead_in: calls that are thrown away.
        fewest: calls that count, at least.
        per_sample: calls of one sample.
    """

    lead_in: int
    fewest: int
    per_sample: int


def pace(latency_s: float, fastest_s: float, protocol: Protocol) -> Pace:
    """Fix how an arm is visited.

    Args:
        latency_s: of the arm.
        fastest_s: of the fastest arm, which fixes the calls of a sample for all: a sample ends
            with a wait for the device, and arms that wait less often per call would look faster.
        protocol: lengths of visits and samples.
    """
    share = math.ceil((protocol.calls or 0) / protocol.min_blocks)
    per_sample = math.ceil(protocol.sample_s / max(fastest_s, 1e-9))
    if latency_s > _LONG_CALL_S:
        # One call is long enough for others' threads to come to rest, and more take minutes.
        return Pace(lead_in=1, fewest=max(1, share), per_sample=per_sample)
    lead_in = max(protocol.lead_in_calls, round(protocol.lead_in_s / max(latency_s, 1e-9)))
    return Pace(lead_in, max(protocol.visit_calls, share), per_sample)


def _visit(
    watch: Stopwatch,
    arm: str,
    block: int,
    call: Callable[[], object],
    pace: Pace,
    visit_s: float,
) -> Visit:
    """Make one run: a lead-in that is thrown away, then the calls that count.

    The lead-in is there because the first calls after another arm find its threads spinning and
    its data in the caches.
    """
    watch.mean_s(call, pace.lead_in)
    before = resource.getrusage(resource.RUSAGE_SELF)
    samples: list[float] = []
    counted_s = 0.0
    while counted_s < visit_s or len(samples) * pace.per_sample < pace.fewest:
        samples.append(watch.mean_s(call, pace.per_sample))
        counted_s += samples[-1] * pace.per_sample
    after = resource.getrusage(resource.RUSAGE_SELF)
    made = len(samples) * pace.per_sample
    return Visit(
        arm=arm,
        block=block,
        samples_s=tuple(samples),
        calls=made,
        counted={each.name: (each.total(after) - each.total(before)) / made for each in COUNTED},
    )
