"""The command that repeats a case alone."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from dynamometer.common import registry
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.studies.study import options_of

if TYPE_CHECKING:
    from dynamometer.common.studies.study import Study
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.records import Manifest


def single_case_command(manifest: Manifest, case: Case) -> str:
    """Return the command line that measures one case of a run exactly as the run did.

    Each option says what it must be given for that. What another excludes that is given is left
    out: it had no say in the run. Where no option asks for the study, as for that of a calibration
    and those of stages in which models are decided on, it is the command of the whole run.
    """
    plan = manifest.plan
    study, suite = registry.study(plan.study), registry.suite(plan.suite)
    if not _can_be_asked_for(study, plan):
        return manifest.command
    values = {
        option: value
        for option in run_options(options_of(study), suite.options)
        if (value := option.value_again(plan, case)) is not None
    }
    excluded = {
        other
        for option, value in values.items()
        if option.excludes and value != option.default
        for other in option.excludes.others
    }
    arguments = [
        argument
        for option, value in values.items()
        if option not in excluded
        for argument in option.argv(value)
    ]
    if suite.usual_study and plan.study == registry.DEFAULT_STUDY:  # it has to be asked for
        questions = (each.asked_by for each in registry.studies() if each.asked_by)
        arguments += [word for each in questions for word in each.argv(each.default)]
    return shlex.join([*shlex.split(manifest.program), *arguments])


def _can_be_asked_for(study: Study, plan: RunPlan) -> bool:
    if study.decides:
        return plan.suite == registry.CORPUS
    return study.asked_by is not None or plan.study == registry.DEFAULT_STUDY
