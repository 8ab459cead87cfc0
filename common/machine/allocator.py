"""What `malloc` of a worker does with freed memory, set in the worker before it loads a model.

glibc gives freed memory back to the system and faults it in again at the next call; on CPUs this
alone turned a speedup of 1.08x into 0.48x (docs/measuring.md, step 1).
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.errors import UnfitEnvironmentError
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Mapping

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # malloc.h
_KEEP = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, -1), (_M_TOP_PAD, 256 * 2**20))
"""No block is mapped on its own, the heap is never trimmed, and it grows in steps (mallopt(3))."""

_M_MMAP_THRESHOLD, _FIRST_MMAP_THRESHOLD = -3, 128 * 2**10

_VARIABLES = {
    "GLIBC_TUNABLES",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_MMAP_MAX_",
}


def without_policy(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which glibc's allocator has its stock policy."""
    return {name: value for name, value in inherited.items() if name not in _VARIABLES}


_LIBRARIES = {
    Allocator.TCMALLOC: ("tcmalloc_minimal", "tcmalloc"),
    Allocator.JEMALLOC: ("jemalloc",),
}
_PACKAGES = {
    Allocator.TCMALLOC: "libtcmalloc-minimal4",
    Allocator.JEMALLOC: "libjemalloc2",
}


def require_allocator(allocator: Allocator) -> None:
    """Check that an allocator is there.

    Raises:
        UnfitEnvironmentError: it isn't.
    """
    if allocator.is_preloaded and find_library(allocator) is None:
        msg = (
            f"there is no {allocator} on this machine: install it"
            f" (Debian: {_PACKAGES[allocator]}), or leave out --allocator"
        )
        raise UnfitEnvironmentError(msg)


def find_library(allocator: Allocator) -> str | None:
    """Return the file name of an allocator that is preloaded, as the dynamic linker finds it."""
    from ctypes.util import find_library as find  # imports subprocess

    return next((file for name in _LIBRARIES[allocator] if (file := find(name))), None)


def environment_of(allocator: Allocator, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return a fork server's environment: stock policy, and a preloaded library where asked for.

    Raises:
        UnfitEnvironmentError: the library isn't installed.
    """
    environment = without_policy(inherited)
    require_allocator(allocator)
    library = find_library(allocator) if allocator.is_preloaded else None
    if library is not None:
        others = environment.get("LD_PRELOAD", "").split()
        environment["LD_PRELOAD"] = " ".join([library, *others])
    return environment


def apply(allocator: Allocator) -> str | None:
    """Make this process's allocator follow a policy; if it can't, say so for the record."""
    loaded = _loaded()
    if allocator.is_preloaded and allocator not in loaded:
        return f"{allocator} could not be preloaded: glibc's stock policy was in force"
    others = [each for each in loaded if each is not allocator]
    if others and not allocator.is_preloaded:
        return f"LD_PRELOAD put {others[0]} in the place of malloc: {allocator} was not in force"
    if allocator is not Allocator.KEEP:
        return None
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not all(mallopt(name, value) for name, value in _KEEP):
        return "this C library can't be told to keep freed memory: its stock policy was in force"
    return None


def pin_mmap_threshold(fewest_bytes: int = _FIRST_MMAP_THRESHOLD) -> None:
    """Have a block of so many bytes or more mapped by itself, and unmapped as soon as it is freed.

    A hole in the heap that is large enough is still used first. glibc begins with 128 KiB; when a
    larger mapped block is freed, of up to 32 MiB, the threshold rises to its size. Later blocks
    below it lie on the heap and leave holes, so that the resident set goes by what a process did
    before. A call ends this adjustment. Source: mallopt(3), "M_MMAP_THRESHOLD". Another C library,
    or an allocator that is preloaded, is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, fewest_bytes)


def _loaded() -> list[Allocator]:
    """Return the libraries that were preloaded: where one can't be, the linker only warns."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return [
        allocator
        for allocator, names in _LIBRARIES.items()
        if any(f"lib{name}" in maps for name in names)
    ]
