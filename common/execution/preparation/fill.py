"""What an earlier process leaves in the graph caches, where compile times are to be warm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.experiment import WorkerSpec
from dynamometer.results.values.records import PASSED, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.checking.steps import Step
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.cases import Case, RunPlan

_STEPS = 3
"""Enough for what is compiled at a second call as well: models keep tables of their first one."""


@dataclass(frozen=True)
class Fill:
    """The experiment that fills the caches of a case's graphs, which `--warm` asks for.

    It compiles every arm in a few steps; nothing is measured, and what fails will fail again in its
    place.
    """

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[WorkerSpec, ...]:
        """Give each arm a process, so that none takes the others with it."""
        del replicate, found
        return tuple(WorkerSpec((arm,), plan.protocol.allocator) for arm in case.arms[1:])

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Leave it at that."""
        del arms
        return findings

    def measure(self, context: Context) -> Findings:
        """Load, compile, and take steps."""
        from dynamometer.common.interfaces.outcome import attempt
        from dynamometer.common.measuring import arms  # imports torch, which the parent doesn't

        (arm,) = context.job.arms
        with context.stages.at(Stage.LOAD):
            loaded = context.load()
        with context.stages.at(Stage.COMPILE, arm):
            step = arms.compiled_step(context, loaded, arm)
            attempt(context.stages, partial(_take, step))
        return Findings(outcome=PASSED)


def _take(step: Step) -> None:
    for _ in range(_STEPS):
        step.call()
