"""What share of each model Dynamo captures, in one process that times nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.results.values.coverage import Coverage
from dynamometer.results.values.records import PASSED, ArmResult, Stage, packed

if TYPE_CHECKING:
    from dynamometer.common.studies.experiment import Context


@dataclass(frozen=True)
class CoverageExperiment(InOneProcess):
    """The experiment of `--coverage`: what of a step is captured, and what is not where."""

    finds: ClassVar = Coverage

    def measure(self, context: Context) -> Findings:
        """Compile the model, run each graph as it is, and count."""
        # These import torch, which the parent doesn't.
        from dynamometer.common.checking.steps import make_step
        from dynamometer.dynamo.capture import coverage

        case, (arm,) = context.job.case, context.job.arms
        with context.stages.at(Stage.LOAD):
            loaded = context.load()
        with context.stages.at(Stage.COMPILE):
            capture = coverage.Capture.of(loaded.module, context.device.synchronize)
            step = make_step(capture.compiled, loaded, case.mode, context.job.seed)
            found = coverage.measure(capture, step.call)
        return Findings(
            outcome=PASSED,
            arms=(ArmResult(arm=arm, outcome=PASSED),),
            found=packed(found),
            notes=loaded.notes,
            device_name=context.device.name,
        )
