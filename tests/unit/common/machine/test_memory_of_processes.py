"""How much memory processes take together."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.machine import processes
from dynamometer.common.machine.processes import (
    JointMemory,
    descendants,
    own_bytes,
    resident_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED_BYTES = 1 << 26
PROGRAM = f"""
import os
kept = os.urandom({SHARED_BYTES})
if os.fork() == 0:
    os.read(0, 1)
    os._exit(0)
print("ready", flush=True)
os.read(0, 1)
os.wait()
"""
NOBODY = 2**22 + 1
"""No process' number on Linux."""


@pytest.fixture
def pids() -> Iterator[list[int]]:
    """A process, and one below it that was forked; each holds the same memory."""
    words = [sys.executable, "-S", "-c", PROGRAM]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield [process.pid, *descendants(process.pid, 8)]
        process.communicate(b"..")


def test_memory_that_is_shared_counts_once(pids: list[int]) -> None:
    """Though each process holds all of it."""
    assert len(pids) == 2
    assert sum(map(resident_bytes, pids)) > 1.5 * SHARED_BYTES
    assert JointMemory().exceeds(pids, SHARED_BYTES * 3 // 4)
    assert not JointMemory().exceeds(pids, SHARED_BYTES * 3 // 2)


def test_pages_are_gone_through_only_where_it_may_be_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes long, and is done again and again."""
    looked_at = []

    def own(pid: int) -> int:
        looked_at.append(pid)
        return 0

    monkeypatch.setattr(processes, "resident_bytes", lambda _: 10)
    monkeypatch.setattr(processes, "own_bytes", own)
    assert not JointMemory().exceeds([1, 2], 20)
    assert looked_at == []
    # Both have gone since their resident sets were read.
    assert not JointMemory().exceeds([1, 2], 19)
    assert looked_at == [1, 2]


def test_a_look_at_many_ends_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that multiply don't keep whoever looks from killing them."""
    taken, looked_at, clock = {1: 5, 2: 5, 3: 5, 4: 5}, [], itertools.count(step=0.02)

    def own(pid: int) -> int:
        looked_at.append(pid)
        return taken[pid]

    monkeypatch.setattr(processes, "resident_bytes", lambda _: 10)
    monkeypatch.setattr(processes, "own_bytes", own)
    memory = JointMemory()
    assert not memory.exceeds([1, 2, 3, 4], 18, now=lambda: next(clock))
    assert looked_at == [1, 2, 3]
    assert memory.exceeds([1, 2, 3, 4], 18, now=lambda: next(clock))
    assert looked_at == [1, 2, 3, 4, 1, 2, 3]  # the last as it seems to be too much
    assert not memory.exceeds([3, 4], 18, now=lambda: next(clock))  # of the others nothing counts
    assert sorted(looked_at[7:]) == [3, 4]


def test_what_each_took_before_others_were_forked_is_not_added_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has half of what it had when there are twice as many; together they take the same."""
    clock, memory = itertools.count(step=0.06), JointMemory()
    monkeypatch.setattr(processes, "resident_bytes", lambda _: 60)
    for count in range(1, 12):
        pids = [*range(count)]
        monkeypatch.setattr(processes, "own_bytes", lambda _, count=count: 60 // count)
        assert not memory.exceeds(pids, 80, now=lambda: next(clock))
    monkeypatch.setattr(processes, "own_bytes", lambda _: 10)
    assert memory.exceeds(pids, 80, now=lambda: next(clock))


def test_who_has_gone_takes_nothing() -> None:
    """It may have ended since it was found."""
    assert (resident_bytes(NOBODY), own_bytes(NOBODY)) == (0, 0)


def test_who_lets_nobody_look_takes_all_it_holds(
    pids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would have no limit."""
    read_text = Path.read_text

    def refuse(path: Path) -> str:
        if path.name == "smaps_rollup":
            raise PermissionError
        return read_text(path)

    monkeypatch.setattr(Path, "read_text", refuse)
    assert own_bytes(pids[0]) > SHARED_BYTES * 3 // 4
