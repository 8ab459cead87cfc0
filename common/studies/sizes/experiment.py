"""Latency at each of several sizes, of what was compiled for all of them and for it alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import msgspec

from dynamometer.common.studies.experiment import InOneProcess
from dynamometer.results.values.records import Stage
from dynamometer.results.values.sizes import NOT_REACHED, SizeSweep

if TYPE_CHECKING:
    from dynamometer.common.interfaces.messages import Findings
    from dynamometer.common.studies.experiment import Context
    from dynamometer.results.values.records import Outcome


@dataclass(frozen=True)
class SizesExperiment(InOneProcess):
    """The experiment of `--sweep-sizes`."""

    finds: ClassVar = SizeSweep

    def measure(self, context: Context) -> Findings:
        """Observe what Dynamo makes of all sizes, then time each in blocks of its own."""
        from dynamometer.common.studies.sizes.worker import (
            sweep,  # imports torch, which the parent doesn't
        )

        return sweep(context)

    def ended(self, kept: Findings, outcome: Outcome) -> Findings:
        """Say of the sizes that were not reached how the process ended; the others stand.

        So does that the arm works, if what is compiled for one size alone ended it, which is built
        apart from it; not where all were being timed, nor where nothing was timed before.
        """
        stands = kept.measurements and outcome.stage is not Stage.MEASURE
        reason = outcome.reason or str(outcome.status)
        absent = tuple(
            msgspec.structs.replace(each, reason=reason) if each.reason == NOT_REACHED else each
            for each in kept.absent
        )
        ended = kept.outcome if stands else outcome
        return msgspec.structs.replace(kept, outcome=ended, absent=absent)
