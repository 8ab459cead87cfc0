"""What a run with `ensemble` does before its cases: record graphs, tune them, compare models."""

from __future__ import annotations

import math
import shlex
import time
from collections import defaultdict
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common import registry
from dynamometer.common.command_line.decisions.sink import DecisionSink
from dynamometer.common.command_line.progress import ProgressLine, duration
from dynamometer.common.ending import Held
from dynamometer.common.execution.executor import HandsOver
from dynamometer.common.execution.executors.of_plugins import made_executor
from dynamometer.common.execution.runner import Interrupt, Remaining, RunInProgress, run
from dynamometer.common.planning.estimate import estimate
from dynamometer.common.planning.tuning import graphs_plan, models_plan, recording_plan
from dynamometer.results.reports.texts import count_text
from dynamometer.results.store import store
from dynamometer.results.store.decisions import Decisions, decision_that_counts
from dynamometer.results.store.graphs.corpus import Corpus
from dynamometer.results.values.cases import NO_BACKEND
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.decisions import Decision, Recorded
from dynamometer.results.values.records import PASSED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dynamometer.common.execution.executor import Executor
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.choices import Tuning
    from dynamometer.results.values.records import Manifest, Record

GRAPHS = "graphs"
"""The corpus in the directory of a run."""


def prepare(manifest: Manifest, directory: Path, notes: Sequence[str] = ()) -> bool:
    """Come to the decisions that a run's cases lack; return whether it was not interrupted.

    Each is stored as soon as it is made, so that what is begun again goes on from there. Records
    get the notes.

    Raises:
        DynamometerError: workers can't be started.
        StoreError: something can't be written.
    """
    plan, started = manifest.plan, time.monotonic()
    assert plan.tuning is not None
    decisions, graphs = Decisions(Path(plan.tuning.decisions)), directory.resolve() / GRAPHS
    Corpus.made(graphs)
    with (
        closing(DecisionSink(decisions)) as sink,
        closing(_Stages(manifest, directory, sink, notes)) as stage,
    ):
        recording = recording_plan(plan, graphs)
        records = stage.run("recorded", "graphs of models are recorded", recording)
        if records is None:
            return False
        for record in records:
            if record.outcome != PASSED:
                click.echo(f"  {record.case.label} has no graphs: {record.outcome.line}", err=True)
        found = {
            case.id: msgspec.json.decode(record.found, type=Recorded)
            for case, asked in zip(plan.cases, recording.cases, strict=True)
            for record in records
            if record.case == asked and record.outcome == PASSED
        }
        open_graphs = _undecided(plan.tuning, tuple(found.values()))
        if not _tune(stage, plan, graphs, open_graphs):
            return False
        undecided = [
            (case, found[case.id])
            for case in plan.cases
            if case.id in found and _is_compared(plan, case, found[case.id])
        ]
        open_models = _timed_models(manifest, undecided, decisions)
        if open_models:
            verb = "is" if len(open_models) == 1 else "are"
            text = f"{count_text(len(open_models), 'model')} {verb} timed beside single backends"
            if stage.run("compared", text, models_plan(plan, open_models)) is None:
                return False
        if not open_graphs and not undecided:
            click.echo(f"ensemble: {_known(len(plan.cases), len(found))}", err=True)
        click.echo(f"ensemble: ready after {duration(time.monotonic() - started)}", err=True)
        return True


def _tune(
    stage: _Stages, plan: RunPlan, graphs: Path, by_threads: Mapping[int, Collection[str]]
) -> bool:
    """Tune graphs, by the threads they are computed with; return whether it was not interrupted."""
    for threads, some in by_threads.items():
        text = f"{count_text(len(some), 'graph')} {'is' if len(some) == 1 else 'are'} tuned"
        if len(by_threads) > 1 or plan.threads not in {None, threads}:
            text += f" with {count_text(threads, 'thread')}"
        program = f"dynamometer run {shlex.quote(str(graphs))}"
        if stage.run("tuned", text, graphs_plan(plan, graphs, some, threads), program) is None:
            return False
    return True


def _is_compared(plan: RunPlan, case: Case, model: Recorded) -> bool:
    """Return whether a model is to be timed beside single backends.

    A graph of a corpus is no model: its candidates were timed on it, as a whole.
    """
    return not model.is_decided and not case.dynamic and plan.suite != registry.CORPUS


def _known(cases: int, recorded: int) -> str:
    """Say why there is nothing to decide."""
    if not recorded:
        return "nothing can be decided, as no model has graphs"
    if recorded < cases:
        return f"{recorded} of {cases} models were decided before; of the others no graph is known"
    return "everything was decided before"


def _timed_models(
    manifest: Manifest, models: Sequence[tuple[Case, Recorded]], decisions: Decisions
) -> dict[str, bool]:
    """Return the models that are to be timed as a whole, as `models_plan` takes them.

    One whose graph stays eager is eager, where nothing else is left to try: that is decided here.
    """
    tuning = manifest.plan.tuning
    assert tuning is not None
    by_graph = {case.id: is_decided_by_graph(each, tuning) for case, each in models}
    asked = models_plan(manifest.plan, by_graph) if models else None
    for (case, model), made in zip(models, asked.cases if asked else (), strict=True):
        if len(made.arms) != _ARMS_OF_NO_CHOICE:
            continue
        if stay := _graphs_that_stay(model, tuning):
            decisions.put(_all_eager(case.label, model, stay, manifest.run_id))
            text = f"  model {case.label}: eager, as its graph is; no other candidate is left"
            click.echo(text, err=True)
            del by_graph[case.id]
    return by_graph


_ARMS_OF_NO_CHOICE = 2
"""The baseline, and what is assembled of the graphs."""


def _graphs_that_stay(model: Recorded, tuning: Tuning) -> list[Decision]:
    """Return the decisions on a model's graphs if all of them stay eager, else none."""
    found = [
        decision
        for each in model.graphs
        if (decision := decision_that_counts(tuning, Subject.GRAPH, each.key, model.setting))
        if decision.arm == NO_BACKEND
    ]
    return found if len(found) == len(model.graphs) else []


def _all_eager(label: str, model: Recorded, graphs: Sequence[Decision], run: str) -> Decision:
    """Return the decision on a model whose graphs stay eager, and that nothing else can compute.

    Nothing else will say what deciding that took, as no graph of it is looked up.
    """
    return Decision(
        subject=Subject.MODEL,
        key=model.key,
        label=label,
        setting=model.setting,
        arm=NO_BACKEND,
        tuning_s=math.fsum(each.tuning_s for each in graphs),
        decided_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        run=run,
    )


def _undecided(tuning: Tuning, models: Sequence[Recorded]) -> dict[int, frozenset[str]]:
    """Return the keys of graphs that are to be tuned, by the threads they are computed with.

    A model may set its number of threads itself. A decision for another one it never finds.
    """
    settings = {
        (each.key, model.setting.threads): model.setting
        for model in models
        for each in model.graphs
        if each.reason is None
    }
    found: defaultdict[int, set[str]] = defaultdict(set)
    for (key, threads), setting in settings.items():
        if not decision_that_counts(tuning, Subject.GRAPH, key, setting):
            found[threads].add(key)
    return {threads: frozenset(keys) for threads, keys in sorted(found.items())}


def is_decided_by_graph(model: Recorded, tuning: Tuning) -> bool:
    """Return whether a model is one graph that has a decision; a graph may be in no file."""
    keys = [each.key for each in model.graphs]
    return len(keys) == 1 and bool(
        decision_that_counts(tuning, Subject.GRAPH, keys[0], model.setting)
    )


class _Stages:
    """Runs of their own below a run's directory, each before the run itself."""

    def __init__(
        self, manifest: Manifest, directory: Path, sink: DecisionSink, notes: Sequence[str] = ()
    ) -> None:
        self._manifest = manifest
        self._notes = notes
        self._directory = directory / "ensemble"
        self._sink = sink
        self._executor: Executor | None = None

    def run(
        self, name: str, text: str, plan: RunPlan, program: str | None = None
    ) -> list[Record] | None:
        """Run a plan; give its records, or `None` if it was interrupted.

        Args:
            name: of its directory.
            text: what it does.
            plan: of it.
            program: what starts a run of its suite, where that isn't the run's own.
        """
        study, program = registry.study(plan.study), program or self._manifest.program
        directory = self._free(name)
        run_id = f"{self._manifest.run_id}/{directory.relative_to(self._directory.parent)}"
        manifest = msgspec.structs.replace(
            self._manifest, plan=plan, run_id=run_id, program=program
        )
        store.create(directory, manifest)
        forecast = estimate(plan, plan.cases, self._directory.parent.parent)
        click.echo(f"ensemble: {text}, about {duration(forecast.seconds)}", err=True)
        executor, done, interrupt = self._next_executor(manifest, directory), False, Interrupt()
        try:
            with (
                store.RunStore(directory) as events,
                interrupt,
                ProgressLine(
                    len(plan.cases),
                    plan.protocol.replicates,
                    forecast.seconds,
                    study.replicate_name,
                ) as progress,
            ):
                executor.prepare(plan.cases)
                sinks = [self._sink] if study.is_timed else []
                rest = Remaining(manifest, (), self._notes)
                done = run(RunInProgress(rest, events, sinks, progress), executor, interrupt)
        except KeyboardInterrupt:
            pass
        # Who interrupts the last replicate of a stage means the run.
        return store.read_records(directory) if done and not interrupt.requested else None

    def _next_executor(self, manifest: Manifest, directory: Path) -> Executor:
        """Return the executor of a stage, which goes on with the processes of the one before."""
        if isinstance(self._executor, HandsOver):
            following: Executor = self._executor.hand_over(manifest, directory)
        else:
            self.close()
            following = made_executor(manifest, directory, {})
        self._executor = following
        return following

    def close(self) -> None:
        """Stop what the stages have started.

        The run itself is measured in processes that know nothing of them: what only a candidate
        needs, such as a runtime with threads of its own, must not be there.
        """
        if self._executor is not None:
            with Held():
                self._executor.close()

    def _free(self, name: str) -> Path:
        """Return a directory that isn't there: one that was interrupted keeps its records."""
        number = 1
        while (found := self._directory / f"{name}-{number}").exists():
            number += 1
        return found
