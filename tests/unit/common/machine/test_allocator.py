from __future__ import annotations

import ctypes
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
