"""Calls of an arm until it is steady."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dynamometer.common.measuring.timing import Stopwatch

STEADY_WITHIN = 0.01
"""Two successive windows whose medians agree this well count as steady (docs/measuring.md, step
5)."""

_WINDOW_S = 0.030
_WINDOW_CALLS = (3, 30)
_SLOW_CALL_S = 0.5
_SLOW_WINDOW_CALLS = 2
_FEWEST_WINDOWS, _MAX_WINDOWS = 2, 12
_WARM_UP_CAP_S = 2.0
"""Of the calls since something was compiled."""

_COMPILING_CAP_S = 60.0
"""Of all calls, while something is compiled in each window."""


@dataclass(frozen=True)
class WarmUp:
    """The calls of an arm from its first until it is steady.

    Attributes:
        total_s: seconds of all of them.
        calls: how many there were.
        latency_s: median of the last window in which nothing was compiled, or of the last one.
        steady: whether two successive windows agreed and nothing was compiled in the last.
        compiled_always: whether something was compiled in every window.
    """

    total_s: float
    calls: int
    latency_s: float
    steady: bool
    compiled_always: bool = False

    @property
    def excess_s(self) -> float | None:
        """Seconds these calls took beyond what as many steady ones would have.

        `None` if something was compiled in every window: then it isn't known what a call takes.
        """
        if self.compiled_always:
            return None
        return max(0.0, self.total_s - self.calls * self.latency_s)


def warm_up_to_steady(
    watch: Stopwatch, call: Callable[[], object], compiled: Callable[[], int]
) -> WarmUp:
    """Call until steady: windows' medians agree within 1 % and nothing new is compiled.

    Args:
        watch: times the calls.
        call: one step of the arm.
        compiled: counts what was compiled so far; a rise within a window makes it unsteady.
    """
    first_s = watch.mean_s(call, 1)
    second = _Window.of(watch, call, compiled, 1)
    windows: list[_Window] = []
    while not _are_enough(second, windows):
        calls = _window_calls((windows or [second])[-1].median_s)
        windows.append(_Window.of(watch, call, compiled, calls))
    times_s = [first_s, *(each for window in (second, *windows) for each in window.times_s)]
    quiet = [each for each in windows if not each.compiled]
    return WarmUp(
        total_s=sum(times_s),
        calls=len(times_s),
        latency_s=(quiet or windows)[-1].median_s,
        steady=_is_steady(windows),
        compiled_always=not quiet,
    )


@dataclass(frozen=True)
class _Window:
    """Some calls, one after the other, and whether something was compiled in them."""

    times_s: tuple[float, ...]
    compiled: bool

    @classmethod
    def of(
        cls, watch: Stopwatch, call: Callable[[], object], compiled: Callable[[], int], calls: int
    ) -> Self:
        before = compiled()
        times_s = tuple(watch.mean_s(call, 1) for _ in range(calls))
        return cls(times_s, compiled() != before)

    @property
    def median_s(self) -> float:
        return statistics.median(self.times_s)


def _are_enough(second: _Window, windows: Sequence[_Window]) -> bool:
    """Return whether to end: steady, or at a cap.

    Args:
        second: the second call alone.
        windows: all that came after it.
    """
    if len(windows) < _FEWEST_WINDOWS:
        return False
    if _is_steady(windows) or len(windows) == _MAX_WINDOWS:
        return True
    taken = [second, *windows]
    if windows[-1].compiled:
        return _total_s(taken) > _COMPILING_CAP_S
    since = takewhile(lambda each: not each.compiled, reversed(taken))
    return _total_s(since) > _WARM_UP_CAP_S


def _is_steady(windows: Sequence[_Window]) -> bool:
    before, last = windows[-2:]
    return not last.compiled and abs(last.median_s / before.median_s - 1) <= STEADY_WITHIN


def _total_s(windows: Iterable[_Window]) -> float:
    return sum(sum(each.times_s) for each in windows)


def _window_calls(latency_s: float) -> int:
    if latency_s > _SLOW_CALL_S:
        return _SLOW_WINDOW_CALLS
    low, high = _WINDOW_CALLS
    return min(high, max(low, round(_WINDOW_S / max(latency_s, 1e-9))))
