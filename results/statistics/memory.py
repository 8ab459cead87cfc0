"""Memory of an arm: what is the model's, and what compiling leaves behind. Pure; no torch."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.statistics.replicates import find
from dynamometer.results.values import metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.records import Record

FEWEST_BYTES = 2**20
"""Less than this is noise of the allocator; no ratio is formed of it."""

COMPILERS_BYTES = 40 * 2**20
"""What compiling leaves behind without keeping anything for the model: code, tables, guards.

Dynamo leaves 9 to 18 MiB, Inductor up to 39 (18 models, `docs/decisions/0010-memory.md`).
"""

_MIB = 2**20


@dataclass(frozen=True)
class ArmMemory:
    """Memory of one arm in bytes, by replicate; empty where it was not measured.

    Attributes:
        needed: the loaded model with its inputs, what calls take at their peak, and what is left
            behind beyond `COMPILERS_BYTES`, as a copy of the weights or a pool is.
        calls: of that, what calls take.
        residue: all that compiling and the first calls leave behind.
        missing: why there is nothing; `None` if there is, or nobody knows.
    """

    needed: tuple[float, ...] = ()
    calls: tuple[float, ...] = ()
    residue: tuple[float, ...] = ()
    missing: str | None = None

    @property
    def needed_bytes(self) -> float | None:
        """Median over replicates."""
        return statistics.median(self.needed) if self.needed else None

    @property
    def calls_bytes(self) -> float | None:
        """Median over replicates."""
        return statistics.median(self.calls) if self.calls else None

    @property
    def residue_bytes(self) -> float | None:
        """Median over replicates."""
        return statistics.median(self.residue) if self.residue else None


NOT_MEASURED = ArmMemory()


@dataclass(frozen=True)
class Compression:
    """How many times what an arm needs the baseline needs, or why that is not said.

    Attributes:
        ratio: above 1 the arm needs less; `None` where that is not known.
        reason: why it is not.
    """

    ratio: float | None
    reason: str | None = None


def memory_of(arm: str, records: Sequence[Record]) -> ArmMemory:
    """Collect what replicates measured of an arm, those in which nothing of it is missing."""
    found = [each for record in records if (each := _in_replicate(arm, record)) is not None]
    if not found:
        return ArmMemory(missing=_why_missing(arm, records))
    _, residue, calls = zip(*found, strict=True)
    needed = tuple(before + most + max(left - COMPILERS_BYTES, 0.0) for before, left, most in found)
    return ArmMemory(needed, calls, residue)


def compression(baseline: ArmMemory, arm: ArmMemory) -> Compression:
    """Divide what the baseline needs by what the arm needs.

    What compilers leave behind is no part of either: it is the same for a small model and a large
    one. Nor is there a ratio where it is more than what is compared: of a small model's memory in a
    process that is mostly torch's own, Linux's count of pages is too coarse to tell.
    """
    reason = _why_not("eager", baseline) or _why_not("the arm", arm)
    before, after = baseline.needed_bytes, arm.needed_bytes
    if reason is not None or before is None or after is None:
        return Compression(None, reason)
    return Compression(before / after)


def _why_not(name: str, found: ArmMemory) -> str | None:
    needed, residue = found.needed_bytes, found.residue_bytes
    if needed is None or residue is None:
        return f"memory of {name} is not known: {found.missing or 'it was not measured'}"
    if needed < FEWEST_BYTES:
        return f"{name} needs less than 1 MiB"
    if min(residue, COMPILERS_BYTES) > needed:
        return f"{name} leaves {residue / _MIB:.0f} MiB behind and needs {needed / _MIB:.0f} MiB"
    return None


def _in_replicate(arm: str, record: Record) -> tuple[float, float, float] | None:
    """Return what is loaded, left behind and taken by the largest call; `None` unless all is known.

    A record of before these were told apart has the last two in one.
    """
    wanted = (metrics.LOADED_MEMORY.name, metrics.RESIDUE_MEMORY.name, metrics.CALLS_MEMORY.name)
    found = [find([record], metric, arm) for metric in wanted]
    if not all(found):
        return None
    loaded, residue, calls = (max(each[0].samples) for each in found)
    return loaded, residue, calls


def _why_missing(arm: str, records: Sequence[Record]) -> str | None:
    return next(
        (
            each.reason
            for record in records
            for each in record.absent
            if (each.metric, each.arm) == (metrics.CALLS_MEMORY.name, arm)
        ),
        None,
    )
