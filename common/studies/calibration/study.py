"""The study of `dynamometer calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dynamometer.common.interfaces.option import Flag
from dynamometer.common.studies.calibration.arms import ARMS, PAIRS, TAUGHT
from dynamometer.common.studies.study_of_arms import StudyOfArms
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record

ISOLATED = Flag(
    ("--isolated",), group="Measurement",
    help="Time some arms in processes of their own as well, as those are that interfere.",
)  # fmt: skip
"""Of `dynamometer calibrate` alone."""


class Calibration(StudyOfArms):
    """How often is measuring wrong here? Arms whose effect is known are compared."""

    modules: ClassVar = {
        "in_pairs": "dynamometer.common.studies.calibration.in_pairs:InPairs",
        "naive": "dynamometer.common.studies.calibration.naive:Naive",
        "in_isolation": "dynamometer.common.studies.calibration.in_isolation:InIsolation",
    }
    is_timed = True
    cost_factor = 2 * len(PAIRS) / len(ARMS)  # each pair has blocks of its own
    told = frozenset(arm for base, arm in PAIRS if base == BASELINE)

    def experiments(self, request: Request) -> tuple[str, ...]:
        """Time arms in isolated runs as well, where that is asked for."""
        return tuple(
            name for name in self.modules if name != "in_isolation" or request.is_set(ISOLATED)
        )

    def comparable(self, record: Record) -> Record:
        """Take what Inductor beside Inductor shows for Inductor beside eager, which is no more.

        Eager beside eager tells nothing of any backend: Inductor's processes differ further.
        """
        from dynamometer.common.studies.calibration.evaluation import as_of_inductor

        return as_of_inductor(record)

    def taught_arms(self, case: Case) -> tuple[str, ...]:
        """Return Inductor beside eager."""
        del case
        return TAUGHT


STUDY = Calibration()
