"""The isolated runs of a calibration: arms of known effect, each in processes of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.randomness import seeded_rng
from dynamometer.common.studies.calibration.arms import IN_ISOLATION
from dynamometer.common.studies.speedup.isolated import Isolated
from dynamometer.common.studies.speedup.isolated_runs import isolated_runs_of, latencies_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import WorkerSpec
    from dynamometer.results.values.cases import Case, RunPlan


@dataclass(frozen=True)
class InIsolation(Isolated):
    """The same of a calibration's arms, though they don't disturb each other."""

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[WorkerSpec, ...]:
        """Return the arms of each group their isolated runs."""
        latencies = latencies_of(found)
        rng = seeded_rng(plan.seed, replicate, case.id, "turns")
        groups = [
            {arm: latencies[arm] for arm in group if arm in latencies} for group in IN_ISOLATION
        ]
        return tuple(process for group in groups for process in isolated_runs_of(group, plan, rng))
