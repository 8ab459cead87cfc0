from __future__ import annotations

import factories
import pytest

from dynamometer.common.machine import allocator
from dynamometer.common.studies.accuracy import worker
from dynamometer.common.studies.accuracy.experiment import AccuracyExperiment
from dynamometer.results.values.cases import Protocol
from dynamometer.results.values.workers import Allocator


@pytest.mark.parametrize(
    ("wanted", "used"),
    [
        (Allocator.KEEP, Allocator.STOCK),
        (Allocator.STOCK, Allocator.STOCK),
        (Allocator.TCMALLOC, Allocator.TCMALLOC),
        (Allocator.JEMALLOC, Allocator.JEMALLOC),
    ],
)
def test_what_times_nothing_gives_freed_memory_back(wanted: Allocator, used: Allocator) -> None:
    """Another allocator than glibc's is used as asked for."""
    plan = factories.plan(protocol=Protocol(allocator=wanted))
    case = factories.case(arms=("baseline", "inductor", "aot_eager"))
    (spec,) = AccuracyExperiment().processes(case, plan, 0, [])
    assert spec.arms == case.arms
    assert spec.allocator is used


def test_large_blocks_are_mapped_before_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a float64 run frees is then no hole that float32 doesn't fit into."""
    done: list[object] = []
    monkeypatch.setattr(allocator, "pin_mmap_threshold", done.append)
    monkeypatch.setattr(worker, "check", done.append)
    AccuracyExperiment().measure("the context")  # type: ignore[arg-type]  # no one looks into it
    assert done == [2**20, "the context"]
