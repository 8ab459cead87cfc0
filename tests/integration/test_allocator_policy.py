"""The allocator policy reaches the worker's malloc."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import msgspec
import pytest
from conftest import hostile_manifest, run_manifest

from dynamometer.results.cases import Allocator

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.records import Manifest

PAGES = 48 * 2**20 // 4096


@pytest.mark.parametrize(
    ("allocator", "fewest", "most"),
    [(Allocator.KEEP, 0, PAGES // 100), (Allocator.STOCK, PAGES // 2, PAGES * 2)],
)
def test_freed_memory(allocator: Allocator, fewest: int, most: int, tmp_path: Path) -> None:
    """A model that takes 48 MB a call faults them in again under `stock`, not under `keep`."""
    manifest = with_allocator(hostile_manifest(["allocates"]), allocator)
    record = run_manifest(manifest, tmp_path / "run")["allocates"]
    (faults,) = [
        each.samples
        for each in record.measurements
        if (each.metric, each.arm) == ("minor_faults", "baseline")
    ]
    assert fewest <= statistics.median(faults) <= most


def with_allocator(manifest: Manifest, allocator: Allocator) -> Manifest:
    """Change the policy of a plan."""
    replace = msgspec.structs.replace
    protocol = replace(manifest.plan.protocol, allocator=allocator)
    return replace(manifest, plan=replace(manifest.plan, protocol=protocol))
