"""The speedup experiment of a calibration: arms of known effect, two by two as in a run of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.studies.calibration.arms import PAIRS
from dynamometer.common.studies.speedup.in_blocks import SpeedupExperiment

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context


@dataclass(frozen=True)
class InPairs(SpeedupExperiment):
    """Latencies in blocks of two arms, of each pair one after the other.

    Were all arms in the same blocks, the two of a pair would be timed farther from each other
    than they are in a run of one backend, and differ by more where the machine's speed varies.
    """

    def measure(self, context: Context) -> Findings:
        """Build all arms in random order, then time those of each pair in turn."""
        from dynamometer.common.studies.speedup.worker import (
            measure,  # imports torch, which the parent doesn't
        )

        return measure(context, tuple(PAIRS))
