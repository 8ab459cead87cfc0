"""Correctness alone: every arm of a case against eager, in one process, with nothing timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.experiment import Process
from dynamometer.results.records import ArmResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.experiment import Context
    from dynamometer.common.messages import Findings
    from dynamometer.results.cases import Case, RunPlan


@dataclass(frozen=True)
class Accuracy:
    """The accuracy experiment: what `--accuracy` does."""

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[Process, ...]:
        """Check all arms in one process, in every replicate."""
        del replicate, found
        return (Process(case.arms, plan.protocol.allocator),)

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Give every arm the outcome of the case where it has none of its own."""
        if findings.arms:
            return findings
        results = tuple(ArmResult(arm=arm, outcome=findings.outcome) for arm in arms)
        return msgspec.structs.replace(findings, arms=results)

    def measure(self, context: Context) -> Findings:
        """Compile every arm and compare."""
        from dynamometer.common.measuring import check  # imports torch, which the parent doesn't

        return check(context)
