"""A clock by which the time of what says that it hangs runs out, however slow the machine is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def leaping(clock: Callable[[], float], hangs: Path, step_s: float) -> Callable[[], float]:
    """Return a clock that leaps by a step for each byte of a file.

    It leaps at the look after the first that finds the byte there. The first may be the one by
    which a worker's time begins, if the worker was quicker to hang than its parent to look.
    """
    seen = 0

    def look() -> float:
        nonlocal seen
        before, seen = seen, hangs.stat().st_size
        return clock() + step_s * before

    return look
