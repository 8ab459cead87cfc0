"""A run directory, from the plan until it is full, or as full as it gets."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dynamometer
from dynamometer.common import registry
from dynamometer.common.ending import ExitCode, Held, tell
from dynamometer.common.errors import DynamometerError
from dynamometer.common.interfaces.run_options import REPORT_OPTIONS, SINKS
from dynamometer.common.planning import refusals
from dynamometer.results.store import store
from dynamometer.results.store.errors import BlockedError
from dynamometer.results.values.records import Level, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dynamometer.common.execution.executors.of_plugins import Faults
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.values.cases import RunPlan


def begin(plan: RunPlan, program: str, command: str, runs: Path) -> tuple[Manifest, Path]:
    """Check the machine, look at it, and make the run's directory.

    Args:
        plan: of the run.
        program: what starts a run of the plan's suite, to which a case's own words are added.
        command: the whole command line.
        runs: the directory that run directories are made in.

    Returns:
        The manifest, and the directory that holds it now.

    Raises:
        UnfitEnvironmentError: a device or an allocator isn't there, or nothing would be compiled.
        UsageError: the directory can't be made, or the file of decisions can't be used.
    """
    from dynamometer.common.machine.allocator import require_allocator
    from dynamometer.common.machine.environment import read_environment, require_device
    from dynamometer.common.machine.variables import require_compiling

    require_compiling()
    require_device(plan.cases[0].device)
    require_allocator(plan.protocol.allocator)
    refusals.check_decisions(plan)
    with refusals.store_errors_as_usage():
        store.make_home(runs)
    # Refusals come first: what these import, and a look at the machine, take longer.
    from dynamometer.common.machine.doctor import examine
    from dynamometer.common.planning.between_processes import known_between_sds
    from dynamometer.common.planning.source_hashes import hashes_of

    environment = read_environment()
    now = datetime.now(UTC)
    manifest = Manifest(
        run_id=f"{now:%Y%m%d-%H%M%S}-{os.urandom(3).hex()}",
        created_at=now.isoformat(timespec="seconds"),
        version=dynamometer.__version__,
        program=program,
        command=command,
        plan=plan,
        environment=environment,
        between_sds=known_between_sds(plan, environment, runs),
        sources=hashes_of(registry.suite(plan.suite).measured_files(plan.suite_options)),
        diagnoses=tuple(each for each in examine() if each.level is not Level.FINE),
    )
    directory = runs / manifest.run_id
    with refusals.store_errors_as_usage():
        store.create(directory, manifest)
    return manifest, directory


def carried_out(
    action: Callable[[Faults], int], directory: Path, request: Request, *, is_new: bool
) -> int:
    """Do what fills a run's directory; if something is left to do, say how. Return the exit code.

    Args:
        action: fills it, and returns the exit code; adds what plugins failed with to what it gets.
        directory: of the run.
        request: what is done with the results.
        is_new: whether the directory was made for this; it is removed if nothing was measured.

    Raises:
        ImportError: a module isn't there that is needed in the middle of a run.
    """
    from dynamometer.results.reports.texts import count_text
    from dynamometer.results.store.overview import read_overview

    faults: Faults = {}

    def say_way_on(when: str, *, is_new: bool) -> bool:
        return _say_way_on(when, directory, _without(request, faults), is_new=is_new)

    try:
        code = action(faults)
    except KeyboardInterrupt:
        say_way_on("interrupted; to finish", is_new=is_new)
        raise
    except ModuleNotFoundError as error:
        if not say_way_on("to go on later", is_new=is_new):
            raise
        raise ImportError(*error.args) from error  # as it was, it means that nothing was run
    except Exception as error:
        # What the error quotes, such as a log, is to be read.
        is_quoted = isinstance(error, DynamometerError) and str(directory) in str(error)
        # Where `resume` was blocked, it is no way on.
        if is_new or not isinstance(error, BlockedError):
            say_way_on("to go on later", is_new=is_new and not is_quoted)
        raise
    if code == ExitCode.INTERRUPTED:
        say_way_on("interrupted; to finish", is_new=is_new)
    elif count := read_overview(directory).infra:
        ended = f"{count_text(count, 'case')} ended by a fault of the harness"
        say_way_on(f"{ended}; to attempt {'it' if count == 1 else 'them'} again", is_new=False)
        return code or ExitCode.FAULT
    return code


def _without(request: Request, faults: Faults) -> Request:
    """Return a request without the sinks that failed, which would fail again."""
    sinks = tuple(each for each in request[SINKS] if ("sinks", each) not in faults)
    return request.but(SINKS, sinks)


def execute(
    manifest: Manifest,
    directory: Path,
    asked: Request,
    notes: Sequence[str] = (),
    faults: Faults | None = None,
) -> int:
    """Run a plan, or the rest of it, and say where the results are.

    Records get the notes. What plugins fail with that does not end the run is added to the faults.
    """
    # rich takes a while to import
    from dynamometer.common.command_line.session import Session

    session = Session(manifest, directory, asked, notes, faults)
    plan = manifest.plan
    with store.RunStore(directory) as events:  # from here on nobody else works on it
        if plan.tuning and not registry.study(plan.study).decides:
            from dynamometer.common.command_line.decisions import preparing

            if not preparing.prepare(manifest, directory, notes):
                return ExitCode.INTERRUPTED
        return session.run(events)


def _say_way_on(when: str, directory: Path, request: Request, *, is_new: bool) -> bool:
    """Return whether there is something to go on with."""
    with Held():
        if is_new and store.discard(directory):
            tell("nothing was measured, so nothing is kept")
            return False
    if not directory.exists():  # the error says where its records are
        return False
    installed = shutil.which("dynamometer") is not None
    program = ["dynamometer"] if installed else [sys.executable, "-m", "dynamometer"]
    words = [*program, "resume", str(directory), *request.argv(REPORT_OPTIONS)]
    tell(f"{when}: {shlex.join(words)}")
    return True
