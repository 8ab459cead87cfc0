"""Latency at each of several sizes, of what was compiled for all of them and for it alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.studies.experiment import InOneProcess

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context


@dataclass(frozen=True)
class SizesExperiment(InOneProcess):
    """The experiment of `--sweep-sizes`."""

    def measure(self, context: Context) -> Findings:
        """Observe what Dynamo makes of all sizes, then time each in blocks of its own."""
        from dynamometer.common.studies.sizes.worker import (
            sweep,  # imports torch, which the parent doesn't
        )

        return sweep(context)
