"""The study that decides: candidates beside eager, less of them in each round."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dynamometer.common.interfaces.option import Exclusion, Flag, always
from dynamometer.common.interfaces.run_options import (
    CALLS,
    HALF_WIDTH,
    MEASURING_OPTIONS,
    REPLICATES,
)
from dynamometer.common.interfaces.workload_options import (
    BACKENDS,
    BATCH_SIZE,
    BATCH_SIZE_FILE,
    NOPYTHON,
)
from dynamometer.common.studies.study_of_arms import StudyOfArms
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.cases import Case, Protocol
    from dynamometer.results.values.records import Record, StopReason


_UNDERSTOOD = {BACKENDS, BATCH_SIZE, BATCH_SIZE_FILE, CALLS, HALF_WIDTH, NOPYTHON, REPLICATES}
TUNE = Flag(
    ("--tune",), group="Measurement",
    help="Instead: decide which backend computes each graph of a corpus from now on.",
    again=always,
    excludes=Exclusion(
        tuple(each for each in MEASURING_OPTIONS if each not in _UNDERSTOOD),
        "--tune measures until it can choose",
    ),
)  # fmt: skip


class Tuning(StudyOfArms):
    """Which candidate is the fastest? Those that can't be are timed no more.

    The first replicate is the screening round. There are others only where it leaves the choice
    open.
    """

    modules: ClassVar = {"tuning": "dynamometer.common.studies.tuning.experiment:TuningExperiment"}
    asked_by = TUNE
    usual_replicates = (1, 3)
    is_timed = True
    takes_turns = False
    decides = True

    def arms(self, case: Case, records: Sequence[Record]) -> tuple[str, ...]:
        """Return those that may still be chosen."""
        from dynamometer.results.statistics.deciding import survivors

        return (BASELINE, *survivors(records)) if records else case.arms

    def replicate_name(self, replicate: int) -> str:
        """Count rounds from 1."""
        return f"round {replicate + 1}"

    def stop_reason(self, records: Sequence[Record], protocol: Protocol) -> StopReason | None:
        """Stop when there is nothing left to choose between, or all of it is known well enough."""
        from dynamometer.results.statistics.deciding import is_settled, survivors
        from dynamometer.results.statistics.stopping import end_of_measuring
        from dynamometer.results.values.records import StopReason

        if is_settled(records):
            return StopReason.FOUND
        left = survivors(records)
        known = self._summary(records).arms
        ratios = (each.speedup for each in known if each.name in left and each.speedup)
        return end_of_measuring(records, protocol, ratios)


STUDY = Tuning()
