"""The allocator policy reaches the worker's malloc."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest
from conftest import hostile_manifest, run_manifest, with_protocol

from dynamometer.common.errors import UnfitEnvironmentError
from dynamometer.common.machine.allocator import find_library
from dynamometer.results.values.records import Status
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 48 * 2**20 // 4096


@pytest.mark.parametrize(
    ("allocator", "fewest", "most"),
    [(Allocator.KEEP, 0, PAGES // 100), (Allocator.STOCK, PAGES // 2, PAGES * 2)],
)
def test_freed_memory(allocator: Allocator, fewest: int, most: int, tmp_path: Path) -> None:
    """A model that takes 48 MB a call faults them in again under `stock`, not under `keep`."""
    manifest = with_protocol(hostile_manifest(["allocates"]), allocator=allocator)
    record = run_manifest(manifest, tmp_path / "run")["allocates"]
    (faults,) = [
        each.samples
        for each in record.measurements
        if (each.metric, each.arm) == ("minor_faults", "baseline")
    ]
    assert fewest <= statistics.median(faults) <= most


@pytest.mark.parametrize("allocator", [Allocator.TCMALLOC, Allocator.JEMALLOC])
def test_preloaded_allocators(allocator: Allocator, tmp_path: Path) -> None:
    """The worker is started with the library; where there is none, the run is refused."""
    manifest = with_protocol(hostile_manifest(["allocates"]), allocator=allocator)
    if find_library(allocator) is None:
        with pytest.raises(UnfitEnvironmentError, match=f"there is no {allocator}.*install it"):
            run_manifest(manifest, tmp_path / "run")
        return
    record = run_manifest(manifest, tmp_path / "run")["allocates"]
    assert record.outcome.status is Status.PASS
    assert not any("preloaded" in note for note in record.notes)
