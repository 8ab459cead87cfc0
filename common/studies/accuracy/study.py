"""The study of `--accuracy`."""

from __future__ import annotations

from typing import ClassVar

from dynamometer.common.interfaces.option import option
from dynamometer.common.studies.study_of_arms import StudyOfArms


class Accuracy(StudyOfArms):
    """Does each backend compute what eager computes? Nothing is timed."""

    modules: ClassVar = {"accuracy": "dynamometer.common.studies.accuracy.experiment:Accuracy"}
    flag = "accuracy"
    options = (
        option(
            "--accuracy/--performance", "accuracy", default=False, group="Measurement",
            help="Compare results with eager's and time nothing, or do both.  [default:"
            " --performance]",
        ),
    )  # fmt: skip


STUDY = Accuracy()
