"""The experiment of tuning, as the parent sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dynamometer.common.studies.speedup.in_blocks import SpeedupExperiment
from dynamometer.results.values.decisions import Tuned

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context


@dataclass(frozen=True)
class TuningExperiment(SpeedupExperiment):
    """Candidates beside eager, in blocks, on the inputs of the case and on others like them."""

    finds: ClassVar = Tuned

    def measure(self, context: Context) -> Findings:
        """Measure as for a speedup, and say what it is of."""
        from dynamometer.common.studies.tuning.worker import measure  # imports torch

        return measure(context)
