"""Latency of arms that may disturb each other, each in isolated runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.randomness import seeded_rng
from dynamometer.common.studies.experiment import WorkerSpec, only_missing
from dynamometer.common.studies.speedup.isolated_runs import isolated_runs_of, latencies_of
from dynamometer.results.statistics.interference import (
    LONGEST_DISTURBANCE,
    disturb_each_other,
    shifts,
)
from dynamometer.results.statistics.replicates import disturbed_share_of
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.metrics import LATENCY, LATENCY_ISOLATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.cases import Case, RunPlan


@dataclass(frozen=True)
class Isolated:
    """The speedup experiment again, for arms that compare otherwise in blocks than alone."""

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[WorkerSpec, ...]:
        """Let every arm that was timed have its isolated runs, in balanced order drawn at random.

        None where the arms did not disturb each other, nor where something else did: that would
        disturb isolated runs as well.
        """
        latencies = latencies_of(found)
        if BASELINE not in latencies or not _disturb_each_other(found):
            return ()
        return isolated_runs_of(latencies, plan, seeded_rng(plan.seed, replicate, case.id, "turns"))

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Leave the case as it is: only this run of the arm is missing."""
        return only_missing(LATENCY_ISOLATED.name, findings, arms)

    def measure(self, context: Context) -> Findings:
        """Load, compile, warm up, and time one arm."""
        from dynamometer.common.studies.speedup.worker import measure_isolated  # imports torch

        return measure_isolated(context)


def _disturb_each_other(found: Sequence[Findings]) -> bool:
    """Return whether arms do, of blocks most of which nothing else disturbed."""
    for part in found:
        too_many = disturbed_share_of(part, LATENCY.name) > LONGEST_DISTURBANCE
        shifted = shifts(part.measurements, part.disturbed_blocks)
        if not too_many and disturb_each_other([shifted]):
            return True
    return False
