"""OpenMP runtimes of a process: idle threads of one spin on the cores another needs."""

from __future__ import annotations

import re
from pathlib import Path

_MAPS = Path("/proc/self/maps")
_RUNTIME = re.compile(r"/(lib(?:g|i|)omp5?[-.\w]*\.so[.\d]*)$", re.MULTILINE)


def is_runtime(path: str) -> bool:
    """Tell an OpenMP runtime by its path."""
    return _RUNTIME.search(path) is not None


def note_on_runtimes(maps: str | None = None) -> str | None:
    """Return for the record which runtimes are loaded, if they are several.

    Args:
        maps: the memory map of a process; `None` for this one.
    """
    if maps is None:
        try:
            maps = _MAPS.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
    names = sorted({found[1] for found in _RUNTIME.finditer(maps)})
    if len(names) <= 1:
        return None
    return (
        f"{len(names)} OpenMP runtimes in one process, whose threads get in each other's way: "
        + (", ".join(names))
    )
