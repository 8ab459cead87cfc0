"""The study that a run makes unless it is asked for another."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from dynamometer.common.interfaces.option import Exclusion, Flag
from dynamometer.common.interfaces.workload_options import BACKEND_OPTIONS
from dynamometer.common.studies.study_of_arms import StudyOfArms
from dynamometer.results.values.cases import DEFAULT_REPLICATES, NO_BACKEND

if TYPE_CHECKING:
    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.workload import Workload

OVERHEAD = Flag(
    ("--overhead",), group="Measurement",
    help="Dynamo without a backend against eager: what capturing alone costs.",
    excludes=Exclusion(BACKEND_OPTIONS, "--overhead is of Dynamo without a backend"),
)  # fmt: skip
"""Never said again: what is compared is in the arms."""


class Speedup(StudyOfArms):
    """How fast is each arm beside eager, what does compiling cost, and how much memory?"""

    modules: ClassVar = {
        "speedup": "dynamometer.common.studies.speedup.in_blocks:SpeedupExperiment",
        "isolated": "dynamometer.common.studies.speedup.isolated:Isolated",
        "memory": "dynamometer.common.studies.speedup.memory:Memory",
    }
    asked_by = OVERHEAD
    usual_replicates = DEFAULT_REPLICATES
    is_timed = True

    def workload(self, asked: Workload, request: Request) -> Workload:
        """Time Dynamo without a backend, where that is what is asked for."""
        return msgspec.structs.replace(asked, arms=(NO_BACKEND,)) if request[OVERHEAD] else asked


STUDY = Speedup()
