"""Which threads an arm keeps busy besides the one that calls it, and when others' are idle.

A runtime's idle threads go on spinning for a while after a call, on the cores another's need:
libgomp's for 5 ms, ONNX Runtime's for 35 ms (docs/decisions/0007-error-bars.md).
"""

from __future__ import annotations

import itertools
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dynamometer.common.machine.surroundings import usable_processors
from dynamometer.dynamo.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_WATCHED_S = 0.030
_BUSY_SHARE = 0.1
"""Of the time calls take: what a thread computes meanwhile to be counted as theirs."""

_LONGEST_WAIT_S = 0.3
"""Longer than Intel's OpenMP spins (KMP_BLOCKTIME, 0.2 s). Some threads do so for ever; where that
shows, arms are timed in processes of their own."""

_NAP_S = 0.0005


@dataclass(frozen=True)
class Linux:
    """What the kernel tells of this process's threads, and the time.

    Attributes:
        tasks: a directory of a folder for each; there is none but on Linux.
        now: seconds from any fixed point.
        nap: lets some of them pass.
    """

    tasks: Path = Path("/proc/self/task")
    now: Callable[[], float] = field(default_factory=lambda: Clock.now)
    nap: Callable[[float], None] = field(default_factory=lambda: Clock.nap)

    def others(self) -> Iterator[int]:
        """Name the threads but for the calling one."""
        own = threading.get_native_id()
        with suppress(OSError):
            yield from (n for path in self.tasks.iterdir() if (n := int(path.name)) != own)

    def runs(self, thread: int) -> bool:
        """Return whether a thread is on a processor, or wants to be."""
        with suppress(OSError):  # it has just ended
            after_name = (self.tasks / str(thread) / "stat").read_bytes().rpartition(b")")[2]
            return after_name.split()[0] == b"R"
        return False

    def computed_s(self) -> dict[int, float]:
        """Return how long each of the others has had a processor."""
        found = {}
        for thread in self.others():
            with suppress(OSError):
                nanoseconds = (self.tasks / str(thread) / "schedstat").read_text().split()[0]
                found[thread] = 1e-9 * int(nanoseconds)
        return found


@dataclass(frozen=True)
class ArmThreads:
    """The threads that each arm keeps busy, by their numbers, besides the one that calls them all.

    Attributes:
        of: each arm's.
        processors: for all of them.
        linux: tells which run.
    """

    of: Mapping[str, frozenset[int]]
    processors: int
    linux: Linux = field(default_factory=Linux)

    @classmethod
    def now(cls, of: Mapping[str, frozenset[int]]) -> Self:
        """Leave out threads that have ended, as some do where a pool shrinks."""
        alive = frozenset(Linux().others())
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
        wait_until_idle(self.of[arm], self.linux)


def busy_threads(call: Callable[[], object], linux: Linux | None = None) -> frozenset[int]:
    """Return which threads calls keep busy; none where Linux doesn't tell.

    Args:
        call: one step, made at least once, and for at least 30 ms.
        linux: tells of threads; this machine's where nothing is said.
    """
    linux = linux or Linux()
    wait_until_idle(linux=linux)
    before, started = linux.computed_s(), linux.now()
    spent_s = 0.0
    while spent_s < _WATCHED_S:
        call()
        spent_s = linux.now() - started
    return frozenset(
        thread
        for thread, computed_s in linux.computed_s().items()
        if computed_s - before.get(thread, 0.0) > _BUSY_SHARE * spent_s
    )


def wait_until_idle(but: frozenset[int] = frozenset(), linux: Linux | None = None) -> None:
    """Wait until no thread runs but the calling one and some others, 0.3 s at most."""
    linux = linux or Linux()
    ends = linux.now() + _LONGEST_WAIT_S
    while linux.now() < ends and any(
        linux.runs(each) for each in linux.others() if each not in but
    ):
        linux.nap(_NAP_S)
