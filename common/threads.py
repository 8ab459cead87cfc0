"""Which threads an arm keeps busy besides the one that calls it, and when others' come to rest.

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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_TASKS = Path("/proc/self/task")

_WATCHED_S = 0.030
_BUSY_SHARE = 0.1
"""Of the time calls take: what a thread computes meanwhile to be counted as theirs."""

_LONGEST_REST_S = 0.2
"""Some threads spin for ever; where that shows, arms are timed in processes of their own."""

_NAP_S = 0.0005


@dataclass(frozen=True)
class Pools:
    """The threads that each arm keeps busy, by their numbers."""

    own: Mapping[str, frozenset[int]]

    @property
    def clash(self) -> bool:
        """Whether two arms have threads that the other doesn't use."""
        pairs = itertools.combinations(self.own.values(), 2)
        return any(one - other and other - one for one, other in pairs)

    def rest(self, arm: str) -> None:
        """Wait until no thread runs but the calling one and the arm's own."""
        wait_for_rest(self.own[arm])


def busy_threads(call: Callable[[], object]) -> frozenset[int]:
    """Say which threads calls keep busy; none where the kernel doesn't tell.

    Args:
        call: one step, made at least once, and for at least 30 ms.
    """
    wait_for_rest()
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


def wait_for_rest(but: frozenset[int] = frozenset()) -> None:
    """Wait until no thread runs but the calling one and some others, 0.2 s at most."""
    ends = time.perf_counter() + _LONGEST_REST_S
    while time.perf_counter() < ends and any(_runs(each) for each in _others() if each not in but):
        time.sleep(_NAP_S)


def _others() -> Iterator[int]:
    own = threading.get_native_id()
    with suppress(OSError):  # no such directory but on Linux
        yield from (number for path in _TASKS.iterdir() if (number := int(path.name)) != own)


def _runs(thread: int) -> bool:
    with suppress(OSError):  # it has just ended
        return (_TASKS / str(thread) / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    return False


def _computed_s() -> dict[int, float]:
    found = {}
    for thread in _others():
        with suppress(OSError):
            nanoseconds = (_TASKS / str(thread) / "schedstat").read_text().split()[0]
            found[thread] = 1e-9 * int(nanoseconds)
    return found
