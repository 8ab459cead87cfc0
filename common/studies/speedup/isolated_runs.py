"""Isolated runs of arms that were timed in blocks before: in which order."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from dynamometer.common.studies.experiment import WorkerSpec
from dynamometer.results.values.metrics import LATENCY

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.results.values.cases import RunPlan
    from dynamometer.results.values.records import Measurement

ISOLATED_RUNS = 2
"""Processes each arm is timed in, in every replicate."""


def latencies_of(found: Sequence[Findings]) -> dict[str, Measurement]:
    """Return what was timed of each arm in blocks."""
    return {
        each.arm: each
        for part in found
        for each in part.measurements
        if each.metric == LATENCY.name
    }


def isolated_runs_of(
    latencies: Mapping[str, Measurement], plan: RunPlan, rng: random.Random
) -> tuple[WorkerSpec, ...]:
    """Draw an order of arms that were timed, and run them in it, back and forth."""
    if not latencies:
        return ()
    fastest_s = min(statistics.median(each.samples) for each in latencies.values())
    order = rng.sample(sorted(latencies), len(latencies))
    orders = [order if run % 2 == 0 else order[::-1] for run in range(ISOLATED_RUNS)]
    return tuple(
        WorkerSpec((arm,), plan.protocol.allocator, run, fastest_s)
        for run, arms in enumerate(orders)
        for arm in arms
    )
