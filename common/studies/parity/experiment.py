"""Each model in eager and compiled, in one process that times nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import msgspec

from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.results.store.reading import BAD_JSON
from dynamometer.results.values.parity import (
    NOT_BUILT,
    NOT_IMPORTED,
    NOT_RUN,
    UNDER_WAY,
    Parity,
)
from dynamometer.results.values.records import ArmResult, Outcome, Stage, Status, packed

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context


@dataclass(frozen=True)
class ParityExperiment(InOneProcess):
    """The experiment of `--parity`: what `parity.py` does."""

    finds: ClassVar = Parity

    def measure(self, context: Context) -> Findings:
        """Run eager, then every arm."""
        from dynamometer.common.studies.parity.worker import (
            judge,  # imports torch, which the parent doesn't
        )

        return judge(context)

    def ended(self, kept: Findings, outcome: Outcome) -> Findings:
        """Say of the arm that was run as one graph how its process ended; the others stand."""
        try:
            found = msgspec.json.decode(kept.found, type=Parity)
        except BAD_JSON:  # as of code that says what it likes
            return kept
        full = tuple(
            msgspec.structs.replace(each, outcome=outcome) if each.outcome == UNDER_WAY else each
            for each in found.full_graph
        )
        parity = msgspec.structs.replace(found, full_graph=full)
        return msgspec.structs.replace(kept, found=packed(parity))

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
