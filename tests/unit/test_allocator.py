from __future__ import annotations

import pytest

from dynamometer.common.allocator import worker_environment
from dynamometer.results.schema import Allocator

VARIABLES = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"}
INHERITED = {"PATH": "/bin", "MALLOC_TOP_PAD_": "1", "MALLOC_ARENA_MAX": "2"}


def test_keep_tells_malloc_to_keep_freed_memory() -> None:
    """All three thresholds of glibc are far above what a model frees; the rest is inherited."""
    environment = worker_environment(Allocator.KEEP, INHERITED)
    assert set(environment) == {"PATH", "MALLOC_ARENA_MAX"} | VARIABLES
    assert all(int(environment[name]) >= 2**28 for name in VARIABLES)
    assert environment["PATH"] == "/bin"


def test_stock_takes_the_policy_away() -> None:
    """A policy of the parent's own doesn't reach workers that are to have none."""
    environment = worker_environment(Allocator.STOCK, INHERITED)
    assert environment == {"PATH": "/bin", "MALLOC_ARENA_MAX": "2"}


@pytest.mark.parametrize("policy", list(Allocator))
def test_what_is_inherited_is_left_alone(policy: Allocator) -> None:
    """The parent's environment is read, not written."""
    inherited = dict(INHERITED)
    worker_environment(policy, inherited)
    assert inherited == INHERITED
