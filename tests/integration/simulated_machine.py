"""A clock that shows what calls are said to take, on a machine where nothing else runs.

So what a worker makes of times is tested with real processes, and what the machine that runs the
tests is busy with changes no verdict.
"""

from __future__ import annotations

import time

from dynamometer.common.machine.surroundings import Reading
from dynamometer.common.measuring import timed_arms
from dynamometer.dynamo.clock import Clock as MeasuringClock

_READING_S = 1e-6
"""Each reading takes some time, so that whoever waits for a moment gets there."""


class Clock:
    """Seconds that pass only as calls of `sleep` and readings say."""

    def __init__(self, reading_s: float = _READING_S, start_s: float = 0.0) -> None:
        self.seconds, self._reading_s = start_s, reading_s

    def sleep(self, seconds: float) -> None:
        """Let time pass, at once."""
        self.seconds += seconds

    def perf_counter(self) -> float:
        """Read the clock."""
        self.seconds += self._reading_s
        return self.seconds

    def counters(self) -> Reading:
        """Say that nothing else was busy."""
        return Reading(at_s=self.seconds, busy_s=0.0, stolen_s=0.0, own_s=0.0)


def install(reading_s: float = _READING_S, start_s: float = 0.0) -> Clock:
    """Put a clock in place of this process's; a call is at least as long as it takes to read it."""
    clock = Clock(reading_s, start_s)
    time.sleep, time.perf_counter = clock.sleep, clock.perf_counter
    MeasuringClock.now, MeasuringClock.nap = clock.perf_counter, clock.sleep  # type: ignore[assignment]  # as functions
    timed_arms.read_counters = clock.counters
    return clock
