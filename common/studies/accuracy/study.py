"""The study of `--accuracy`."""

from __future__ import annotations

from typing import ClassVar

from dynamometer.common.interfaces.option import Switch, always
from dynamometer.common.studies.study import Jobs
from dynamometer.common.studies.study_of_arms import StudyOfArms

ACCURACY = Switch(
    ("--accuracy", "--performance"), default=False, group="Measurement",
    help="Compare results with eager's and time nothing, or do both.  [default: --performance; with"
    " parity.py --parity]",
    again=always,
)  # fmt: skip


class Accuracy(StudyOfArms):
    """Does each backend compute what eager computes? Nothing is timed."""

    modules: ClassVar = {
        "accuracy": "dynamometer.common.studies.accuracy.experiment:AccuracyExperiment"
    }
    asked_by = ACCURACY
    jobs = Jobs.ALL_CORES


STUDY = Accuracy()
