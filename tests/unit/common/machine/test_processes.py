"""How much memory processes take together."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from dynamometer.common.machine.processes import descendants, resident_bytes, take_more

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED_BYTES = 1 << 28
PROGRAM = f"""
import os, sys
kept = bytearray(b"1") * {SHARED_BYTES}
if os.fork() == 0:
    os.read(0, 1)
    os._exit(0)
print("ready", flush=True)
os.read(0, 1)
"""


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
    assert take_more(pids, SHARED_BYTES - 1)
    assert not take_more(pids, SHARED_BYTES * 3 // 2)


def test_who_has_gone_takes_nothing(pids: list[int]) -> None:
    """It may have ended since it was found."""
    assert take_more([*pids, 2**22 + 1], SHARED_BYTES - 1)
    assert not take_more([2**22 + 1], 0)
