"""Correctness alone: every arm of a case against eager, in one process, with nothing timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.experiment import InOneProcess

if TYPE_CHECKING:
    from dynamometer.common.experiment import Context
    from dynamometer.common.messages import Findings


@dataclass(frozen=True)
class Accuracy(InOneProcess):
    """The accuracy experiment: what `--accuracy` does."""

    def measure(self, context: Context) -> Findings:
        """Compile every arm and compare."""
        from dynamometer.common.measuring import check  # imports torch, which the parent doesn't

        return check(context)
