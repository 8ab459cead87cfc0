"""After how many calls compiling has paid for itself. Pure functions; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamometer.results.values.records import Ratio


@dataclass(frozen=True)
class Breakeven:
    """Calls whose saved seconds come to those of compiling.

    Attributes:
        calls: with the speedup as estimated; `None` if that is none, so that it never pays.
        low: with the upper end of the speedup's interval; `None` if even that is none.
        high: with the lower end; `None` if it may never pay.
    """

    calls: float | None
    low: float | None
    high: float | None


def breakeven(compile_s: float, eager_s: float, speedup: Ratio) -> Breakeven:
    """Divide the seconds of compiling by those that each call saves.

    The interval is that of the speedup; how far compile times vary is no part of it.

    Args:
        compile_s: of compiling, from empty caches or from filled ones.
        eager_s: of a call of eager.
        speedup: over eager.
    """

    def calls(ratio: float) -> float | None:
        return compile_s / (eager_s * (1 - 1 / ratio)) if ratio > 1 else None

    return Breakeven(calls(speedup.value), calls(speedup.high), calls(speedup.low))
