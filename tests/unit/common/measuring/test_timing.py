from __future__ import annotations

import gc
import mmap
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest
from fakes import FakeClock, FakeSurroundings

from dynamometer.common.interfaces.outcome import BurstError
from dynamometer.common.measuring.timing import (
    Blocks,
    Burst,
    Stopwatch,
    alone,
    burst_orders,
    measure_blocks,
)
from dynamometer.results.statistics.disturbance import disturbed_blocks
from dynamometer.results.values.cases import Protocol
from dynamometer.results.values.metrics import MINOR_FAULTS, SYSTEM_TIME
from dynamometer.results.values.records import BlockLoad, Load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAST_S = 2.0**-6
"""Seconds of a quick call: a power of two, so that sums are exact; windows of 3 calls."""
SLOW_S = 2.0


@pytest.fixture(autouse=True)
def small_heap() -> Iterator[None]:
    """Collect garbage in no time, whatever other tests have imported."""
    gc.freeze()
    yield
    gc.unfreeze()


def test_a_stopwatch_gives_seconds_per_call(clock: FakeClock, watch: Stopwatch) -> None:
    """The mean over the calls, with one wait for the device at the end of all of them."""
    assert watch.mean_s(clock.step(lambda index: (index + 1) * FAST_S), 3) == 2 * FAST_S
    assert (clock.calls, clock.synchronized) == (3, 1)


def test_the_wait_for_the_device_is_timed() -> None:
    """What a device does after a call has returned belongs to the call."""
    clock = FakeClock()

    def wait() -> None:
        clock.time_s += 1.0

    watch = Stopwatch(now=clock.now, synchronize=wait)
    assert watch.mean_s(clock.step(lambda index: 0.0), 1) == 1.0


def test_visit_orders_are_balanced() -> None:
    """Two arms are timed AB BA or BA AB, and both orders are drawn."""
    rng = random.Random(0)
    drawn = {" ".join(map("".join, burst_orders("AB", rng))) for _ in range(50)}
    assert drawn == {"AB BA", "BA AB"}


def protocol(**fields: float) -> Protocol:
    """Two blocks of bursts of at least eight calls of `FAST_S`, each a sample of two calls."""
    defaults: dict[str, float] = {
        "arm_budget_s": 0.0,
        "min_blocks": 2,
        "max_blocks": 40,
        "discarded_s": 3 * FAST_S,
        "burst_s": 8 * FAST_S,
        "sample_s": 2 * FAST_S,
    }
    return Protocol(**{**defaults, **fields})  # type: ignore[arg-type]  # untyped


def measure(
    watch: Stopwatch,
    calls: dict[str, Callable[[], object]],
    latencies_s: dict[str, float],
    rules: Protocol,
) -> list[Burst]:
    """Time arms on a machine that nothing disturbs."""
    blocks = measure_blocks(watch, calls, latencies_s, rules, random.Random(0), FakeSurroundings())
    assert (blocks.disturbed, blocks.repeats) == ((), 0)
    return list(blocks.bursts)


def burst(watch: Stopwatch, calls: dict[str, Callable[[], object]], rules: Protocol) -> list[Burst]:
    """Time arms whose calls take `FAST_S`."""
    return measure(watch, calls, dict.fromkeys(calls, FAST_S), rules)


def test_the_lead_in_is_thrown_away(clock: FakeClock, watch: Stopwatch) -> None:
    """Slow calls right after another arm leave no trace in the samples."""
    last = ""
    since = 0

    def step(arm: str) -> Callable[[], None]:
        def call() -> None:
            nonlocal last, since
            since = since + 1 if arm == last else 1
            last = arm
            clock.time_s += 1.0 if since <= 3 else FAST_S

        return call

    bursts = burst(watch, {"A": step("A"), "B": step("B")}, protocol(min_blocks=6))
    # Of AB BA the second block begins with the arm that ended the first: its first calls
    # are discarded as well.
    assert {sample for each in bursts for sample in each.samples_s} == {FAST_S}
    assert clock.time_s > 3 * 3.0


def test_the_lead_in_has_a_smallest_number_of_calls(clock: FakeClock, watch: Stopwatch) -> None:
    """However short the discarded warm-up calls's time, that many calls are thrown away."""
    rules = protocol(discarded_s=0.0, discarded_calls=5)
    bursts = burst(watch, {"A": clock.step(lambda index: FAST_S)}, rules)
    assert clock.calls == sum(5 + each.calls for each in bursts)


def test_a_visit_lasts_as_long_as_asked(clock: FakeClock, watch: Stopwatch) -> None:
    """Calls are counted until they add up to `burst_s`, and no further."""
    (first, _) = burst(watch, {"A": clock.step(lambda index: FAST_S)}, protocol())
    assert first.calls * FAST_S == 8 * FAST_S
    assert sum(first.samples_s) * 2 == 8 * FAST_S


def test_a_sample_is_the_mean_of_several_calls(clock: FakeClock, watch: Stopwatch) -> None:
    """Calls that are short are timed together, so that a sample lasts `sample_s`."""
    alternating = clock.step(lambda index: FAST_S * (0.5 + index % 2))
    rules = protocol(sample_s=4 * FAST_S, discarded_s=4 * FAST_S)
    bursts = burst(watch, {"A": alternating}, rules)
    assert {len(each.samples_s) for each in bursts} == {2}
    assert {each.calls for each in bursts} == {8}
    assert {sample for each in bursts for sample in each.samples_s} == {FAST_S}


@pytest.mark.parametrize(
    ("fields", "counted"), [({}, 1), ({"burst_calls": 3}, 3), ({"burst_calls": 5}, 5)], ids=str
)
def test_slow_calls_are_counted_a_few_times_a_visit(
    clock: FakeClock, watch: Stopwatch, fields: dict[str, int], counted: int
) -> None:
    """Calls longer than the burst are counted `burst_calls` times, once unless told."""
    rules = protocol(burst_s=0.125, sample_s=0.25, **fields)
    calls = {"A": clock.step(lambda index: 0.25)}
    bursts = measure(watch, calls, {"A": 0.25}, rules)
    assert [each.samples_s for each in bursts] == [(0.25,) * counted] * 2
    assert [each.calls for each in bursts] == [counted] * 2


def test_long_calls_are_led_in_and_counted_once(clock: FakeClock, watch: Stopwatch) -> None:
    """Of calls that last seconds a burst throws away one and counts one, or it takes minutes."""
    durations = iter([9.0, SLOW_S] * 2)
    calls = {"A": clock.step(lambda index: next(durations))}
    bursts = measure(watch, calls, {"A": SLOW_S}, protocol())
    assert [each.samples_s for each in bursts] == [(SLOW_S,)] * 2


def test_samples_of_several_calls_count_as_that_many(clock: FakeClock, watch: Stopwatch) -> None:
    """The smallest number of a burst is one of calls, and a sample is never cut short."""
    rules = protocol(burst_s=0.0, burst_calls=3, max_blocks=1)
    bursts = burst(watch, {"A": clock.step(lambda index: FAST_S)}, rules)
    assert [(len(each.samples_s), each.calls) for each in bursts] == [(2, 4), (2, 4)]


def test_every_block_visits_every_arm_once(clock: FakeClock, watch: Stopwatch) -> None:
    """Blocks are numbered, and balanced two by two."""
    calls = {arm: clock.step(lambda index: FAST_S) for arm in "ABC"}
    bursts = burst(watch, calls, protocol(min_blocks=4))
    by_block = [[each.arm for each in bursts if each.block == block] for block in range(4)]
    assert len(bursts) == 4 * 3
    assert all(sorted(block) == list("ABC") for block in by_block)
    assert (by_block[1], by_block[3]) == (by_block[0][::-1], by_block[2][::-1])


def test_blocks_end_with_the_budget(clock: FakeClock, watch: Stopwatch) -> None:
    """Blocks go on until the arms' budgets together are spent, and no two are cut short."""
    two_s = 2 * 2 * (3 + 8) * FAST_S
    calls = {arm: clock.step(lambda index: FAST_S) for arm in "AB"}
    bursts = burst(watch, calls, protocol(arm_budget_s=2.5 * two_s / 2))
    assert bursts[-1].block == 5
    assert len(bursts) == 3 * 4


def test_blocks_are_capped(clock: FakeClock, watch: Stopwatch) -> None:
    """A budget that is never spent ends with `max_blocks`."""
    calls = {"A": clock.step(lambda index: FAST_S)}
    bursts = burst(watch, calls, protocol(arm_budget_s=1e9, max_blocks=6))
    assert len(bursts) == 6


def counted(bursts: list[Burst], arm: str) -> int:
    """Add up the calls of an arm."""
    return sum(each.calls for each in bursts if each.arm == arm)


@pytest.mark.parametrize("budget_s", [0.0, 1e9])
def test_calls_take_the_place_of_budget_and_cap(
    clock: FakeClock, watch: Stopwatch, budget_s: float
) -> None:
    """`-n` is kept, and is enough, whatever budget and cap say."""
    calls = {"A": clock.step(lambda index: FAST_S)}
    rules = protocol(calls=100, arm_budget_s=budget_s, min_blocks=6, max_blocks=2)
    bursts = burst(watch, calls, rules)
    # Six bursts of the 17 calls that add up to 100, each rounded up to samples of two.
    assert [each.calls for each in bursts] == [18] * 6
    assert 100 <= counted(bursts, "A") < 100 + 6 * 2


def test_every_arm_has_the_calls(clock: FakeClock, watch: Stopwatch) -> None:
    """An arm whose calls are slow has as many, to a whole sample; a quick one may have more."""
    calls = {
        "quick": clock.step(lambda index: FAST_S),
        "slow": clock.step(lambda index: SLOW_S),
    }
    latencies = {"quick": FAST_S, "slow": SLOW_S}
    rules = protocol(calls=10, max_blocks=1)
    bursts = measure(watch, calls, latencies, rules)
    assert (counted(bursts, "quick"), counted(bursts, "slow")) == (2 * 8, 2 * 6)


def test_few_calls_cut_neither_blocks_nor_visits_short(clock: FakeClock, watch: Stopwatch) -> None:
    """However few calls are asked for, there are `min_blocks` blocks of whole bursts."""
    calls = {arm: clock.step(lambda index: FAST_S) for arm in "AB"}
    bursts = burst(watch, calls, protocol(calls=1, arm_budget_s=1e9, min_blocks=6))
    assert bursts[-1].block == 5
    assert [each.calls for each in bursts] == [8] * 3 * 4


def test_no_collection_within_a_block(clock: FakeClock, watch: Stopwatch) -> None:
    """The garbage collector is off while arms are timed and on again afterwards."""
    enabled = []

    def call() -> None:
        enabled.append(gc.isenabled())
        clock.time_s += FAST_S

    burst(watch, {"A": call}, protocol())
    assert set(enabled) == {False}
    assert gc.isenabled()


def test_visits_carry_what_the_kernel_counted(clock: FakeClock, watch: Stopwatch) -> None:
    """Touching fresh pages shows as faults per call; kernel time is never negative."""
    kept = []

    def call() -> None:
        kept.append(mmap.mmap(-1, 64 * mmap.PAGESIZE))  # malloc might give pages touched before
        kept[-1].write(b"x" * 64 * mmap.PAGESIZE)
        clock.time_s += FAST_S

    bursts = burst(watch, {"A": call}, protocol())
    assert max(each.counted[MINOR_FAULTS.name] for each in bursts) > 1
    assert all(each.counted[SYSTEM_TIME.name] >= 0 for each in bursts)


CALM, BUSY = Load(1.0, 0.0), Load(1.0, 1.0)


@pytest.mark.parametrize(
    ("script", "disturbed", "repeats"),
    [
        ([], (), 0),
        ([BUSY], (), 2),
        ([BUSY, BUSY], (), 4),
        ([BUSY, BUSY, BUSY], (0, 1), 4),
        ([CALM, BUSY, CALM, BUSY, BUSY, BUSY], (4, 5), 6),
        ([Load(0.1, 0.03, resolution_s=0.028)] * 3, (0, 1, 2, 3, 4, 5), 0),
    ],
    ids=["calm", "once", "twice", "always", "twice-in-a-run", "only-together"],
)
def test_disturbed_blocks_are_measured_again(
    clock: FakeClock,
    watch: Stopwatch,
    script: list[Load],
    disturbed: tuple[int, ...],
    repeats: int,
) -> None:
    """At most twice; a block that never was calm is kept and named. Each is there once.

    What the counters' ticks hide in each block is seen in all of them together.
    """
    calls = {arm: clock.step(lambda index: FAST_S) for arm in "AB"}
    surroundings = FakeSurroundings(list(script))
    rules = protocol(min_blocks=6, arm_budget_s=3.0)
    rules = msgspec.structs.replace(rules, max_blocks=6)
    latencies = dict.fromkeys(calls, FAST_S)
    found = measure_blocks(watch, calls, latencies, rules, random.Random(0), surroundings)
    assert (found.disturbed, found.repeats) == (disturbed, repeats)
    assert disturbed_blocks(found.loads) == disturbed
    assert [(each.first, each.last) for each in found.loads] == [(0, 1), (2, 3), (4, 5)]
    assert surroundings.begun == 3 + repeats // 2
    assert [burst.block for burst in found.bursts] == [block for block in range(6) for _ in "AB"]


def test_repeating_ends_with_the_time(clock: FakeClock, watch: Stopwatch) -> None:
    """On a machine that is always busy slow calls don't take thrice as long."""
    calls = {"A": clock.step(lambda index: SLOW_S)}
    surroundings = FakeSurroundings([BUSY] * 99)
    rules = protocol(min_blocks=6, arm_budget_s=1.0)
    found = measure_blocks(watch, calls, {"A": SLOW_S}, rules, random.Random(0), surroundings)
    assert (found.disturbed, found.repeats) == (tuple(range(6)), 0)


def test_where_calls_are_counted_there_is_time_to_repeat(
    clock: FakeClock, watch: Stopwatch
) -> None:
    """However long they take."""
    calls = {"A": clock.step(lambda index: SLOW_S)}
    rules = protocol(min_blocks=6, arm_budget_s=1.0, calls=6)
    surroundings = FakeSurroundings([BUSY])
    found = measure_blocks(watch, calls, {"A": SLOW_S}, rules, random.Random(0), surroundings)
    assert (found.disturbed, found.repeats) == ((), 2)


@pytest.mark.parametrize("error", [ValueError("no more"), SystemExit(3)])
def test_an_arm_that_fails_is_named(
    error: BaseException, clock: FakeClock, watch: Stopwatch
) -> None:
    """And what it raised; garbage is collected again."""

    def fails() -> None:
        raise error

    calls = {"A": clock.step(lambda index: FAST_S), "B": fails}
    with pytest.raises(BurstError) as raised:
        measure(watch, calls, dict.fromkeys(calls, FAST_S), protocol())
    assert (raised.value.arm, raised.value.__cause__) == ("B", error)
    assert gc.isenabled()


def test_every_burst_begins_with_a_wait(clock: FakeClock, watch: Stopwatch) -> None:
    """Of the arm that is timed next."""
    calls = {arm: clock.step(lambda index: FAST_S) for arm in "AB"}
    waited: list[tuple[str, int]] = []
    watch = replace(watch, wait=lambda arm: waited.append((arm, clock.calls)))
    rules = protocol(min_blocks=6, arm_budget_s=0.1)
    latencies = dict.fromkeys(calls, FAST_S)
    found = measure_blocks(watch, calls, latencies, rules, random.Random(0), FakeSurroundings())
    assert [arm for arm, _ in waited] == [burst.arm for burst in found.bursts]
    assert len({made for _, made in waited}) == len(waited)


@pytest.mark.parametrize(("latency_s", "blocks"), [(FAST_S, 4), (SLOW_S, 2)])
def test_alone_is_a_few_visits(
    latency_s: float, blocks: int, clock: FakeClock, watch: Stopwatch
) -> None:
    """Whatever a case's own budget, and fewer of calls that are long."""
    calls = {"A": clock.step(lambda index: latency_s)}
    rules = alone(latency_s, protocol(arm_budget_s=1e6, calls=10_000))
    bursts = measure(watch, calls, {"A": latency_s}, rules)
    assert [burst.block for burst in bursts] == list(range(blocks))


def test_a_sample_is_fixed_by_an_arm_elsewhere(clock: FakeClock, watch: Stopwatch) -> None:
    """An arm that is timed apart has as many calls to a sample as it had beside the others."""
    calls = {"A": clock.step(lambda index: FAST_S)}
    bursts = measure(watch, calls, {"A": FAST_S, "": FAST_S / 4}, protocol())
    assert all(burst.calls == 8 * len(burst.samples_s) for burst in bursts)


def test_blocks_are_numbered_on_from_others() -> None:
    """Those of two groups of arms are told apart, the disturbed among them too."""

    def blocks(arm: str, *disturbed: int) -> Blocks:
        bursts = (Burst(arm, block, (1.0,), 1, {}) for block in (0, 1))
        loads = (BlockLoad(first=0, last=1, load=CALM),)
        return Blocks(tuple(bursts), loads, disturbed, len(disturbed))

    found = Blocks().then(blocks("A", 1)).then(blocks("B", 0))
    assert [(each.arm, each.block) for each in found.bursts] == [
        ("A", 0), ("A", 1), ("B", 2), ("B", 3),
    ]  # fmt: skip
    assert (found.disturbed, found.repeats) == ((1, 2), 2)
    assert [each.block for each in found.undisturbed] == [0, 3]
    assert [(each.first, each.last) for each in found.loads] == [(0, 1), (2, 3)]
