"""How long a run will take, before it starts: from earlier runs, or else a rough guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common import registry
from dynamometer.common.studies.study import skip_reason
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.cases import BASELINE, Scale
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.values.cases import Case, RunPlan

_RUNS_READ = 20
_START_S = 10.0
LATER_REPLICATE_SHARE = 0.5
"""Of what a first replicate takes."""

_GUESS_S = {BASELINE: 3.0, "inductor": 12.0}
_OTHER_ARM_S = 4.0
_SCALE_FACTOR = {Scale.TINY: 0.6, Scale.SMALL: 1.0, Scale.FULL: 2.0}
"""Guesses for two cores (docs/measuring.md); earlier runs replace them."""


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds a run may take, and for how many of its cases earlier runs were consulted."""

    seconds: float
    known_cases: int


def estimate(plan: RunPlan, left: Sequence[Case], runs: Path) -> TimeEstimate:
    """Add up what cases took in earlier runs below a directory, guessing the unknown.

    Args:
        plan: of the run.
        left: the cases of it that are still to be run.
        runs: the directory that holds run directories.
    """
    history = _history(runs, plan.study)
    study = registry.study(plan.study)
    cases = [case for case in left if skip_reason(study, plan, case) is None]
    if not cases:
        return TimeEstimate(0.0, 0)
    repeats = 1 + LATER_REPLICATE_SHARE * (plan.protocol.replicates - 1)
    first_s = [history.get(case.id, study.cost_factor * _guess_s(case)) for case in cases]
    known = sum(case.id in history for case in cases)
    return TimeEstimate(_START_S + repeats * sum(first_s) / min(plan.jobs, len(cases)), known)


def longest_first(plan: RunPlan, runs: Path) -> list[Case]:
    """Return the cases of a plan, those first that may take longest; equals stay in its order.

    Args:
        plan: of the run.
        runs: the directory that holds run directories.
    """
    history, study = _history(runs, plan.study), registry.study(plan.study)

    def seconds(case: Case) -> float:
        if skip_reason(study, plan, case):
            return 0.0
        return history.get(case.id, study.cost_factor * _guess_s(case))

    return sorted(plan.cases, key=seconds, reverse=True)


def _history(runs: Path, study: str) -> dict[str, float]:
    """Return the seconds of a study's first replicates by case id, the newest run's last."""
    found: dict[str, float] = {}
    try:
        directories = sorted(path for path in runs.iterdir() if path.is_dir())[-_RUNS_READ:]
    except OSError:
        return found
    for directory in directories:
        try:
            records = store.read_records(directory)
        except StoreError:
            continue
        found.update(
            (record.case.id, sum(record.seconds.values()))
            for record in records
            if record.study == study
            and record.replicate == 0
            and record.outcome.status is not Status.SKIP
        )
    return found


def _guess_s(case: Case) -> float:
    return _SCALE_FACTOR[case.scale] * sum(map(_guess_of_arm_s, case.arms))


def _guess_of_arm_s(arm: str) -> float:
    """Guess by the compiler named in the arm's name, as in `my_package.inductor:tuned`."""
    return _GUESS_S.get(arm, _GUESS_S["inductor"] if "inductor" in arm else _OTHER_ARM_S)
