"""What `malloc` of a worker does with freed memory, set in the worker before it loads a model.

glibc gives freed memory back to the kernel and faults it in again at the next call; on CPUs this
alone turned a speedup of 1.08x into 0.48x (DESIGN section 5, point 2).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from dynamometer.results.cases import Allocator

if TYPE_CHECKING:
    from collections.abc import Mapping

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # malloc.h
_KEEP = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, -1), (_M_TOP_PAD, 256 * 2**20))
"""No block is mapped on its own, the heap is never trimmed, and it grows in steps (mallopt(3))."""

_VARIABLES = {
    "GLIBC_TUNABLES",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_MMAP_MAX_",
}


def without_policy(inherited: Mapping[str, str]) -> dict[str, str]:
    """Give an environment in which glibc's allocator has its stock policy."""
    return {name: value for name, value in inherited.items() if name not in _VARIABLES}


def apply(allocator: Allocator) -> str | None:
    """Make this process's allocator follow a policy; if it can't, say so for the record."""
    if allocator is Allocator.STOCK:
        return None
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not all(mallopt(name, value) for name, value in _KEEP):
        return "this C library can't be told to keep freed memory: its stock policy was in force"
    return None
