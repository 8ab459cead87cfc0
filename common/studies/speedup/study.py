"""The study that a run makes unless it is asked for another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from dynamometer.common.interfaces.option import Exclusion, option
from dynamometer.common.studies.study_of_arms import StudyOfArms
from dynamometer.results.values.cases import DEFAULT_REPLICATES, NO_BACKEND

if TYPE_CHECKING:
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.studies.study import Options
    from dynamometer.results.values.cases import RunPlan


class Speedup(StudyOfArms):
    """How fast is each arm beside eager, what does compiling cost, and how much memory?"""

    modules: ClassVar = {
        "speedup": "dynamometer.common.studies.speedup.in_blocks:Speedup",
        "isolated": "dynamometer.common.studies.speedup.isolated:Isolated",
        "memory": "dynamometer.common.studies.speedup.memory:Memory",
    }
    flag = "overhead"
    options = (
        option(
            "--overhead", is_flag=True, group="Measurement",
            help="Dynamo without a backend against eager: what capturing alone costs.",
        ),
    )  # fmt: skip
    exclusions = (
        Exclusion(
            "overhead",
            "--overhead is of Dynamo without a backend",
            frozenset({"backends", "speedup_ts"}),
        ),
    )
    usual_replicates = DEFAULT_REPLICATES
    is_timed = True

    def workload(self, asked: Workload, options: Options) -> Workload:
        """Time Dynamo without a backend, where that is what is asked for."""
        return replace(asked, arms=(NO_BACKEND,)) if options["overhead"] else asked

    def words(self, plan: RunPlan) -> list[str]:
        """Return nothing: it is asked by default, and what is compared is in the arms."""
        del plan
        return []


STUDY = Speedup()
