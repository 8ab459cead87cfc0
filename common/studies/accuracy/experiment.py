"""Correctness alone: every arm of a case against eager, in one process, with nothing timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.studies.experiment import InOneProcess

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context


@dataclass(frozen=True)
class AccuracyExperiment(InOneProcess):
    """The accuracy experiment: what `--accuracy` does."""

    def measure(self, context: Context) -> Findings:
        """Compile every arm and compare."""
        from dynamometer.common.studies.accuracy.worker import (
            check,  # imports torch, which the parent doesn't
        )

        return check(context)
