"""What earlier runs on this machine tell of how far its processes differ."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import DynamometerError
from dynamometer.results.statistics.between_processes import learnt, scatters
from dynamometer.results.statistics.replicates import is_assumed
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dynamometer.results.statistics.scatter import Scatter
    from dynamometer.results.values.cases import RunPlan
    from dynamometer.results.values.records import BetweenProcessSd, Environment, Manifest

_RUNS_LOOKED_AT = 100
_ENOUGH_DF = 100.0
"""Of variances that were learnt from, of each arm. All samples of a run are read for that, so no
more than a calibration or a suite teaches; runs that teach little don't take the place of one that
does."""

_UNUSABLE = (
    StoreError, DynamometerError, msgspec.MsgspecError, ArithmeticError, AttributeError,
    LookupError, ValueError,
)  # fmt: skip
"""What comes of an earlier run that is damaged, of a plugin that is gone or of another version, or
holds nonsense: it teaches nothing, and hinders no other."""


def known_between_sds(
    plan: RunPlan, environment: Environment, runs: Path
) -> dict[str, BetweenProcessSd]:
    """Learn from the newest comparable runs below a directory, of each arm that they know enough.

    Comparable are runs of several replicates of the same suite and mode, on the same kind of
    processor and device, with the same torch, measured by the same protocol but for how often.
    Scale and dtype may differ: what differs between processes is mostly layout. An arm learns of
    its own alone, as arms differ in how far their processes do.
    """
    arms = {arm for case in plan.cases for arm in case.arms[1:]}
    found: dict[str, list[Scatter]] = {arm: [] for arm in sorted(arms)}
    for manifest, directory in _comparable(plan, environment, runs):
        lacking = {arm for arm, series in found.items() if not _is_enough(series)}
        if not lacking:
            break
        with suppress(*_UNUSABLE), registry.named("studies", manifest.plan.study):
            _learn(found, lacking, manifest, directory)
    known = {arm: learnt(series) for arm, series in found.items()}
    return {arm: between_sd for arm, between_sd in known.items() if not is_assumed(between_sd)}


def _is_enough(series: Iterable[Scatter]) -> bool:
    return math.fsum(each.df for each in series) >= _ENOUGH_DF


def _learn(
    found: dict[str, list[Scatter]], lacking: set[str], manifest: Manifest, directory: Path
) -> None:
    """Add what a run tells of arms of which too little is known."""
    study = registry.study(manifest.plan.study)
    told = {arm for case in manifest.plan.cases for arm in study.taught_arms(case)}
    if wanted := lacking & told:  # to read all samples takes a while
        records = [study.comparable(each) for each in store.read_records(directory)]
        for arm in sorted(wanted):
            with suppress(*_UNUSABLE):
                found[arm] += scatters(records, arm)


def _comparable(
    plan: RunPlan, environment: Environment, runs: Path
) -> Iterator[tuple[Manifest, Path]]:
    directories = sorted((path for path in runs.iterdir() if path.is_dir()), reverse=True)
    wanted = _traits(plan, environment)
    for directory in directories[:_RUNS_LOOKED_AT]:
        with suppress(*_UNUSABLE):
            manifest = store.read_manifest(directory)
            several = manifest.plan.protocol.most_replicates > 1
            with registry.named("studies", manifest.plan.study):
                is_alike = several and _traits(manifest.plan, manifest.environment) == wanted
            if is_alike:
                yield manifest, directory


_VARIABLES = ("CUDA_VISIBLE_DEVICES", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
"""They choose the device and the threads where the command line doesn't."""


def _traits(plan: RunPlan, environment: Environment) -> tuple[object, ...]:
    protocol = plan.protocol
    return (
        plan.suite,
        (registry.study(plan.study).is_timed, plan.busy),
        (plan.cases[0].device, plan.cases[0].mode, plan.threads),
        (environment.cpu, environment.cpus, environment.packages.get("torch")),
        tuple(environment.variables.get(each) for each in _VARIABLES),
        (protocol.allocator, protocol.start_method, protocol.arm_budget_s, protocol.calls),
        plan.executor,
    )
