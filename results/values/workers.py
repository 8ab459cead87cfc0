"""The vocabulary of worker processes: how they are started, and what they find."""

from __future__ import annotations

from enum import StrEnum


class Allocator(StrEnum):
    """What `malloc` of the worker does with freed memory (docs/measuring.md, step 1)."""

    KEEP = "keep"
    STOCK = "stock"
    TCMALLOC = "tcmalloc"
    JEMALLOC = "jemalloc"

    @property
    def is_preloaded(self) -> bool:
        """Whether it is a library that takes the place of glibc's when a process starts."""
        return self in {Allocator.TCMALLOC, Allocator.JEMALLOC}


class StartMethod(StrEnum):
    """How a worker process comes to be: forked from a fork server, or started fresh."""

    FORK = "fork"
    SPAWN = "spawn"


class Caches(StrEnum):
    """What is in the compiler's graph caches when an arm is compiled."""

    FIRST_COLD = "first_cold"
    """Nothing in a case's first replicate; what that one left in the others."""
    COLD = "cold"
    """Nothing, in every replicate."""
    WARM = "warm"
    """What an earlier process left that is not measured."""
