"""Whether something else disturbed what was timed. Pure functions; no torch.

The worker decides by them which blocks to measure again; with the readings that a record keeps, a
run can be judged by them once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.values.records import Load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.values.records import BlockLoad

BACKGROUND_CPUS = 0.10
"""Processors' worth of others' work, stolen time included, that count as a disturbance."""


def disturbs(load: Load) -> bool:
    """Return whether what is timed meanwhile is worth nothing."""
    allowed_s = BACKGROUND_CPUS * load.wall_s + load.resolution_s
    return load.is_slowed or load.background_s > allowed_s


def total(loads: Iterable[Load]) -> Load:
    """Add up what others did, block by block; together blocks show what ticks hide in each."""
    found = list(loads)
    return Load(
        wall_s=sum(each.wall_s for each in found),
        background_s=sum(each.background_s for each in found),
        is_slowed=any(each.is_slowed for each in found),
        resolution_s=max((each.resolution_s for each in found), default=0.0),
    )


def disturbed_blocks(readings: Sequence[BlockLoad]) -> tuple[int, ...]:
    """Return the blocks that something else disturbed.

    All of them, where only the blocks that nothing disturbed by themselves together show a load.

    Args:
        readings: of all stretches of blocks that one process measured, in their order.
    """
    undisturbed = [each.load for each in readings if not disturbs(each.load)]
    all_of_them = disturbs(total(undisturbed))
    return tuple(
        block
        for each in readings
        if all_of_them or disturbs(each.load)
        for block in range(each.first, each.last + 1)
    )
