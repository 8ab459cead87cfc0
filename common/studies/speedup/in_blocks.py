"""Latency of every arm of a case, in blocks within one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.metrics import COMPILE_TIME, COMPILE_TIME_WARM, LATENCY
from dynamometer.results.values.records import Absence, ArmResult, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.records import Measurement, Outcome

_COMPILE_TIMES = frozenset({COMPILE_TIME, COMPILE_TIME_WARM})


@dataclass(frozen=True)
class Speedup(InOneProcess):
    """The speedup experiment: compile time, correctness, then latencies in blocks."""

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Give every arm the outcome of the case where it has none, and say what is missing."""
        salvaged = super().salvage(findings, arms)
        absent = absences(salvaged.arms, salvaged.measurements)
        return msgspec.structs.replace(salvaged, absent=absent)

    def measure(self, context: Context) -> Findings:
        """Build the arms in random order on a randomly padded heap, then visit them in blocks."""
        from dynamometer.common.studies.speedup.worker import (
            measure,  # imports torch, which the parent doesn't
        )

        return measure(context)


def absences(
    results: Sequence[ArmResult], measurements: Sequence[Measurement]
) -> tuple[Absence, ...]:
    """Say for each arm which latency and compile time are missing, and why."""
    absent = []
    for result in results:
        found = {each.metric for each in measurements if each.arm == result.arm}
        missing = [] if LATENCY in found else [LATENCY]
        if result.arm != BASELINE and not found & _COMPILE_TIMES:
            missing.append(COMPILE_TIME)
        absent += [
            Absence(metric=each, arm=result.arm, reason=_why_missing(each, result.outcome))
            for each in missing
        ]
    return tuple(absent)


def _why_missing(metric: str, outcome: Outcome) -> str:
    if outcome.status is not Status.PASS:
        return outcome.reason or str(outcome.status)
    if metric == COMPILE_TIME:
        return "its graphs were in the caches, which another arm had filled"
    return "there was no other arm to compare it with"
