"""Whether something else disturbed what was timed, from readings that a record keeps."""

from __future__ import annotations

import pytest

from dynamometer.results.statistics.disturbance import disturbed_blocks, disturbs, total
from dynamometer.results.values.records import BlockLoad, Load

CALM, BUSY = Load(1.0, 0.0), Load(1.0, 1.0)
TICKS = Load(wall_s=0.1, background_s=0.03, resolution_s=0.028)
"""What the counters can't tell from an idle machine."""


def readings(*loads: Load) -> list[BlockLoad]:
    """Return those of stretches of two blocks each."""
    return [
        BlockLoad(first=2 * index, last=2 * index + 1, load=load)
        for index, load in enumerate(loads)
    ]


def test_many_ticks_add_up() -> None:
    """What no stretch shows all of them do together."""
    assert not disturbs(TICKS)
    assert disturbs(total([TICKS] * 5))
    assert not disturbs(total([]))


@pytest.mark.parametrize(
    ("loads", "blocks"),
    [
        ((), ()),
        ((CALM, CALM), ()),
        ((CALM, BUSY, CALM), (2, 3)),
        ((CALM, Load(1.0, 0.0, is_slowed=True)), (2, 3)),
        ((TICKS,) * 3, (0, 1, 2, 3, 4, 5)),
        ((BUSY, CALM, TICKS), (0, 1)),
    ],
    ids=["none", "calm", "busy", "hot", "together", "a-busy-one-is-no-part-of-the-rest"],
)
def test_blocks_are_judged_by_their_readings(
    loads: tuple[Load, ...], blocks: tuple[int, ...]
) -> None:
    """A stretch by itself, and those that pass all together."""
    assert disturbed_blocks(readings(*loads)) == blocks
