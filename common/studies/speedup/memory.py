"""Memory of each arm, each in a process of its own under the stock allocator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.machine import allocator
from dynamometer.common.studies.experiment import WorkerSpec, only_missing
from dynamometer.results.values.metrics import CALLS_MEMORY, LOADED_MEMORY, RESIDUE_MEMORY
from dynamometer.results.values.records import PASSED, Stage
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.checking.steps import Step
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.metrics import Metric
    from dynamometer.results.values.records import Measurement

_FIRST_CALLS, _CALLS = 3, 3

_REPLICATES = 2
"""Of a case: processes differ by some tenths of a MiB, and each costs one more for each arm
(docs/decisions/0010-memory.md)."""


@dataclass(frozen=True)
class Memory:
    """What the loaded model takes, what compiling leaves behind, and what calls take beyond both.

    On a CPU that is the resident set, under a `malloc` that keeps no large block; on a GPU what
    torch's allocator handed out. What compiling itself needed for a while is not counted. Eager
    compiles nothing, but its first calls leave something behind, too (code of libraries, tables of
    theirs), so it is measured in the same way.
    """

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[WorkerSpec, ...]:
        """Give each arm a process in each of the first replicates.

        Under the stock policy, as one that keeps freed memory would hide the peak.
        """
        del plan, found
        if replicate >= _REPLICATES:
            return ()
        return tuple(WorkerSpec((arm,), Allocator.STOCK) for arm in case.arms)

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Leave the case as it is: only the memory of these arms is missing."""
        return only_missing(CALLS_MEMORY.name, findings, arms)

    def measure(self, context: Context) -> Findings:
        """Load, compile, see what that leaves behind, then read the peak of some calls."""
        from dynamometer.common.measuring import arms  # imports torch, which the parent doesn't

        allocator.pin_mmap_threshold()
        (arm,) = context.job.arms
        device, stages = context.device, context.stages
        with stages.at(Stage.LOAD):
            empty_bytes = device.used_bytes()
            loaded = context.load()
            device.release_cached()
            loaded_bytes = device.used_bytes()
        with stages.at(Stage.COMPILE, arm):
            step = arms.compiled_step(context, loaded, arm)
            for _ in range(_FIRST_CALLS):
                step.call()
            device.synchronize()
        with stages.at(Stage.MEASURE, arm):
            steady_bytes = _steady_bytes(context, step)
            calls_bytes = [_call_bytes(context, step) for _ in range(_CALLS)]
        return Findings(
            outcome=PASSED,
            measurements=(
                _bytes(LOADED_MEMORY, arm, loaded_bytes - empty_bytes),
                _bytes(RESIDUE_MEMORY, arm, steady_bytes - loaded_bytes),
                _bytes(CALLS_MEMORY, arm, *calls_bytes),
            ),
            device_name=device.name,
        )


def _steady_bytes(context: Context, step: Step) -> int:
    """Return the memory in use between calls, with nothing held that a call makes anew."""
    step.loaded.module.zero_grad(set_to_none=True)  # as a training step begins
    context.device.release_cached()
    return context.device.used_bytes()


def _call_bytes(context: Context, step: Step) -> int:
    """Return the most memory in use during a call, beyond what was before.

    Before each the heap is trimmed: holes that earlier calls left in it are of the allocator's
    making, and differ between processes that run the same kernels.
    """
    from dynamometer.dynamo import state

    state.seed_everything(context.job.seed)
    steady_bytes = _steady_bytes(context, step)
    context.device.reset_peak()
    step.call()
    context.device.synchronize()
    return context.device.peak_bytes() - steady_bytes


def _bytes(metric: Metric, arm: str, *counts: int) -> Measurement:
    """Make a measurement; pages that were given back meanwhile make none of it negative."""
    return metric.measured(arm, [float(max(0, count)) for count in counts])
