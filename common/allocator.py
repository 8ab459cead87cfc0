"""What `malloc` of a worker does with freed memory, set before the process starts.

glibc gives freed memory back to the kernel and faults it in again at the next call; on CPUs this
alone turned a speedup of 1.08x into 0.48x (DESIGN section 5, point 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.schema import Allocator

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT_BYTES = str(8 * 2**30)
_KEEP = {
    "MALLOC_TRIM_THRESHOLD_": _KEPT_BYTES,
    "MALLOC_MMAP_THRESHOLD_": _KEPT_BYTES,
    "MALLOC_TOP_PAD_": str(256 * 2**20),
}


def worker_environment(allocator: Allocator, inherited: Mapping[str, str]) -> dict[str, str]:
    """Give a worker's environment under a policy of glibc's allocator (mallopt(3))."""
    plain = {name: value for name, value in inherited.items() if name not in _KEEP}
    match allocator:
        case Allocator.STOCK:
            return plain
        case Allocator.KEEP:
            return {**plain, **_KEEP}
