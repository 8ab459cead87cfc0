"""The graphs of each model, recorded in one process that times nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.results.values.graphs import RecordedModel
from dynamometer.results.values.records import PASSED, ArmResult, Stage, packed

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.cases import Value


@dataclass(frozen=True)
class GraphsExperiment(InOneProcess):
    """The experiment of `--record-graphs`: two steps, whose graphs are saved."""

    finds: ClassVar[type[Value]] = RecordedModel

    def measure(self, context: Context) -> Findings:
        """Load the model, and keep what is recorded of it."""
        record = self.recorder()
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

    def recorder(self) -> Callable[[Context, LoadedModel], Value]:
        """Return what takes steps of a model and tells its graphs."""
        # It imports torch, which the parent doesn't.
        from dynamometer.common.studies.graphs.worker import record

        return record
