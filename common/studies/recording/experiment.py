"""The graphs of a model, recorded in one process that times nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dynamometer.common.studies.graphs.experiment import GraphsExperiment
from dynamometer.results.values.decisions import Recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.cases import Value


@dataclass(frozen=True)
class RecordingExperiment(GraphsExperiment):
    """Records graphs, but only of models that have no decision yet."""

    finds: ClassVar[type[Value]] = Recorded

    def recorder(self) -> Callable[[Context, LoadedModel], Value]:
        """Return what takes steps of a model that isn't decided on, and tells its graphs."""
        # It imports torch, which the parent doesn't.
        from dynamometer.common.studies.recording.worker import record

        return record
