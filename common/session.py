"""One sitting of a run: announce, execute, report, and say how to go on."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import click

from dynamometer.common import registry
from dynamometer.common.estimate import estimate
from dynamometer.common.progress import ProgressLine, duration
from dynamometer.common.runner import Interrupt, run
from dynamometer.results import store

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.common.executor import Executor
    from dynamometer.results.schema import Manifest
    from dynamometer.results.sinks import Sink

_INTERRUPTED = 130


def _resume_command(directory: Path) -> str:
    installed = shutil.which("dynamometer") is not None
    program = ["dynamometer"] if installed else [sys.executable, "-m", "dynamometer"]
    return shlex.join([*program, "resume", str(directory)])


class Session:
    """Runs a plan, or the rest of one."""

    def __init__(self, manifest: Manifest, directory: Path, *, csv_compat: bool) -> None:
        """Start nothing yet.

        Args:
            manifest: of the run.
            directory: its run directory, which exists.
            csv_compat: write the dashboards' CSV columns alone.
        """
        self._manifest = manifest
        self._directory = directory
        self._csv = registry.resolve("sinks", "csv")(directory, compatible=csv_compat)
        self._console = registry.resolve("sinks", "console")(sys.stdout)

    def run(self) -> int:
        """Run until done or interrupted, and give the exit code."""
        plan = self._manifest.plan
        expected = estimate(plan, self._directory.parent)
        self._announce(expected.seconds, expected.known_cases)
        executor: Executor = registry.resolve("executors", "local")(self._manifest, self._directory)
        sinks: list[Sink] = [self._console, self._csv]
        before = len(store.read_records(self._directory))
        started = time.monotonic()
        done = False
        preparing_s = 0.0
        try:
            with (
                Interrupt() as interrupt,
                ProgressLine(len(plan.cases), expected.seconds) as progress,
            ):
                preparing_s = executor.prepare()
                if preparing_s:
                    progress.say(f"workers and C++ toolchain ready in {preparing_s:.1f} s")
                done = run(self._manifest, self._directory, executor, sinks, progress, interrupt)
        except KeyboardInterrupt:
            pass
        finally:
            executor.close()
            for sink in sinks:
                sink.close()
            self._conclude(before, time.monotonic() - started, preparing_s)
        if not done:
            click.echo(f"interrupted; to finish: {_resume_command(self._directory)}", err=True)
        return 0 if done else _INTERRUPTED

    def _announce(self, estimate_s: float, known: int) -> None:
        plan = self._manifest.plan
        arms = len(plan.cases[0].arms)
        basis = f"{known} of them known from earlier runs" if known else "a guess"
        click.echo(
            f"{len(plan.cases)} cases, {arms} arms, {plan.protocol.replicates} replicate(s):"
            f" about {duration(estimate_s)} ({basis})",
            err=True,
        )

    def _conclude(self, before: int, wall_s: float, preparing_s: float) -> None:
        """Say where the time went and where the results are."""
        spent = defaultdict(float, start=preparing_s)
        for record in store.read_records(self._directory)[before:]:
            for stage, seconds in record.seconds.items():
                spent[stage] += seconds
        spent["harness"] += wall_s - sum(spent.values())
        parts = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in spent.items())
        click.echo(f"\n{wall_s:.1f} s: {parts} ({spent['harness'] / wall_s:.1%} harness)")
        for path in (self._directory / store.EVENTS, *self._csv.paths):
            click.echo(f"results: {path}")
