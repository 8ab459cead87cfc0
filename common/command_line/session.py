"""One sitting of a run: announce, execute, report, and say how to go on."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from dynamometer.common import registry
from dynamometer.common.command_line.progress import ProgressLine, duration
from dynamometer.common.errors import DynamometerError
from dynamometer.common.execution.executor import Prepared
from dynamometer.common.execution.runner import Interrupt, Remaining, run
from dynamometer.common.machine.disturber import BUSY_S, IDLE_S, disturbed
from dynamometer.common.planning.estimate import TimeEstimate, estimate
from dynamometer.results.statistics.summary import by_case
from dynamometer.results.store import expected, store
from dynamometer.results.values.records import Level

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.common.execution.executor import Executor
    from dynamometer.results.reports.sinks import Sink
    from dynamometer.results.values.cases import Case, Protocol
    from dynamometer.results.values.records import Manifest

_UNEXPECTED, _INTERRUPTED = 1, 130


@dataclass(frozen=True)
class Reporting:
    """What is done with a run's results.

    Attributes:
        csv_compat: write the dashboards' CSV columns alone.
        expect: table of expected results they are compared with; `None` for no comparison.
        update_expected: put them into that table instead.
    """

    csv_compat: bool = False
    expect: Path | None = None
    update_expected: bool = False

    @property
    def words(self) -> list[str]:
        """The options that ask for this."""
        words = ["--csv-compat"] if self.csv_compat else []
        if self.expect is not None:
            words += ["--expect", str(self.expect)]
        return [*words, "--update-expected"] if self.update_expected else words


def _resume_command(directory: Path, reporting: Reporting) -> str:
    installed = shutil.which("dynamometer") is not None
    program = ["dynamometer"] if installed else [sys.executable, "-m", "dynamometer"]
    return shlex.join([*program, "resume", str(directory), *reporting.words])


class Session:
    """Runs a plan, or the rest of one."""

    def __init__(self, manifest: Manifest, directory: Path, reporting: Reporting) -> None:
        """Start nothing yet.

        Args:
            manifest: of the run.
            directory: its run directory, which exists.
            reporting: what is done with the results.
        """
        self._manifest = manifest
        self._directory = directory
        self._reporting = reporting
        self._study = registry.study(manifest.plan.study)
        csv_files = registry.resolve("sinks", "csv")
        self._csv = csv_files(self._study, directory, compatible=reporting.csv_compat)
        console: Sink = registry.resolve("sinks", "console")(self._study, sys.stdout)
        self._sinks = (console, self._csv)

    def run(self) -> int:
        """Run until done or interrupted, and give the exit code: 1 for unexpected results.

        Raises:
            StoreError: another process writes to the directory, or it can't be written.
            DynamometerError: the run can't be started, or not gone on with.
        """
        with store.RunStore(self._directory) as events:
            rest = Remaining(self._manifest, store.read_records(self._directory))
            try:
                done = self._run(rest, events)
            except (DynamometerError, store.StoreError):
                if store.read_records(self._directory):
                    click.echo(f"to go on later: {self._resume_command}", err=True)
                raise
        if not done:
            click.echo(f"interrupted; to finish: {self._resume_command}", err=True)
            return _INTERRUPTED
        return self._judge()

    @property
    def _resume_command(self) -> str:
        return _resume_command(self._directory, self._reporting)

    def _judge(self) -> int:
        """Compare the results with the table of expected ones, or put them into it."""
        path = self._reporting.expect
        if path is None:
            return 0
        records = store.read_records(self._directory)
        found = self._study.observed(by_case(records))
        known = expected.read_table(path) if path.exists() or not self._updates else {}
        changes = expected.compare(known, found)
        for change in changes:
            case, arm = change.key
            click.echo(f"{change.kind}: {case} {arm}: {change.text}")
        if self._updates:
            expected.write_table(path, expected.updated(known, found))
            click.echo(f"{len(found)} results put into {path}")
            return 0
        unexpected = sum(change.is_unexpected for change in changes)
        click.echo(f"{unexpected} of {len(found)} results are not those expected in {path}")
        return _UNEXPECTED if unexpected else 0

    @property
    def _updates(self) -> bool:
        return self._reporting.update_expected

    def _run(self, rest: Remaining, events: store.RunStore) -> bool:
        plan = self._manifest.plan
        forecast = estimate(plan, rest.cases, self._directory.parent)
        self._announce(rest.cases, forecast)
        executor: Executor = registry.resolve("executors", "local")(self._manifest, self._directory)
        before = sum(len(records) for records in rest.finished.values())
        started = time.monotonic()
        prepared, done = Prepared(), False
        try:
            with (
                disturbed(plan.seed, BUSY_S, IDLE_S) if plan.busy else nullcontext(),
                Interrupt() as interrupt,
                ProgressLine(
                    len(plan.cases), forecast.seconds, self._study.replicate_name
                ) as progress,
            ):
                prepared = executor.prepare(rest.cases)
                for line in (*_ready_lines(prepared), *prepared.warnings):
                    progress.say(line)
                done = run(rest, events, executor, self._sinks, progress, interrupt)
        except KeyboardInterrupt:
            pass
        finally:
            executor.close()
        for sink in self._sinks:
            sink.close()
        self._conclude(before, time.monotonic() - started, prepared)
        return done

    def _announce(self, cases: Sequence[Case], forecast: TimeEstimate) -> None:
        plan = self._manifest.plan
        for each in self._manifest.diagnoses:
            if each.level is Level.UNFIT:
                click.echo(f"UNFIT MACHINE: {each.subject}: {each.finding} (dynamometer doctor)")
        known = forecast.known_cases
        own = self._study.announcement(cases)
        if own is not None:
            click.echo(own, err=True)
            return
        basis = f"{known} of them known from earlier runs" if known else "a guess"
        click.echo(
            f"{len(cases)} cases, {len(plan.cases[0].arms)} arms,"
            f" {_count(plan.protocol)} replicate(s):"
            f" about {duration(forecast.seconds)} ({basis})",
            err=True,
        )

    def _conclude(self, before: int, wall_s: float, prepared: Prepared) -> None:
        """Return where the time went and where the results are."""
        spent = defaultdict(float, prepared.seconds)
        for record in store.read_records(self._directory)[before:]:
            for stage, seconds in record.seconds.items():
                spent[stage] += seconds
        spent["harness"] += wall_s - sum(spent.values())
        parts = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in spent.items())
        click.echo(f"\n{wall_s:.1f} s: {parts} ({spent['harness'] / wall_s:.1%} harness)")
        for path in (self._directory / store.EVENTS, *self._csv.paths):
            click.echo(f"results: {path}")


def _count(protocol: Protocol) -> str:
    least, most = protocol.replicates, protocol.most_replicates
    return str(least) if least == most else f"{least} to {most}"


def _ready_lines(prepared: Prepared) -> list[str]:
    if not prepared.seconds:
        return []
    parts = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in prepared.seconds.items())
    return [f"ready: {parts}"]
