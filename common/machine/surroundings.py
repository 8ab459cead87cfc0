"""What else goes on on the machine while something is timed.

Read from Linux's counters before and after each stretch of blocks, never during one.
"""

from __future__ import annotations

import math
import os
import resource
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dynamometer.results.statistics.disturbance import total
from dynamometer.results.values.records import Load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_RESOLUTION_S = 0.02
"""Of one processor: the counters go by ticks of 10 ms, which is five standard deviations of what
that hides. Of several their root's worth."""

_CLOCK_DROP = 0.05
"""By how much of itself the clock may fall during a block."""

_STAT = Path("/proc/stat")
_THROTTLES = "devices/system/cpu/cpu*/thermal_throttle/*_throttle_count"
_CLOCK = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"


class Surroundings(Protocol):
    """Someone who watches what else goes on."""

    def begin(self) -> None:
        """Note how things stand as a block begins."""
        ...

    def load(self) -> Load:
        """Return what others did since then."""
        ...


@dataclass(frozen=True)
class Reading:
    """Counters of the processors this process may use, at one moment.

    Attributes:
        at_s: seconds from any fixed point.
        busy_s: processor seconds in use, or stolen.
        stolen_s: of these, the stolen ones.
        own_s: those of this process and of its children that have ended.
        processors: how many there are.
        throttles: how often the processors were slowed for heat.
        clock_hz: their mean clock; `None` where Linux doesn't tell.
    """

    at_s: float
    busy_s: float
    stolen_s: float
    own_s: float
    processors: int = 1
    throttles: int = 0
    clock_hz: float | None = None


def compare(before: Reading, after: Reading) -> Load:
    """Return what others did between two readings."""
    fell = (
        before.clock_hz is not None
        and after.clock_hz is not None
        and after.clock_hz < (1 - _CLOCK_DROP) * before.clock_hz
    )
    return Load(
        wall_s=after.at_s - before.at_s,
        background_s=(after.busy_s - before.busy_s) - (after.own_s - before.own_s),
        is_slowed=fell or after.throttles > before.throttles,
        resolution_s=_RESOLUTION_S * math.sqrt(after.processors),
    )


@dataclass
class Machine:
    """This machine; a `Surroundings`.

    Attributes:
        read: takes a reading; `None` where Linux has no counters, when nothing is seen.
        accelerator: tells whether others use the device, or heat slows it.
    """

    read: Callable[[], Reading | None]
    accelerator: Callable[[], bool]
    _before: Reading | None = None

    def begin(self) -> None:
        """Read the counters."""
        self._before = self.read()

    def load(self) -> Load:
        """Read them again, and compare."""
        before, after = self._before, self.read()
        seen = Load(0.0, 0.0) if before is None or after is None else compare(before, after)
        return total([seen, Load(0.0, 0.0, is_slowed=self.accelerator())])


def read_counters() -> Reading | None:
    """Read Linux's counters, or `None` where it has none."""
    usable = usable_processors()
    try:
        lines = [line.split() for line in _STAT.read_text(encoding="ascii").splitlines()]
    except OSError:
        return None
    names = {f"cpu{index}" for index in usable}
    fields = [[int(each) for each in line[1:9]] for line in lines if line[0] in names]
    if len(fields) != len(usable):  # in some containers they are numbered otherwise
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        sum(each) for each in zip(*fields, strict=True)
    )
    ticks = os.sysconf("SC_CLK_TCK")
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Reading(
        at_s=time.monotonic(),
        busy_s=(user + nice + system + irq + softirq + steal) / ticks,
        stolen_s=steal / ticks,
        own_s=sum(each.ru_utime + each.ru_stime for each in usage),
        processors=len(usable),
        throttles=_throttles(),
        clock_hz=_clock_hz(usable),
    )


def usable_processors() -> set[int]:
    """Name the processors of all threads; OpenMP may have bound each to one."""
    found = os.sched_getaffinity(0)
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has just ended
            found |= os.sched_getaffinity(int(thread.name))
    return found


def _throttles() -> int:
    found = 0
    for path in Path("/sys").glob(_THROTTLES):
        with suppress(OSError, ValueError):
            found += int(path.read_text(encoding="ascii"))
    return found


def _clock_hz(usable: Iterable[int]) -> float | None:
    found = []
    for index in usable:
        with suppress(OSError, ValueError):
            found.append(1e3 * int(Path(_CLOCK.format(index)).read_text(encoding="ascii")))
    return statistics.fmean(found) if found else None
