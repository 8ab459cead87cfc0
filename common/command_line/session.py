"""One sitting of a run: announce, execute, report, and say how to go on."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynamometer.common import registry
from dynamometer.common.command_line.decisions.sink import DecisionSink
from dynamometer.common.command_line.json_events import JsonEvents
from dynamometer.common.command_line.progress import ProgressLine, duration
from dynamometer.common.ending import ExitCode, Held, tell
from dynamometer.common.execution.executor import RunsBeside, StartUp
from dynamometer.common.execution.executors.of_plugins import made_executor
from dynamometer.common.execution.runner import (
    Interrupt,
    Remaining,
    RunInProgress,
    run,
)
from dynamometer.common.execution.side_by_side import run_side_by_side
from dynamometer.common.interfaces.run_options import (
    CSV_COMPAT,
    EXPECT,
    JSON,
    OUTPUT,
    SINKS,
    UPDATE_EXPECTED,
)
from dynamometer.common.interfaces.workload_options import ONLY
from dynamometer.common.machine.disturber import BUSY_S, IDLE_S, disturbed
from dynamometer.common.planning.estimate import TimeEstimate, estimate, longest_first
from dynamometer.results.exports.expected_accuracy import accuracy_rows
from dynamometer.results.exports.export import StoredRun
from dynamometer.results.reports.csv_file import CsvFile
from dynamometer.results.reports.sinks import Destination
from dynamometer.results.reports.texts import count_text
from dynamometer.results.statistics.summary import by_case
from dynamometer.results.store import expected, store, their_expected
from dynamometer.results.store.decisions import Decisions
from dynamometer.results.values.records import Level

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dynamometer.common.execution.executor import Executor
    from dynamometer.common.execution.executors.of_plugins import Faults
    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.studies.study import Study
    from dynamometer.results.reports.csv_file import Kept
    from dynamometer.results.reports.sinks import Sink
    from dynamometer.results.values.cases import Case, Protocol
    from dynamometer.results.values.records import Manifest, Record


def _kept(request: Request) -> Kept:
    """Return which rows of the file of `--output` stay: all where single models are asked for."""
    if ONLY not in request:  # a run that is resumed
        return "other models"
    return "all" if request[ONLY] else "nothing"


class _PluginSink:
    """A sink of a plugin: its first fault is kept, and nothing more is asked of it."""

    def __init__(self, kind: registry.Kind, name: str, sink: Sink, faults: Faults) -> None:
        """Take it.

        Args:
            kind: of what brings it.
            name: of that.
            sink: that is asked.
            faults: what it fails with is added to these.
        """
        self._origin = (kind, name)
        self._sink, self._faults = sink, faults

    @property
    def paths(self) -> Sequence[Path]:
        """The files written so far."""
        found: list[Path] = []
        self._ask(lambda: found.extend(self._sink.paths))
        return found

    def write(self, records: Sequence[Record]) -> None:
        """Take the records of a case."""
        self._ask(lambda: self._sink.write(records))

    def close(self) -> None:
        """Finish."""
        self._ask(self._sink.close)

    def _ask(self, action: Callable[[], None]) -> None:
        if self._origin in self._faults:
            return
        try:
            action()
        except (Exception, SystemExit) as error:  # noqa: BLE001  a plugin may raise anything
            self._faults[self._origin] = registry.fault(*self._origin, error)


def _watched(kind: registry.Kind, name: str, sink: Sink, faults: Faults) -> Sink:
    """Return a sink that ends no run by a fault of its own, if a plugin brings it."""
    is_ours = registry.is_built_in(kind, name)
    return sink if is_ours else _PluginSink(kind, name, sink, faults)


def _made_sink(name: str, study: Study, destination: Destination, faults: Faults) -> Sink:
    try:
        sink: Sink = registry.made("sinks", name, study, destination)
    except Exception as error:
        faults["sinks", name] = str(error)
        raise
    return _watched("sinks", name, sink, faults)


class Session:
    """Runs a plan, or the rest of one."""

    def __init__(
        self,
        manifest: Manifest,
        directory: Path,
        request: Request,
        notes: Sequence[str] = (),
        faults: Faults | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            manifest: of the run.
            directory: its run directory, which exists.
            request: what is done with the results, among whatever else was asked for.
            notes: that every record is to hold.
            faults: what plugins fail with that does not end the run is added to these.
        """
        self._faults: Faults = {} if faults is None else faults
        self._notes = notes
        self._manifest = manifest
        self._directory = directory
        self._request = request
        self._study = registry.study(manifest.plan.study)
        self._events = JsonEvents(sys.stdout) if request[JSON] else None
        stream = sys.stderr if self._events else sys.stdout
        destination = Destination(directory, stream, is_compatible=request[CSV_COMPAT])
        names = dict.fromkeys((*registry.DEFAULT_SINKS, *request[SINKS]))
        self._sinks = [_made_sink(name, self._study, destination, self._faults) for name in names]
        for each in self._study.sinks(directory):
            self._sinks.append(_watched("studies", manifest.plan.study, each, self._faults))
        if self._study.decides and manifest.plan.tuning:
            self._sinks.append(DecisionSink(Decisions(Path(manifest.plan.tuning.decisions))))
        output = request[OUTPUT]
        if output:
            self._sinks.append(CsvFile(self._study, output, _kept(request)))

    def run(self, events: store.RunStore) -> int:
        """Run until done or interrupted, and give the exit code.

        Args:
            events: what records are appended to, of the run's directory.

        Raises:
            StoreError: the directory can't be written.
            DynamometerError: the run can't be started, or not gone on with.
        """
        try:
            code = self._run_and_tell(events)
        finally:
            for (kind, _), fault in self._faults.items():
                if kind != "executors":  # which say it themselves
                    tell(f"error: {fault}; it was left out from then on")
        return code or (ExitCode.FAULT if self._faults else ExitCode.DONE)

    def _run_and_tell(self, events: store.RunStore) -> int:
        if self._events is None:
            return self._run_and_judge(events)
        with redirect_stdout(sys.stderr):
            self._events.run_started(self._manifest, self._directory)
            code = self._run_and_judge(events)
            self._events.run_ended(self._manifest, is_done=code != ExitCode.INTERRUPTED)
            return code

    def _run_and_judge(self, events: store.RunStore) -> int:
        found = store.read_run(self._directory)
        if found.warning:
            click.echo(f"{self._directory}: {found.warning}", err=True)
        rest = Remaining(self._manifest, found.records, self._notes)
        done = self._run(rest, events)
        return self._judge() if done else ExitCode.INTERRUPTED

    def _judge(self) -> int:
        """Compare the results with the table of expected ones, or put them into it."""
        path = self._request[EXPECT]
        if path is None:
            return 0
        records = store.read_records(self._directory)
        if their_expected.is_theirs(path):
            return _print_changes(*self._against_theirs(path, records), path)
        found = self._study.observed(by_case(records))
        known = expected.read_table(path) if path.exists() or not self._updates else {}
        code = _print_changes(
            expected.compare(known, found), len(found), path, is_judged=not self._updates
        )
        if self._updates:
            expected.write_table(path, expected.updated(known, found))
            click.echo(f"{len(found)} results put into {path}")
        return code

    def _against_theirs(
        self, path: Path, records: Sequence[Record]
    ) -> tuple[list[expected.Change], int]:
        """Compare results with a table of PyTorch's, and count them."""
        run = StoredRun(self._manifest, tuple(records), self._study)
        table = their_expected.read_table(path)
        found = accuracy_rows(run).items()
        changes = [each for arm, rows in found for each in their_expected.compare(table, arm, rows)]
        return changes, sum(len(rows) for _, rows in found)

    @property
    def _updates(self) -> bool:
        return self._request[UPDATE_EXPECTED]

    def _run(self, rest: Remaining, events: store.RunStore) -> bool:
        plan = self._manifest.plan
        jobs = min(plan.jobs, max(1, len(rest.cases)))  # in the end none is left
        forecast = estimate(plan, rest.cases, self._directory.parent)
        self._announce(rest.cases, forecast)
        executor = made_executor(self._manifest, self._directory, self._faults)
        started = time.monotonic()
        prepared, done = StartUp(), False
        of_records: Mapping[str, float] = {}
        try:
            with (
                disturbed(plan.seed, BUSY_S, IDLE_S) if plan.busy else nullcontext(),
                Interrupt() as interrupt,
                ProgressLine(
                    len(plan.cases),
                    plan.protocol.replicates,
                    forecast.seconds,
                    self._study.replicate_name,
                    earlier=len(plan.cases) - len(rest.cases),
                ) as progress,
            ):
                of_records = progress.seconds
                prepared = executor.prepare(rest.cases)
                for line in (*_ready_lines(prepared), *prepared.warnings):
                    progress.say(line)
                observer = self._events.beside(progress) if self._events else progress
                ongoing = RunInProgress(rest, events, self._sinks, observer)
                done = self._run_cases(ongoing, executor, interrupt, jobs)
        except KeyboardInterrupt:
            pass
        finally:
            with Held():
                executor.close()
        with Held():
            for sink in self._sinks:
                sink.close()
        spent = defaultdict(float, prepared.seconds)
        for stage, seconds in of_records.items():
            spent[stage] += seconds
        if any(rest.finished.values()):  # else there is nothing to point to
            self._conclude(time.monotonic() - started, spent, jobs)
        return done

    def _run_cases(
        self, ongoing: RunInProgress, executor: Executor, interrupt: Interrupt, jobs: int
    ) -> bool:
        """Run cases one after the other, or several at a time where the plan says so."""
        if jobs > 1 and isinstance(executor, RunsBeside):
            executors = [executor, *(executor.beside() for _ in range(jobs - 1))]
            order = longest_first(self._manifest.plan, self._directory.parent)
            try:
                return run_side_by_side(ongoing, executors, interrupt, order)
            finally:
                with Held():
                    for each in executors:
                        each.close()
        return run(ongoing, executor, interrupt)

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
            f"{count_text(len(cases), 'case')}, {count_text(len(plan.cases[0].arms), 'arm')},"
            f" {_count(plan.protocol)} replicate(s):"
            f" about {duration(forecast.seconds)} ({basis})",
            err=True,
        )

    def _conclude(self, wall_s: float, spent: defaultdict[str, float], jobs: int) -> None:
        """Say where the time went and where the results are."""
        click.echo(f"\n{_seconds_line(wall_s, spent, jobs)}")
        written = [path for sink in self._sinks for path in sink.paths]
        for path in (self._directory / store.EVENTS, *written):
            click.echo(f"results: {path}")


def _seconds_line(wall_s: float, spent: defaultdict[str, float], jobs: int) -> str:
    """Say what a sitting took, by what it was spent on, and how much of it by nothing else.

    Of cases that run at the same time seconds add up to more than passed.
    """
    if jobs == 1:
        spent["harness"] += wall_s - sum(spent.values())
    parts = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in spent.items())
    if jobs > 1:
        return f"{wall_s:.1f} s, {jobs} cases at a time: {parts}"
    return f"{wall_s:.1f} s: {parts} ({spent['harness'] / wall_s:.1%} harness)"


def _print_changes(
    changes: Sequence[expected.Change], count: int, path: Path, *, is_judged: bool = True
) -> int:
    """Print what a run changed of a table, and give the exit code."""
    for change in changes:
        case, arm = change.key
        click.echo(f"{change.kind}: {case} {arm}: {change.text}")
    if not is_judged:
        return 0
    unexpected = sum(change.is_unexpected for change in changes)
    click.echo(f"{unexpected} of {count} results are not those expected in {path}")
    return ExitCode.UNEXPECTED if unexpected else 0


def _count(protocol: Protocol) -> str:
    least, most = protocol.replicates, protocol.most_replicates
    return str(least) if least == most else f"{least} to {most}"


def _ready_lines(prepared: StartUp) -> list[str]:
    if not prepared.seconds:
        return []
    parts = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in prepared.seconds.items())
    return [f"ready: {parts}"]
