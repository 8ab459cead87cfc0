"""How long a run will take, before it starts: from earlier runs, or else a rough guess."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from dynamometer.common import registry
from dynamometer.common.studies.study import skip_reason
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.cases import BASELINE, Mode, Scale
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from dynamometer.common.studies.study import Study
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.records import Record

_RUNS_READ = 20
_START_S = 10.0
LATER_REPLICATE_SHARE = 0.5
"""Of what a first replicate takes."""

_GUESS_S = {BASELINE: 3.0, "inductor": 12.0}
_OTHER_ARM_S = 4.0
_SCALE_FACTOR = {Scale.TINY: 0.6, Scale.SMALL: 1.0, Scale.FULL: 2.0}
_MODE_FACTOR = {Mode.INFERENCE: 1.0, Mode.TRAINING: 2.0}
"""A backward is compiled as well, and takes longer than its forward.

Guesses for two cores (docs/measuring.md); earlier runs replace them.
"""


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds a run may take, and how many of its cases are known from earlier runs."""

    seconds: float
    known_cases: int


def estimate(plan: RunPlan, left: Sequence[Case], runs: Path) -> TimeEstimate:
    """Add up what cases took in earlier runs below a directory, guessing the unknown.

    Args:
        plan: of the run.
        left: the cases of it that are still to be run.
        runs: the directory that holds run directories.
    """
    history = _History.read(runs, plan.study)
    study = registry.study(plan.study)
    cases = [case for case in left if skip_reason(study, plan, case) is None]
    if not cases:
        return TimeEstimate(0.0, 0)
    repeats = 1 + LATER_REPLICATE_SHARE * (plan.protocol.replicates - 1)
    first_s = [history.expected_s(case, study) for case in cases]
    known = sum(case.id in history.seconds for case in cases)
    return TimeEstimate(_START_S + repeats * sum(first_s) / min(plan.jobs, len(cases)), known)


def longest_first(plan: RunPlan, runs: Path) -> list[Case]:
    """Return the cases of a plan, those first that may take longest; equals stay in its order.

    Args:
        plan: of the run.
        runs: the directory that holds run directories.
    """
    history, study = _History.read(runs, plan.study), registry.study(plan.study)

    def seconds(case: Case) -> float:
        return 0.0 if skip_reason(study, plan, case) else history.expected_s(case, study)

    return sorted(plan.cases, key=seconds, reverse=True)


class _Kind(NamedTuple):
    """What cases have in common that take about as long, whatever their model."""

    arms: tuple[str, ...]
    mode: Mode
    scale: Scale
    device: str

    @classmethod
    def of(cls, case: Case) -> Self:
        return cls(case.arms, case.mode, case.scale, case.device)


@dataclass(frozen=True)
class _History:
    """What the first replicates of a study's cases took.

    Attributes:
        seconds: by case id, of the newest run that has it.
        of_kind: of cases with other models that are like it, their median.
    """

    seconds: Mapping[str, float]
    of_kind: Mapping[_Kind, float]

    @classmethod
    def read(cls, runs: Path, study: str) -> Self:
        """Read the newest runs below a directory; what can't be read teaches nothing."""
        newest = {record.case.id: record for record in _first_replicates(runs, study)}
        seconds = {name: sum(record.seconds.values()) for name, record in newest.items()}
        of_kind: defaultdict[_Kind, list[float]] = defaultdict(list)
        for name, record in newest.items():
            if record.outcome.status is Status.PASS:  # others may have failed at once
                of_kind[_Kind.of(record.case)].append(seconds[name])
        return cls(seconds, {kind: median(each) for kind, each in of_kind.items()})

    def expected_s(self, case: Case, study: Study) -> float:
        """Return what a case took, else what others like it did, else a guess."""
        known = self.seconds.get(case.id, self.of_kind.get(_Kind.of(case)))
        return study.cost_factor * _guess_s(case) if known is None else known


def _first_replicates(runs: Path, study: str) -> Iterator[Record]:
    """Give those of the newest runs below a directory that were not skipped, the newest last."""
    try:
        directories = sorted(path for path in runs.iterdir() if path.is_dir())[-_RUNS_READ:]
    except OSError:
        return
    for directory in directories:
        try:
            records = store.read_records(directory)
        except StoreError:
            continue
        for record in records:
            is_first = record.study == study and record.replicate == 0
            if is_first and record.outcome.status is not Status.SKIP:
                yield record


def _guess_s(case: Case) -> float:
    factor = _SCALE_FACTOR[case.scale] * _MODE_FACTOR[case.mode]
    return factor * sum(map(_guess_of_arm_s, case.arms))


def _guess_of_arm_s(arm: str) -> float:
    """Guess by the compiler named in the arm's name, as in `my_package.inductor:tuned`."""
    return _GUESS_S.get(arm, _GUESS_S["inductor"] if "inductor" in arm else _OTHER_ARM_S)
