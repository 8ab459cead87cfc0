"""When the warm-up of an arm ends, and what it says of it; on a simulated clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dynamometer.common.measuring.warm_up import warm_up_to_steady

if TYPE_CHECKING:
    from fakes import FakeClock

    from dynamometer.common.measuring.timing import Stopwatch

FAST_S = 2.0**-6
"""Seconds of a quick call: a power of two, so that sums are exact; windows of 3 calls."""
SLOW_S = 2.0


def nothing_compiled() -> int:
    """Count what is compiled: nothing more, ever."""
    return 7


def test_settling_stops_when_two_windows_agree(clock: FakeClock, watch: Stopwatch) -> None:
    """A call of constant latency is steady after two first calls and two windows of three."""
    found = warm_up_to_steady(watch, clock.step(lambda index: FAST_S), nothing_compiled)
    assert found.steady
    assert (found.calls, clock.calls) == (8, 8)
    assert found.latency_s == FAST_S
    assert found.excess_s == 0.0


def test_excess_is_the_known_compile_time(clock: FakeClock, watch: Stopwatch) -> None:
    """What the first calls took beyond steady ones is what compiling took."""
    compile_s = {0: 5.0, 1: 0.25}
    found = warm_up_to_steady(
        watch, clock.step(lambda index: FAST_S + compile_s.get(index, 0.0)), nothing_compiled
    )
    assert found.steady
    assert found.excess_s == 5.25
    assert found.total_s == clock.time_s


def test_settling_waits_for_a_warm_up(clock: FakeClock, watch: Stopwatch) -> None:
    """As long as calls get faster they aren't steady; afterwards they are, at the late value."""
    found = warm_up_to_steady(
        watch, clock.step(lambda index: FAST_S * max(1, 12 - index)), nothing_compiled
    )
    assert found.steady
    assert found.latency_s == FAST_S
    assert found.calls > 12


@pytest.mark.parametrize(("ratio", "steady"), [(1.008, True), (1.012, False)])
def test_windows_agree_within_one_percent(
    clock: FakeClock, watch: Stopwatch, ratio: float, *, steady: bool
) -> None:
    """Just below 1 % between two windows is steady, just above is not."""
    first_window_ends = 2 + 3

    def seconds(index: int) -> float:
        return FAST_S if index < first_window_ends else FAST_S * ratio

    found = warm_up_to_steady(watch, clock.step(seconds), nothing_compiled)
    assert found.steady
    assert (found.calls == 8) == steady


def test_compiling_is_not_steady(clock: FakeClock, watch: Stopwatch) -> None:
    """Equal latencies don't count while every window compiles; the windows are capped."""
    found = warm_up_to_steady(watch, clock.step(lambda index: FAST_S), lambda: clock.calls)
    assert not found.steady
    assert found.calls == 2 + 12 * 3


@pytest.mark.parametrize(("compiled_in", "calls"), [(4, 8), (7, 11)])
def test_steady_after_the_last_compile(
    clock: FakeClock, watch: Stopwatch, compiled_in: int, calls: int
) -> None:
    """A recompile in the first window costs nothing, one in the second another window."""
    found = warm_up_to_steady(
        watch, clock.step(lambda index: FAST_S), lambda: int(clock.calls >= compiled_in)
    )
    assert found.steady
    assert found.calls == calls


def test_alternating_latencies_are_not_steady(clock: FakeClock, watch: Stopwatch) -> None:
    """Windows that never agree end at the cap and say so."""
    found = warm_up_to_steady(
        watch, clock.step(lambda index: FAST_S * (1 + (index // 3) % 2)), nothing_compiled
    )
    assert not found.steady
    assert found.calls == 2 + 12 * 3


def test_settling_of_slow_calls_is_capped(clock: FakeClock, watch: Stopwatch) -> None:
    """Seconds run out after two windows of two calls, even if these don't agree."""
    found = warm_up_to_steady(
        watch, clock.step(lambda index: SLOW_S * 1.5**index), nothing_compiled
    )
    assert not found.steady
    assert found.calls == 2 + 2 * 2


def test_settling_takes_two_seconds_at_most(clock: FakeClock, watch: Stopwatch) -> None:
    """What isn't steady 2 s after the first call ends with the window that goes beyond them."""
    eighth_s = 2.0**-3
    found = warm_up_to_steady(
        watch, clock.step(lambda index: eighth_s * (1 + ((index - 2) // 3) % 2)), nothing_compiled
    )
    assert not found.steady
    # The second call takes 1/4 s; windows of three take 3/8 s and 3/4 s.
    assert found.calls == 2 + 4 * 3


def test_compiling_takes_as_long_as_it_does(clock: FakeClock, watch: Stopwatch) -> None:
    """An arm that is compiled anew in each of its first calls settles after them, within no 2 s."""
    found = warm_up_to_steady(
        watch, clock.step(lambda index: 1.0 if index < 6 else FAST_S), lambda: min(clock.calls, 6)
    )
    assert found.steady
    assert (found.latency_s, found.compiled_always) == (FAST_S, False)
    assert found.excess_s == 6 * (1.0 - FAST_S)


def test_seconds_count_from_the_last_compile(clock: FakeClock, watch: Stopwatch) -> None:
    """Of the window that compiled none does, as none of the first call do."""
    found = warm_up_to_steady(
        watch,
        clock.step(lambda index: {2: 100.0, 5: 0.5, 6: 0.5}.get(index, 0.25)),
        lambda: int(clock.calls > 2),
    )
    assert found.steady
    assert found.calls == 2 + 4 * 3


def test_the_latency_is_of_a_window_without_compiling(clock: FakeClock, watch: Stopwatch) -> None:
    """Here of the second; the others compile, up to the last."""
    found = warm_up_to_steady(
        watch,
        clock.step(lambda index: FAST_S if 5 <= index < 8 else 4 * FAST_S),
        lambda: clock.calls - min(3, max(0, clock.calls - 5)),
    )
    assert not found.steady
    assert (found.latency_s, found.compiled_always) == (FAST_S, False)
    assert found.excess_s == (found.calls - 3) * 3 * FAST_S


def test_who_compiles_in_every_window_has_no_latency(clock: FakeClock, watch: Stopwatch) -> None:
    """Nor can be said what compiling took; a minute of it is enough."""
    found = warm_up_to_steady(watch, clock.step(lambda index: 8.0), lambda: clock.calls)
    assert (found.steady, found.compiled_always, found.excess_s) == (False, True, None)
    # The second call and four windows of two take 72 s.
    assert found.calls == 2 + 4 * 2


def test_windows_are_as_long_as_calls_want(clock: FakeClock, watch: Stopwatch) -> None:
    """Not as the second call was, which may do more than others."""
    found = warm_up_to_steady(
        watch, clock.step(lambda index: 2.0 if index < 2 else 2.0**-10), nothing_compiled
    )
    assert found.steady
    assert found.calls == 2 + 2 + 30


def test_a_long_compile_leaves_time_to_settle(clock: FakeClock, watch: Stopwatch) -> None:
    """The first call doesn't count towards the cap."""
    latencies = {0: 100.0, 3: 2 * FAST_S, 4: 2 * FAST_S}
    found = warm_up_to_steady(
        watch, clock.step(lambda index: latencies.get(index, FAST_S)), nothing_compiled
    )
    assert found.steady
    assert found.calls == 2 + 3 * 3
