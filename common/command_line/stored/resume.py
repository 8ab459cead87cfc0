"""`dynamometer resume`: an interrupted run, to be finished where it was begun."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynamometer.common import registry
from dynamometer.common.command_line.stored.runs import RUNS, run_directory
from dynamometer.common.errors import UnfitEnvironmentError, UsageError
from dynamometer.common.interfaces.option import Argument, Flag
from dynamometer.common.interfaces.run_options import REPORT_OPTIONS

if TYPE_CHECKING:
    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request

DIRECTORY = Argument[Path](
    ("DIRECTORY",), default=Path(), reads=click.Path(path_type=Path), is_required=True
)
ANYWAY = Flag(
    ("--anyway",), group="Execution",
    help="Go on where files that are measured have changed; each record says so.",
)  # fmt: skip
OPTIONS = (ANYWAY, *REPORT_OPTIONS, RUNS, DIRECTORY)
HELP = """Finish an interrupted run.

DIRECTORY is the run's, or the run's name below --output-dir.
"""


def run(asked: Request, _: Invocation) -> int:
    """Finish a run where it was begun.

    Raises:
        UsageError: it is no run.
        StoreError: it is a damaged one.
        UnfitEnvironmentError: machine, software or the user's files are not those of the run; says
            what differs. Or nothing would be compiled.
    """
    from dynamometer.common.command_line import begin
    from dynamometer.common.machine.environment import differences, read_environment, require_device
    from dynamometer.common.machine.variables import require_compiling
    from dynamometer.common.planning import refusals, source_hashes
    from dynamometer.results.store import store
    from dynamometer.results.store.errors import StoreError

    directory = run_directory(asked[DIRECTORY], asked[RUNS])
    refusals.check_reporting(asked)
    try:
        manifest = store.read_manifest(directory)
    except StoreError as error:
        if isinstance(error.__cause__, OSError):  # there is none; a damaged one is no fault of use
            raise UsageError(str(error)) from error
        raise
    study = registry.study(manifest.plan.study)
    refusals.check_expectations(study, manifest.plan, asked)
    refusals.check_output(study, manifest.plan, asked)
    refusals.check_planned(manifest.plan)
    require_compiling()
    require_device(manifest.plan.cases[0].device)
    measured = registry.suite(manifest.plan.suite).measured_files(manifest.plan.suite_options)
    edited = source_hashes.changed_files(manifest.sources, measured)
    is_gone = source_hashes.is_target_gone(manifest.sources, manifest.plan.suite_options)
    refused = () if asked[ANYWAY] and not is_gone else edited
    changes = [*refused, *differences(manifest.environment, read_environment())]
    if changes:
        msg = (
            f"{directory} was begun under other conditions: {'; '.join(changes)}. Put these back,"
            f" or measure anew: {manifest.command}"
        )
        if refused and not is_gone:
            msg += "; --anyway goes on with changed files, and marks the records"
        raise UnfitEnvironmentError(msg)
    notes = [f"resumed though {each}" for each in edited]
    return begin.carried_out(
        lambda faults: begin.execute(manifest, directory, asked, notes, faults=faults),
        directory,
        asked,
        is_new=False,
    )
