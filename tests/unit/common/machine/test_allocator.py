from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from dynamometer.common.machine import allocator
from dynamometer.common.machine.allocator import without_policy
from dynamometer.results.values.workers import Allocator

INHERITED = {
    "PATH": "/bin",
    "MALLOC_TOP_PAD_": "1",
    "MALLOC_ARENA_MAX": "2",
    "GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1",
}


def test_an_inherited_policy_is_taken_away() -> None:
    """A policy of the parent's own doesn't reach workers; everything else does."""
    before = dict(INHERITED)
    assert without_policy(INHERITED) == {"PATH": "/bin", "MALLOC_ARENA_MAX": "2"}
    assert before == INHERITED


class FakeLibrary:
    """A C library whose `mallopt` keeps what it is told and answers as a script says."""

    def __init__(self, answer: int) -> None:
        self.answer = answer
        self.told: dict[int, int] = {}

    def mallopt(self, name: int, value: int) -> int:
        """Keep it."""
        self.told[name] = value
        return self.answer


def test_keep_tells_malloc_to_keep_freed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """No block is mapped on its own and nothing is trimmed, by the numbers of malloc.h."""
    library = FakeLibrary(answer=1)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    assert allocator.apply(Allocator.KEEP) is None
    assert library.told == {-4: 0, -1: -1, -2: 256 * 2**20}


def test_stock_tells_malloc_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stock policy is the one there is."""
    library = FakeLibrary(answer=1)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    assert allocator.apply(Allocator.STOCK) is None
    assert library.told == {}


@pytest.mark.parametrize("library", [FakeLibrary(answer=0), SimpleNamespace()])
def test_a_library_that_cannot_is_noted(library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether `mallopt` refuses or is not there, the record says what was in force."""
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    assert "stock policy was in force" in (allocator.apply(Allocator.KEEP) or "")


@pytest.mark.parametrize("asked", [Allocator.KEEP, Allocator.STOCK])
def test_a_library_nobody_asked_for_is_noted(
    asked: Allocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`LD_PRELOAD` is the user's own; what it puts in the place of malloc was in force."""
    monkeypatch.setattr(allocator, "_loaded", lambda: [Allocator.JEMALLOC])
    assert allocator.apply(asked) == (
        f"LD_PRELOAD put jemalloc in the place of malloc: {asked} was not in force"
    )
    assert allocator.apply(Allocator.JEMALLOC) is None


_A_HOLE = """
import ctypes, sys
from dynamometer.common.machine import allocator

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def kib():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmData"))

if sys.argv[1] == "pinned":
    allocator.pin_mmap_threshold(2**20)
libc.free(libc.malloc(30 * 2**20))  # raises the threshold, and what may stay free on top
libc.mallopt(-1, 128 * 2**10)  # which is as before
block, above = libc.malloc(20 * 2**20), libc.malloc(2 * 2**20)
before = kib()
libc.free(block)
print(before - kib())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no other has this threshold")
@pytest.mark.parametrize(("policy", "returned_kib"), [("pinned", 20 * 2**10), ("stock", 0)])
def test_a_large_block_leaves_no_hole(policy: str, returned_kib: int) -> None:
    """A block below another is given back as it is freed, once the threshold is pinned."""
    command = [sys.executable, "-c", _A_HOLE, policy]
    environment = {**without_policy(os.environ), "LD_PRELOAD": ""}
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert int(found.stdout) == pytest.approx(returned_kib, abs=4 * 2**10)
