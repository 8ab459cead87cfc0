"""`dynamometer show RUN [MODEL]`: what a stored run came to, or all that is known of one model."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from dynamometer.common.command_line.stored.runs import (
    RUN,
    RUNS,
    cases_of,
    open_run,
    run_directory,
)
from dynamometer.common.interfaces.option import Argument
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.reports.texts import fitted_line, printable_lines
from dynamometer.results.store.overview import read_overview

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.exports.export import StoredRun
    from dynamometer.results.store.overview import Overview

MODEL = Argument[str | None](("MODEL",), default=None, reads=click.STRING)
OPTIONS = (RUNS, RUN, MODEL)
HELP = """Show a stored run again, or all that is known of one of its models.

RUN is a run's directory, or its name below --output-dir. Of a MODEL: how each replicate ended and
why, its samples block by block, the environment, the end of its log, and the command that repeats
it. On a terminal lines end where it does, but for commands; elsewhere they are whole.
"""


def run(asked: Request, _: Invocation) -> int:
    """Print a run's tables again, or what is known of one of its models.

    Raises:
        UsageError: the run can't be read.
        UnknownNameError: it has no such model.
    """
    directory, model = run_directory(asked[RUN], asked[RUNS]), asked[MODEL]
    found = open_run(directory)
    if model is None:
        with store_errors_as_usage():
            overview = read_overview(directory)
        _print(_run_lines(found, overview), terminal_width())
        return 0
    from dynamometer.results.reports import case_page

    for case in cases_of(found.manifest, model):
        records = [each for each in found.records if each.case.id == case.id]
        lines = found.reporter.lines(records) if records else []
        _print(case_page.lines(found.manifest, case, records, lines, directory), terminal_width())
    return 0


def terminal_width() -> int | None:
    """Return how many characters fit beside each other; `None` where no terminal shows them."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _run_lines(found: StoredRun, overview: Overview) -> list[str]:
    manifest = found.manifest
    environment = manifest.environment
    cases = found.cases
    torch = environment.packages.get("torch", "-")
    return [
        f"{manifest.run_id}: {overview.progress}",
        f"begun: {manifest.created_at}",
        f"on: {environment.machine} ({environment.cpu}), torch {torch}",
        f"command: {manifest.command}",
        *(f"UNFIT MACHINE: {each.subject}: {each.finding}" for each in manifest.diagnoses
          if each.level == "unfit"),
        "",
        *(line for records in cases for line in found.reporter.lines(records)),
        *(f"{each.device:4} {each.label:<30} not run" for each in found.missing),
        *(found.reporter.closing_lines(cases) if cases else ()),
    ]  # fmt: skip


def _print(lines: Iterable[str], width: int | None) -> None:
    click.echo("\n".join(map(partial(_shown, width=width), printable_lines(lines))))


def _shown(line: str, width: int | None) -> str:
    return line if line.startswith(_COMMANDS) else fitted_line(line, width)


_COMMANDS = ("command: ", "to repeat it: ")
"""What begins a line that is to be copied, and so is whole."""
