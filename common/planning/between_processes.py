"""What earlier runs on this machine tell of how far its processes differ."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import UsageError
from dynamometer.results.statistics.between_processes import learnt, scatters
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dynamometer.results.statistics.scatter import Scatter
    from dynamometer.results.values.cases import RunPlan
    from dynamometer.results.values.records import BetweenProcessSd, Environment, Record

_RUNS_LOOKED_AT = 100
_ENOUGH_DF = 100.0
"""Of variances that were learnt from. All samples of a run are read for that, so no more than a
calibration or a suite teaches; runs that teach little don't take the place of one that does."""

_UNUSABLE = (StoreError, UsageError, msgspec.MsgspecError, ArithmeticError, LookupError, ValueError)
"""What comes of an earlier run that is damaged, of a plugin that is gone, or holds nonsense: it
teaches nothing, and hinders no other."""


def known_between_sd(plan: RunPlan, environment: Environment, runs: Path) -> BetweenProcessSd:
    """Learn from the newest comparable runs below a directory; without any, what is assumed.

    Comparable are runs of several replicates of the same suite and mode, on the same kind of
    processor and device, with the same torch, measured by the same protocol but for how often.
    Scale and dtype may differ: what differs between processes is mostly layout.
    """
    found: list[Scatter] = []
    for records in _comparable(plan, environment, runs):
        with suppress(*_UNUSABLE):
            found += scatters(records)
        if math.fsum(each.df for each in found) >= _ENOUGH_DF:
            break
    return learnt(found)


def _comparable(plan: RunPlan, environment: Environment, runs: Path) -> Iterator[list[Record]]:
    directories = sorted((path for path in runs.iterdir() if path.is_dir()), reverse=True)
    wanted = _traits(plan, environment)
    for directory in directories[:_RUNS_LOOKED_AT]:
        records = None
        with suppress(*_UNUSABLE):
            manifest = store.read_manifest(directory)
            several = manifest.plan.protocol.most_replicates > 1
            if several and _traits(manifest.plan, manifest.environment) == wanted:
                study = registry.study(manifest.plan.study)
                records = [study.comparable(each) for each in store.read_records(directory)]
        if records is not None:
            yield records


def _traits(plan: RunPlan, environment: Environment) -> tuple[object, ...]:
    protocol = plan.protocol
    return (
        plan.suite,
        (registry.study(plan.study).is_timed, plan.busy),
        (plan.cases[0].device, plan.cases[0].mode, plan.threads),
        (environment.cpu, environment.cpus, environment.packages.get("torch")),
        (protocol.allocator, protocol.start_method, protocol.arm_budget_s, protocol.calls),
        plan.executor,
    )
