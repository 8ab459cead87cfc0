"""Each model in eager and compiled, in one process that times nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.results.values.parity import NOT_BUILT, NOT_IMPORTED, NOT_RUN
from dynamometer.results.values.records import ArmResult, Outcome, Stage, Status

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context


@dataclass(frozen=True)
class ParityExperiment(InOneProcess):
    """The experiment of `--parity`: what `parity.py` does."""

    def measure(self, context: Context) -> Findings:
        """Run eager, then every arm."""
        from dynamometer.common.studies.parity.worker import (
            judge,  # imports torch, which the parent doesn't
        )

        return judge(context)

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Skip a model that fails before anything is compiled: that is nothing of Dynamo's."""
        found = findings.outcome
        if found.stage not in {Stage.LOAD, Stage.EAGER} or not found.is_fault:
            return super().salvage(findings, arms)
        reason = found.reason or str(found.status)
        if not reason.startswith((NOT_IMPORTED, NOT_BUILT, NOT_RUN)):
            reason = f"it does not run in eager: {reason}"
        outcome = Outcome(status=Status.SKIP, stage=found.stage, reason=reason, detail=found.detail)
        results = tuple(ArmResult(arm=arm, outcome=outcome) for arm in arms)
        return msgspec.structs.replace(findings, outcome=outcome, arms=results)
