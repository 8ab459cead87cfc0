"""What Linux tells of other processes (proc(5)): their memory, and those below them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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


def take_more(pids: Sequence[int], most_bytes: int) -> bool:
    """Return whether processes together take more than that, each its part of what it shares.

    Resident sets, which Linux counts all the time, are no smaller but for what it hasn't counted
    yet. For a process' part of what it shares Linux goes through its pages: some 20 ms a gigabyte.
    """
    return (
        sum(map(resident_bytes, pids)) > most_bytes  # the cheap one first
        and sum(map(own_bytes, pids)) > most_bytes
    )


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
