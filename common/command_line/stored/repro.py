"""`dynamometer repro RUN MODEL`: the command that repeats a case alone; `--run` starts it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from dynamometer.common import registry
from dynamometer.common.command_line.stored.runs import RUN, RUNS, cases_of, run_directory
from dynamometer.common.ending import SIGNALLED, tell
from dynamometer.common.errors import UsageError
from dynamometer.common.execution.repro import single_case_command
from dynamometer.common.interfaces import arm_names
from dynamometer.common.interfaces.option import Argument, Flag
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.store import store

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest

MODEL = Argument(("MODEL",), default="", reads=click.STRING, is_required=True)
START = Flag(("--run",), group="Execution", help="Also start what is printed.")
SCRIPT = Flag(
    ("--script",), group="Output",
    help="Print a program that needs torch alone in place of the command, where the suite has it.",
)  # fmt: skip
OPTIONS = (START, SCRIPT, RUNS, RUN, MODEL)
HELP = """Print the command that repeats a model of a run alone, as the run measured it.

RUN is a run's directory, or its name below --output-dir.
"""


def run(asked: Request, _: Invocation) -> int:
    """Print the command of each case of a model, and give the exit code of what was started.

    Raises:
        UnknownNameError: the run has no such model.
        UsageError: the run can't be read, or a command can't be started here.
    """
    directory = run_directory(asked[RUN], asked[RUNS])
    with store_errors_as_usage():
        manifest = store.read_manifest(directory)
    if asked[SCRIPT] and asked[START]:
        msg = "--script prints a program, for a file of your own; leave out --run"
        raise UsageError(msg)
    if asked[SCRIPT]:
        click.echo(_script(directory, manifest, asked[MODEL]))
        return 0
    cases = cases_of(manifest, asked[MODEL])
    commands = [single_case_command(manifest, each) for each in cases]
    if own := _own_modules(cases):
        tell(f"needs {', '.join(own)} where Python looks, as in the run (PYTHONPATH)")
    codes = []
    for each in dict.fromkeys(commands):
        click.echo(each)
        if asked[START]:
            codes.append(_started(each))
    return max(codes, default=0)


def _own_modules(cases: Iterable[Case]) -> list[str]:
    """Return the backends of some cases that are named as `module:attribute`."""
    arms = dict.fromkeys(arm for case in cases for arm in case.arms if ":" in arm)
    return [arm for arm in arms if ":" in arm_names.read(arm).backend]


def _script(directory: Path, manifest: Manifest, model: str) -> str:
    """Return the program of a model's first case that failed, as it did, or else of its first.

    Raises:
        UsageError: its suite has none, or the run can't be read.
    """
    plan = manifest.plan
    suite, study = registry.suite(plan.suite), registry.study(plan.study)
    cases = {each.id: each for each in cases_of(manifest, model)}
    with store_errors_as_usage():
        records = [each for each in store.read_records(directory) if each.case.id in cases]
    failed = (study.failing([record]) for record in records)
    case = next(filter(None, failed), next(iter(cases.values())))
    try:
        found = suite.script(plan.suite_options, case, plan.seed)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if found is None:
        msg = f"models of {manifest.plan.suite} can't be had apart from it: leave out --script"
        raise UsageError(msg)
    return found


def _started(command: str) -> int:
    """Start a command, wait for it, and return its exit code: of a signal that of a shell.

    Raises:
        UsageError: its program isn't here.
    """
    words = shlex.split(command)
    if words[0] == "dynamometer" and shutil.which(words[0]) is None:
        words[:1] = [sys.executable, "-m", "dynamometer"]
    try:
        code = subprocess.run(words, check=False).returncode  # noqa: S603  the user asked for it
    except OSError as error:
        msg = (
            f"{words[0]} can't be started from here: {error.strerror}; the run was begun elsewhere"
        )
        raise UsageError(msg) from error
    return code if code >= 0 else SIGNALLED - code
