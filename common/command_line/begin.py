"""From a plan to a run directory: what the machine must have, and what is noted before a run."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dynamometer
from dynamometer.common import registry
from dynamometer.common.planning import refusals
from dynamometer.results.store import store
from dynamometer.results.values.records import Level, Manifest

if TYPE_CHECKING:
    from pathlib import Path

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
        UnfitEnvironmentError: a device or an allocator isn't there.
        UsageError: the directory can't be made.
    """
    from dynamometer.common.machine.allocator import require_allocator
    from dynamometer.common.machine.environment import read_environment, require_device

    require_device(plan.cases[0].device)
    require_allocator(plan.protocol.allocator)
    with refusals.store_errors_as_usage():
        store.make_home(runs)
    # Refusals come first: what these import, and a look at the machine, take longer.
    from dynamometer.common.machine.doctor import examine
    from dynamometer.common.planning.between_processes import known_between_sd
    from dynamometer.common.planning.identity import sources_of

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
        between_sd=known_between_sd(plan, environment, runs),
        sources=sources_of(registry.suite(plan.suite).measured_files(plan.suite_options)),
        diagnoses=tuple(each for each in examine() if each.level is not Level.FINE),
    )
    directory = runs / manifest.run_id
    with refusals.store_errors_as_usage():
        store.create(directory, manifest)
    return manifest, directory
