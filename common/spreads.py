"""What earlier runs on this machine tell of how far its processes differ."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dynamometer.results import store
from dynamometer.results.cases import TIMING
from dynamometer.results.records import ASSUMED_SPREAD
from dynamometer.results.spreads import learn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dynamometer.results.cases import RunPlan
    from dynamometer.results.records import Environment, Record, Spread

_RUNS_LOOKED_AT = 100
_RUNS_READ = 5
"""All samples of a run are read to learn from it, which takes a while for large ones."""


def known_spread(plan: RunPlan, environment: Environment, runs: Path) -> Spread:
    """Learn from the newest comparable runs below a directory; without any, what is assumed.

    Comparable are runs of several replicates of the same suite and mode, on the same kind of
    processor and device, with the same torch, measured by the same protocol but for how often.
    Scale and dtype may differ: what differs between processes is mostly layout.
    """
    return learn(_comparable(plan, environment, runs)) or ASSUMED_SPREAD


def _comparable(plan: RunPlan, environment: Environment, runs: Path) -> Iterator[list[Record]]:
    directories = sorted((path for path in runs.iterdir() if path.is_dir()), reverse=True)
    wanted, taken = _traits(plan, environment), 0
    for directory in directories[:_RUNS_LOOKED_AT]:
        with suppress(store.StoreError):
            manifest = store.read_manifest(directory)
            several = manifest.plan.protocol.most_replicates > 1
            if several and _traits(manifest.plan, manifest.environment) == wanted:
                yield store.read_records(directory)
                taken += 1
        if taken == _RUNS_READ:
            return


def _traits(plan: RunPlan, environment: Environment) -> tuple[object, ...]:
    protocol = plan.protocol
    return (
        plan.suite,
        not TIMING.isdisjoint(plan.experiments),
        (plan.cases[0].device, plan.cases[0].mode, plan.threads),
        (environment.cpu, environment.cpus, environment.packages.get("torch")),
        (protocol.allocator, protocol.start_method, protocol.arm_budget_s, protocol.calls),
    )
