"""`dynamometer rm RUN...`: remove runs, saying what that frees."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynamometer.common.command_line.stored.listing import megabytes
from dynamometer.common.command_line.stored.runs import RUN_OR_SEVERAL, RUNS, run_directory
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Flag
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.overview import RunState, read_overview
from dynamometer.results.store.store import EVENTS, RunStore

if TYPE_CHECKING:
    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.store.overview import Overview

YES = Flag(("--yes",), group="Execution", help="Don't ask.")
OPTIONS = (YES, RUNS, RUN_OR_SEVERAL)
HELP = """Remove runs, and say what that frees.

RUN is a run's directory, or its name below --output-dir. Whatever isn't one is refused, and so
is a run that is going on.
"""


def run(asked: Request, _: Invocation) -> int:
    """Say what would be removed, ask, and remove it.

    Nothing is removed unless everything that is named can be.

    Raises:
        UsageError: something that is named must not be removed; says which and why.
    """
    named = [run_directory(each, asked[RUNS]) for each in asked[RUN_OR_SEVERAL]]
    found = list({each.resolve(): _removable(each) for each in named}.values())
    for each in found:
        click.echo(f"{each.directory}: {each.progress}, {megabytes(each.size_bytes)}")
    total = megabytes(sum(each.size_bytes for each in found))
    if not asked[YES]:
        if not sys.stdin.isatty():
            msg = "nobody can be asked here, as standard input is no terminal: say --yes"
            raise UsageError(msg)
        click.confirm(f"remove {len(found)} run(s), which frees {total}?", abort=True)
    for each in found:
        _remove(each.directory)
    click.echo(f"removed {len(found)} run(s): {total} freed")
    return 0


def _removable(directory: Path) -> Overview:
    """Look at a run directory that is to be removed.

    Raises:
        UsageError: it is no run directory, a link, in use, or not what it seems.
    """
    if directory.is_symlink():
        msg = f"{directory} is a link: name what it leads to, {directory.readlink()}"
        raise UsageError(msg)
    with store_errors_as_usage():
        found = read_overview(directory)
    if found.state is RunState.RUNNING:
        msg = f"{directory} is being written by another process; wait for it, or stop it"
        raise UsageError(msg)
    if Path.cwd().is_relative_to(directory.resolve()):
        msg = f"{directory} is where you are: go elsewhere first"
        raise UsageError(msg)
    # Path.is_file would follow a link.
    if not stat.S_ISREG(os.lstat(directory / EVENTS).st_mode):
        msg = f"{directory} is no run directory: {EVENTS} is no file of its own"
        raise UsageError(msg)
    return found


def _remove(directory: Path) -> None:
    """Remove a directory while nobody else can write to it. Links in it go, not what they lead to.

    Raises:
        StoreError: it is being written by now, or can't be removed.
    """
    with RunStore(directory):
        try:
            shutil.rmtree(directory)
        except OSError as error:
            msg = f"{error.filename or directory} can't be removed: {error.strerror}"
            raise StoreError(msg) from error
