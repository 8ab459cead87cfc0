"""Latency of every arm of a case, in blocks within one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.common.studies.speedup.absences import absences

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context


@dataclass(frozen=True)
class SpeedupExperiment(InOneProcess):
    """The speedup experiment: compile time, correctness, then latencies in blocks."""

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Give every arm the outcome of the case where it has none, and say what is missing.

        A worker that lived knows better than anybody why.
        """
        salvaged = super().salvage(findings, arms)
        said = {(each.metric, each.arm) for each in salvaged.absent}
        more = absences(salvaged.arms, salvaged.measurements)
        absent = (*salvaged.absent, *(each for each in more if (each.metric, each.arm) not in said))
        return msgspec.structs.replace(salvaged, absent=absent)

    def measure(self, context: Context) -> Findings:
        """Build the arms in random order on a randomly padded heap, then time them in blocks."""
        from dynamometer.common.studies.speedup.worker import (
            measure,  # imports torch, which the parent doesn't
        )

        return measure(context)
