"""The interface between the worker and what is measured in it."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import msgspec

from dynamometer.common.checking.shapes import with_other_sizes
from dynamometer.common.interfaces.messages import Findings, Interim, Progress
from dynamometer.common.machine.temporary import TEMPORARY, temporary_files_in
from dynamometer.dynamo.clock import Clock
from dynamometer.results.values.cases import BASELINE, DynamicDims
from dynamometer.results.values.records import PASSED, Absence, ArmResult, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dynamometer.common.interfaces.messages import Job, Message
    from dynamometer.common.interfaces.suite import LoadedModel, Suite
    from dynamometer.dynamo.device import Device
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.workers import Allocator


@dataclass
class StageClock:
    """Tells the parent where the worker is, and adds up the wall seconds of each stage.

    A stage within another takes its seconds from that one, and gives way to it again.
    """

    announce: Callable[[Progress], None]
    stage: Stage | None = None
    arm: str | None = None
    seconds: dict[Stage, float] = field(default_factory=lambda: defaultdict(float))
    _open: list[tuple[Stage, str | None]] = field(default_factory=list)

    @contextmanager
    def at(self, stage: Stage, arm: str | None = None) -> Iterator[None]:
        """Be in a stage; after an exception the clock still says which stage it was."""
        self._enter(stage, arm)
        self._open.append((stage, arm))
        started = Clock.now()
        try:
            yield
        finally:
            spent_s = Clock.now() - started
            self._open.pop()
            self.seconds[stage] += spent_s
            if self._open:
                self.seconds[self._open[-1][0]] -= spent_s
        if self._open:
            self._enter(*self._open[-1])

    def _enter(self, stage: Stage, arm: str | None) -> None:
        self.stage, self.arm = stage, arm
        self.announce(Progress(stage=stage, arm=arm))


@dataclass(frozen=True)
class Context:
    """What an experiment works with inside a worker process.

    Attributes:
        is_guarded: whether an arm fails for what it does to the others.
        notes: what is to be known of the process beside its findings.
        _imported: arms whose backends were looked up.
    """

    is_guarded: ClassVar = False

    job: Job
    suite: Suite
    device: Device
    stages: StageClock
    send: Callable[[Message], None]
    notes: list[str] = field(default_factory=list)
    _imported: set[str] = field(default_factory=set)

    def keep(self, findings: Findings) -> None:
        """Have it stand if the process ends before there is a report."""
        self.send(Interim(findings=findings))

    def strict(self) -> Self:
        """Return one in which an arm fails with its backend, on whatever graph that fails."""
        job = msgspec.structs.replace(self.job, raise_backend_errors=True)
        return replace(self, job=job)

    @contextmanager
    def guarding(self, arm: str) -> Iterator[None]:
        """Put back, and note, what an arm sets for the whole process: the others would pay for it.

        What the model itself sets was set by eager's calls before.
        """
        # This module is read by the parent, without torch.
        from dynamometer.dynamo import process_settings

        if arm == BASELINE:
            yield
            return
        self._import_backends()
        pace = process_settings.pace()
        try:
            with self.keeping_options(arm):
                yield
        finally:
            self._note_put_back(arm, process_settings.put_back_pace(pace))

    def _import_backends(self) -> None:
        """Import what all arms need: what a module sets then it sets once, and for all of them."""
        from dynamometer.common.measuring.arm_backends import load_backend

        for each in self.job.arms:
            if each != BASELINE and each not in self._imported:
                self._imported.add(each)
                # Whoever compiles meets it again; what ends the process is that arm's doing.
                with self.stages.at(Stage.COMPILE, each), suppress(Exception, SystemExit):
                    load_backend(each)

    @contextmanager
    def keeping_options(self, arm: str) -> Iterator[None]:
        """Put back, and note, options of Dynamo and Inductor, if others are compiled as well."""
        from dynamometer.dynamo import process_settings

        if len(self.job.arms) <= _ARMS_WITHOUT_OTHERS:
            yield
            return
        before = process_settings.options()
        try:
            yield
        finally:
            self._note_put_back(arm, process_settings.put_back_options(before))

    def _note_put_back(self, arm: str, changed: Sequence[str]) -> None:
        if changed:
            self.notes.append(f"{arm} set for all arms, and it was put back: {', '.join(changed)}")

    def load(self) -> LoadedModel:
        """Build the case's model and inputs, in the state the case asks for.

        Raises:
            SkippedError: the model can't be run in that state, for a reason that is no fault.
            LookupError: there is no function of a name that Dynamo is to treat in its own way.
        """
        # This module is read by the parent, without torch.
        from dynamometer.common.checking.steps import configure
        from dynamometer.dynamo import state
        from dynamometer.dynamo.capture.overrides import apply_overrides
        from dynamometer.dynamo.capture.sizes import mark_varying

        spec, case = self.job.spec, self.job.case
        state.seed_everything(self.job.seed)
        with temporary_files_in(Path(self.job.cache_dir, TEMPORARY)):
            loaded = self.suite.load(spec, case)
            apply_overrides(case.overrides)
            if case.dynamic:
                loaded = with_other_sizes(loaded, self.suite, spec, case)
        loaded = configure(loaded, case, self.device.torch_device)
        if case.has_dynamic_dims(DynamicDims.BATCH):
            mark_varying([(each.args, dict(each.kwargs)) for each in loaded.calls])
        return loaded if self.job.tuning is None else _with_key(loaded)


_ARMS_WITHOUT_OTHERS = 2
"""Eager, and one that is compiled."""


def _with_key(loaded: LoadedModel) -> LoadedModel:
    """Add a model's key now: calls may change what its functions refer to, such as a cache."""
    from dynamometer.dynamo.ensemble.model_key import model_key

    key = model_key(loaded.module, loaded.args, loaded.kwargs, loaded.others)
    return replace(loaded, model_key=key)


@dataclass(frozen=True)
class WorkerSpec:
    """One worker process an experiment wants.

    Attributes:
        arms: those of the case it deals with.
        allocator: the policy its `malloc` is to follow.
        isolated_run: which of the isolated runs of its arm it is, from 0.
        fastest_s: seconds per call of the case's fastest arm, if that is known.
    """

    arms: tuple[str, ...]
    allocator: Allocator
    isolated_run: int = 0
    fastest_s: float | None = None


class Experiment(Protocol):
    """Something measured on a case, in one worker process or several."""

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[WorkerSpec, ...]:
        """Return which worker processes it wants; none to sit this replicate out.

        Args:
            case: what is run.
            plan: of the run.
            replicate: which of the case, from 0.
            found: what the experiments before it found in this replicate.
        """
        ...

    def measure(self, context: Context) -> Findings:
        """Run in the worker; whatever it raises becomes the outcome of the case."""
        ...

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Say, in the parent, what it means for the case that a process did not pass.

        Args:
            findings: the worker's, or made of how it died.
            arms: those the process dealt with.
        """
        ...


@dataclass(frozen=True)
class InOneProcess:
    """What experiments share that deal with all arms of a case in one process."""

    def processes(
        self, case: Case, plan: RunPlan, replicate: int, found: Sequence[Findings]
    ) -> tuple[WorkerSpec, ...]:
        """Take all arms in one process, in every replicate."""
        del replicate, found
        return (WorkerSpec(case.arms, plan.protocol.allocator),)

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Give every arm the outcome of the process where it has none of its own."""
        if findings.arms:
            return findings
        results = tuple(ArmResult(arm=arm, outcome=findings.outcome) for arm in arms)
        return msgspec.structs.replace(findings, arms=results)


def only_missing(metric: str, findings: Findings, arms: tuple[str, ...]) -> Findings:
    """Leave a case as it is whose process did not pass: only what it was to measure is missing.

    Args:
        metric: what it was to measure.
        findings: the worker's, or made of how it died.
        arms: those the process dealt with.
    """
    reason = findings.outcome.reason or str(findings.outcome.status)
    absent = tuple(Absence(metric=metric, arm=arm, reason=reason) for arm in arms)
    return Findings(outcome=PASSED, absent=absent, notes=findings.notes)
