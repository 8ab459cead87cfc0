"""Correctness alone: every arm of a case against eager, in one process, with nothing timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.machine import allocator
from dynamometer.common.studies.experiment import InOneProcess, WorkerSpec
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.cases import Case, RunPlan

_LARGE_BYTES = 2**20
"""Not 128 KiB: Linux lets a process have 65,530 mappings by default (`vm.max_map_count`), which at
1 MiB each or more come to 64 GiB."""


@dataclass(frozen=True)
class AccuracyExperiment(InOneProcess):
    """The accuracy experiment: what `--accuracy` does."""

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[WorkerSpec, ...]:
        """Take all arms in one process, which gives freed memory back.

        Keeping it is for steady timing. Where it is kept, a run in float64 between those in float32
        leaves holes that nothing fits. glibc's stock heap gets such holes, too; therefore `measure`
        has large blocks mapped.
        """
        del replicate, found
        wanted = plan.protocol.allocator
        given = Allocator.STOCK if wanted is Allocator.KEEP else wanted
        return (WorkerSpec(case.arms, given),)

    def measure(self, context: Context) -> Findings:
        """Compile every arm and compare."""
        allocator.pin_mmap_threshold(_LARGE_BYTES)
        from dynamometer.common.studies.accuracy.worker import (
            check,  # imports torch, which the parent doesn't
        )

        return check(context)
