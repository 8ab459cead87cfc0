"""Peak memory of each arm, each in a process of its own under the stock allocator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.experiment import Process, only_missing
from dynamometer.common.messages import Findings
from dynamometer.results.cases import Allocator
from dynamometer.results.metrics import LOADED_MEMORY, PEAK_MEMORY
from dynamometer.results.records import PASSED, Measurement, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.experiment import Context
    from dynamometer.results.cases import Case, RunPlan

_CALLS = 3


@dataclass(frozen=True)
class Memory:
    """Peak memory while a compiled arm is called, beyond what the loaded model takes.

    On a CPU that is the resident set; on a GPU what torch's allocator handed out. What compiling
    itself needed for a while is not counted, what it leaves behind is.
    """

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[Process, ...]:
        """Give each arm a process, once: memory is measured with the first replicate.

        Under the stock policy, as one that keeps freed memory would hide the peak.
        """
        del plan, found
        if replicate > 0:
            return ()
        return tuple(Process((arm,), Allocator.STOCK) for arm in case.arms)

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Leave the case as it is: only the memory of these arms is missing."""
        return only_missing(PEAK_MEMORY, findings, arms)

    def measure(self, context: Context) -> Findings:
        """Load, note the baseline, compile, then call and read the peak."""
        from dynamometer.common import arms  # imports torch, which the parent doesn't
        from dynamometer.dynamo import state

        (arm,) = context.job.arms
        device, stages = context.device, context.stages
        with stages.at(Stage.LOAD):
            empty_bytes = device.used_bytes()
            loaded = context.load()
            device.release_cached()
            loaded_bytes = device.used_bytes()
        with stages.at(Stage.COMPILE, arm):
            step = arms.compiled_step(context, loaded, arm)
            step.call()
            device.synchronize()
        with stages.at(Stage.MEASURE, arm):
            device.release_cached()
            device.reset_peak()
            for _ in range(_CALLS):
                state.seed_everything(context.job.seed)
                step.call()
            device.synchronize()
            peak_bytes = device.peak_bytes()
        return Findings(
            outcome=PASSED,
            measurements=(
                _bytes(LOADED_MEMORY, arm, max(0, loaded_bytes - empty_bytes)),
                _bytes(PEAK_MEMORY, arm, max(0, peak_bytes - loaded_bytes)),
            ),
            device_name=device.name,
        )


def _bytes(metric: str, arm: str, count: int) -> Measurement:
    return Measurement(metric=metric, unit="B", arm=arm, samples=(float(count),))
