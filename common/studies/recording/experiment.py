"""The graphs of a model, recorded in one process that times nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.results.values.records import PASSED, ArmResult, Stage, packed

if TYPE_CHECKING:
    from dynamometer.common.studies.experiment import Context


@dataclass(frozen=True)
class Recording(InOneProcess):
    """One step of each model, whose graphs are saved and run as they are."""

    def measure(self, context: Context) -> Findings:
        """Load the model; unless it is decided on, take a step and keep its graphs."""
        # It imports torch, which the parent doesn't.
        from dynamometer.common.studies.recording.worker import record

        with context.stages.at(Stage.LOAD):
            loaded = context.load()
        with context.stages.at(Stage.COMPILE):
            found = record(context, loaded)
        return Findings(
            outcome=PASSED,
            arms=tuple(ArmResult(arm=arm, outcome=PASSED) for arm in context.job.arms),
            found=packed(found),
            notes=loaded.notes,
            device_name=context.device.name,
        )
