"""The largest batch a model runs at here, and how fast it is on the way there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.batch_sizes.summary import size_of
from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.results.values.metrics import BATCH_SIZE, LATENCY
from dynamometer.results.values.records import PASSED, ArmResult, Stage

if TYPE_CHECKING:
    from dynamometer.common.studies.experiment import Context

_FEWEST, _CALLS = 2, 5
_ENOUGH_S = 1.0


@dataclass(frozen=True)
class BatchSizesExperiment(InOneProcess):
    """The search of `--find-batch-sizes`: replicate `k` runs eager at batch size 2 to the `k`.

    Each size has a process of its own, so that one too large takes nothing found before with it,
    and the search ends with the first that does not pass.
    """

    def measure(self, context: Context) -> Findings:
        """Load the model at the replicate's batch size, and take a few steps."""
        from dynamometer.common.measuring import arms  # imports torch, which the parent doesn't

        size = size_of(context.job.replicate)
        case = msgspec.structs.replace(context.job.case, batch_size=size)
        sized = replace(context, job=msgspec.structs.replace(context.job, case=case))
        (arm,) = context.job.arms
        with context.stages.at(Stage.LOAD):
            loaded = sized.load()
        with context.stages.at(Stage.EAGER, arm):
            step = arms.compiled_step(sized, loaded, arm)
            watch = arms.stopwatch(sized)
            samples = [watch.mean_s(step.call, 1)]
            while len(samples) < _FEWEST or (len(samples) <= _CALLS and sum(samples) < _ENOUGH_S):
                samples.append(watch.mean_s(step.call, 1))
        return Findings(
            outcome=PASSED,
            arms=(ArmResult(arm=arm, outcome=PASSED),),
            measurements=(
                BATCH_SIZE.measured(arm, [float(size)]),
                LATENCY.measured(arm, samples[1:]),  # the first also touches memory anew
            ),
            notes=loaded.notes,
            device_name=context.device.name,
        )
