"""What the width of intervals is made of, as a script of `bench` reckons it from records."""

from __future__ import annotations

import importlib.util
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import factories
import pytest

from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from dynamometer.results.values.records import Record

PATH = Path(__file__).resolve().parents[3] / "bench" / "width_parts.py"


@pytest.fixture(scope="module")
def width_parts() -> Any:
    """Import the script."""
    spec = importlib.util.spec_from_file_location("width_parts", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["width_parts"] = module
    spec.loader.exec_module(module)
    return module


def replicates(between: float, blocks: float, drift: float) -> list[Record]:
    """Make processes that differ by as much, of blocks that do, some of it slowly."""
    rng = random.Random(0)
    found = []
    for replicate in range(200):
        offset, slow, samples = rng.gauss(0.0, between), 0.0, []
        for _ in range(40):
            slow = 0.8 * slow + 0.6 * rng.gauss(0.0, drift)
            samples.append(0.01 * math.exp(offset + slow + rng.gauss(0.0, blocks)))
        order = tuple(range(len(samples)))
        latencies = (
            factories.measurement("latency", BASELINE, tuple(samples), order),
            factories.measurement("latency", "inductor", (0.01,) * len(order), order),
        )
        found.append(factories.record(replicate=replicate, measurements=latencies))
    return found


@pytest.mark.parametrize(
    ("between", "blocks", "drift", "largest"),
    [(0.01, 0.01, 0.0, "between"), (0.0, 0.05, 0.0, "blocks"), (0.0, 0.0, 0.05, "drift")],
)
def test_each_part_is_told_from_the_others(
    width_parts: Any, between: float, blocks: float, drift: float, largest: str
) -> None:
    """Where one is all there is, the others are small."""
    case = summarize_case(replicates(between, blocks, drift))
    (found,) = width_parts._parts(case)
    parts = {name: getattr(found, name) for name in ("between", "blocks", "drift")}
    assert max(parts, key=lambda name: parts[name]) == largest
    assert "| alexnet inductor | 200 |" in "\n".join(width_parts._table([found]))
