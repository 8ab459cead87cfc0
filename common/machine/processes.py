"""What Linux tells of other processes (proc(5)): their memory, and those below them."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LOOK_S = 0.05
"""How long a look at what many processes take goes on; then it is somebody else's turn."""
_CONFIRMING_S = 1.0
"""Likewise where that seems to be too much."""


def resident_bytes(pid: int) -> int:
    """Read the resident set size of a process; 0 if it has gone."""
    with suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def own_bytes(pid: int) -> int:
    """Read how much memory a process takes, its part of what it shares; 0 if it has gone.

    All that it holds, where it doesn't let itself be looked into (`PR_SET_DUMPABLE`).
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    except PermissionError:
        return resident_bytes(pid)
    except (OSError, StopIteration):
        return 0


@dataclass
class JointMemory:
    """How much memory processes take together, each its part of what it shares.

    For that Linux goes through the pages of a process, some 20 ms a gigabyte, and waits while it
    forks. Processes that multiply would keep whoever looks at all of them from ever killing them.
    So each look ends after a while: it begins with those nobody has looked at, and goes on with
    those looked at longest ago. As a process' part of what it shares falls with each that is
    forked, what is too much by earlier looks has to be so at one moment.

    Attributes:
        own: what each of them took when it was last looked at, in that order.
    """

    own: dict[int, int] = field(default_factory=dict)

    def exceeds(
        self, pids: Sequence[int], most_bytes: int, now: Callable[[], float] = time.monotonic
    ) -> bool:
        """Look at some, and return whether all that were looked at take more than that.

        Resident sets, which Linux counts all the time, are no smaller but for what it hasn't
        counted yet: if these are within it, nothing else is looked at.
        """
        if sum(map(resident_bytes, pids)) <= most_bytes:
            return False
        until = now() + _LOOK_S
        there, fresh = set(pids), set[int]()
        before = [pid for pid in self.own if pid in there]
        self.own = {pid: self.own[pid] for pid in before}
        for pid in (*(pid for pid in pids if pid not in self.own), *before):
            self._look_at(pid, fresh)
            if now() > until:
                break
        return self._is_so(most_bytes, fresh, now)

    def _is_so(self, most_bytes: int, fresh: set[int], now: Callable[[], float]) -> bool:
        """Look again at what was looked at earlier, the largest first, while it may be too much."""
        until = now() + _CONFIRMING_S
        earlier = sorted(self.own.keys() - fresh, key=self.own.__getitem__, reverse=True)
        for pid in earlier:
            if sum(self.own.values()) <= most_bytes or now() > until:
                return False
            self._look_at(pid, fresh)
        return sum(self.own.values()) > most_bytes

    def _look_at(self, pid: int, fresh: set[int]) -> None:
        self.own.pop(pid, None)
        self.own[pid] = own_bytes(pid)
        fresh.add(pid)


def descendants(pid: int, most: int) -> list[int]:
    """Return the processes below one, as far as Linux tells, until there are more than `most`.

    Children come before theirs.
    """
    found: list[int] = []
    unseen = [pid] if pid else []
    while unseen and len(found) <= most:
        with suppress(OSError):
            for thread in Path(f"/proc/{unseen.pop(0)}/task").iterdir():
                with suppress(OSError):
                    own = [*map(int, (thread / "children").read_text().split())]
                    unseen += own
                    found += own
    return found
