"""How a worker goes about its arms, as far as that needs no model."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakes import FakeClock

from dynamometer.common.measuring.threads import ArmThreads
from dynamometer.common.measuring.timed_arms import pad_heap, time_in_blocks
from dynamometer.dynamo.clock import Clock
from dynamometer.results.values.cases import Protocol

NO_SUCH_THREADS = frozenset({2**30}), frozenset({2**30 + 1})


@pytest.mark.parametrize("processors", [2, 3])
def test_arms_whose_threads_do_not_fit_have_longer_visits(
    processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rests before; as many processors as they need together change that."""
    clock = FakeClock()
    monkeypatch.setattr(Clock, "now", staticmethod(clock.now))
    device = SimpleNamespace(synchronize=lambda: None, is_disturbed=lambda: False)
    context = cast("Any", SimpleNamespace(device=device))
    calls = {arm: clock.step(lambda _: 0.001) for arm in "ab"}
    blocks = time_in_blocks(
        context,
        calls,
        dict.fromkeys(calls, 0.001),
        ArmThreads(dict(zip(calls, NO_SUCH_THREADS, strict=True)), processors),
        Protocol(min_blocks=2, max_blocks=2),
        random.Random(0),
    )
    assert blocks.waited is (processors == 2)
    for burst in blocks.bursts:
        assert burst.calls == pytest.approx(30 if blocks.waited else 8, abs=1)
        assert burst.samples_s == pytest.approx([0.001] * len(burst.samples_s))


def test_no_two_replicates_have_the_same_heap() -> None:
    """What is put before an arm varies in number and in size."""
    padding = [pad_heap(random.Random(seed)) for seed in range(20)]
    assert len({len(each) for each in padding}) > 10
    sizes = [len(block) for each in padding for block in each]
    assert min(sizes) < 4_096
    assert max(sizes) > 32_768
