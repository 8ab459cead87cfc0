"""Latency of every arm of a case, in blocks within one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.experiment import Process
from dynamometer.results.schema import ArmResult

if TYPE_CHECKING:
    from dynamometer.common.experiment import Context
    from dynamometer.common.messages import Findings
    from dynamometer.results.schema import Case, RunPlan


@dataclass(frozen=True)
class Speedup:
    """The speedup experiment: compile time, correctness, then latencies in blocks."""

    def processes(self, case: Case, plan: RunPlan, replicate: int) -> tuple[Process, ...]:
        """Measure all arms in one process, in every replicate."""
        del replicate
        return (Process(case.arms, plan.protocol.allocator),)

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Give every arm the outcome of the case where it has none of its own."""
        if findings.arms:
            return findings
        results = tuple(ArmResult(arm=arm, outcome=findings.outcome) for arm in arms)
        return msgspec.structs.replace(findings, arms=results)

    def measure(self, context: Context) -> Findings:
        """Build the arms in random order on a randomly padded heap, then visit them in blocks."""
        from dynamometer.common.measuring import measure  # imports torch, which the parent doesn't

        return measure(context)
