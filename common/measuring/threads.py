"""Which threads an arm keeps busy besides the one that calls it, and when others' are idle.

A runtime's idle threads go on spinning for a while after a call, on the cores another's need:
libgomp's for 5 ms, ONNX Runtime's for 35 ms (docs/decisions/0007-error-bars.md).
"""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

from dynamometer.common.machine.surroundings import usable_processors

_TASKS = Path("/proc/self/task")

_WATCHED_S = 0.030
_BUSY_SHARE = 0.1
"""Of the time calls take: what a thread computes meanwhile to be counted as theirs."""

_LONGEST_WAIT_S = 0.3
"""Longer than Intel's OpenMP spins (KMP_BLOCKTIME, 0.2 s). Some threads do so for ever; where that
shows, arms are timed in processes of their own."""

_NAP_S = 0.0005


@dataclass(frozen=True)
class ArmThreads:
    """The threads that each arm keeps busy, by their numbers, besides the one that calls them all.

    Attributes:
        of: each arm's.
        processors: for all of them.
    """

    of: Mapping[str, frozenset[int]]
    processors: int

    @classmethod
    def now(cls, of: Mapping[str, frozenset[int]]) -> Self:
        """Leave out threads that have ended, as some do where a pool shrinks."""
        alive = frozenset(_others())
        present = {arm: threads & alive for arm, threads in of.items()}
        return cls(present, len(usable_processors()))

    @property
    def clash(self) -> bool:
        """Whether two arms' differ, and don't fit on the processors together.

        The threads of one runtime fit, be it that one arm needs less of them than another.
        """
        return any(
            one != other and 1 + len(one | other) > self.processors
            for one, other in itertools.combinations(self.of.values(), 2)
        )

    def wait(self, arm: str) -> None:
        """Wait until no thread runs but the calling one and the arm's own."""
        wait_until_idle(self.of[arm])


def busy_threads(call: Callable[[], object]) -> frozenset[int]:
    """Return which threads calls keep busy; none where Linux doesn't tell.

    Args:
        call: one step, made at least once, and for at least 30 ms.
    """
    wait_until_idle()
    before, started = _computed_s(), time.perf_counter()
    spent_s = 0.0
    while spent_s < _WATCHED_S:
        call()
        spent_s = time.perf_counter() - started
    return frozenset(
        thread
        for thread, computed_s in _computed_s().items()
        if computed_s - before.get(thread, 0.0) > _BUSY_SHARE * spent_s
    )


def wait_until_idle(but: frozenset[int] = frozenset()) -> None:
    """Wait until no thread runs but the calling one and some others, 0.3 s at most."""
    ends = time.perf_counter() + _LONGEST_WAIT_S
    while time.perf_counter() < ends and any(_runs(each) for each in _others() if each not in but):
        time.sleep(_NAP_S)


def _others() -> Iterator[int]:
    own = threading.get_native_id()
    with suppress(OSError):  # no such directory but on Linux
        yield from (number for path in _TASKS.iterdir() if (number := int(path.name)) != own)


def _runs(thread: int) -> bool:
    with suppress(OSError):  # it has just ended
        after_name = (_TASKS / str(thread) / "stat").read_bytes().rpartition(b")")[2]
        return after_name.split()[0] == b"R"
    return False


def _computed_s() -> dict[int, float]:
    found = {}
    for thread in _others():
        with suppress(OSError):
            nanoseconds = (_TASKS / str(thread) / "schedstat").read_text().split()[0]
            found[thread] = 1e-9 * int(nanoseconds)
    return found
