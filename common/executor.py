"""Running one replicate of a case to a record, whatever becomes of its processes."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dynamometer.common import registry
from dynamometer.common.allocator import worker_environment
from dynamometer.common.job import Findings, Job
from dynamometer.common.outcome import worst
from dynamometer.common.process import Limits, Template, TemplateDiedError, Worker, tail
from dynamometer.common.repro import single_case_command
from dynamometer.common.template import Preparation
from dynamometer.results.schema import (
    BASELINE,
    PASSED,
    Absence,
    ArmResult,
    Outcome,
    Record,
    Stage,
    StartMethod,
    Status,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.common.experiment import Experiment
    from dynamometer.results.schema import Allocator, Case, Manifest

_LOG_LIMIT_BYTES = 2 * 2**20
_KERNEL_KILL_SHARE = 0.5
"""A worker that SIGKILL ended while it held this share of memory was killed by the kernel."""
_NO_DYNAMO = frozenset({BASELINE, "ts"})


class Executor(Protocol):
    """Something that turns a replicate of a case into a record."""

    def prepare(self) -> float:
        """Do what must be done once before the first case, and give the seconds it took."""
        ...

    def execute(self, case: Case, replicate: int) -> Record:
        """Run one replicate; the record says how it ended. Model faults are never raised."""
        ...

    def close(self) -> None:
        """Stop every process that was started."""
        ...


class LocalExecutor:
    """Worker processes on this machine, one case at a time."""

    def __init__(self, manifest: Manifest, directory: Path) -> None:
        """Start nothing yet.

        Args:
            manifest: of the run; its plan says what workers are told.
            directory: of the run; logs go to `logs/` in it.
        """
        self._manifest = manifest
        self._plan = manifest.plan
        self._logs = directory / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._templates: dict[Allocator, Template] = {}
        self._caches: dict[str, Path] = {}
        self._starting_s = 0.0

    def prepare(self) -> float:
        """Start the template, and let the C++ toolchain prepare what it keeps."""
        if "inductor" not in self._arms() or not self._plan.cases:
            return 0.0
        started = time.monotonic()
        experiment: Experiment = registry.resolve("experiments", "toolchain")()
        case = self._plan.cases[0]
        self._run_jobs("toolchain", experiment, case, 0, ((BASELINE,),))
        self._forget_cache(case)
        self._starting_s = 0.0
        return time.monotonic() - started

    def execute(self, case: Case, replicate: int) -> Record:
        """Run every experiment of the plan on one replicate of a case."""
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        started = time.monotonic()
        seconds: dict[str, float] = defaultdict(float)
        parts: list[Findings] = []
        for name in self._plan.experiments:
            experiment: Experiment = registry.resolve("experiments", name)()
            process_arms = experiment.jobs(case, self._plan, replicate)
            if parts:
                # What failed in an earlier experiment is not asked again.
                good = {result.arm for result in parts[0].arms if result.outcome == PASSED}
                process_arms = tuple(arms for arms in process_arms if good.issuperset(arms))
            stage_started = time.monotonic()
            starting_before = self._starting_s
            workers = self._run_jobs(name, experiment, case, replicate, process_arms)
            parts += [self._findings(worker, case, arms, name) for worker, arms in workers]
            if len(process_arms) == 1 and workers and workers[0][0].report:
                for stage, spent in workers[0][0].report.seconds.items():
                    seconds[stage] += spent
            elif process_arms:
                spent = time.monotonic() - stage_started
                seconds[name] += spent - (self._starting_s - starting_before)
        if replicate + 1 == self._plan.protocol.replicates:
            self._forget_cache(case)
        seconds["start"], self._starting_s = self._starting_s, 0.0
        seconds["harness"] = time.monotonic() - started - sum(seconds.values())
        return self._record(case, replicate, parts, started_at, dict(seconds))

    def close(self) -> None:
        """End the templates, and with them their workers; remove the graph caches."""
        for template in self._templates.values():
            template.close()
        self._templates.clear()
        for path in self._caches.values():
            shutil.rmtree(path, ignore_errors=True)
        self._caches.clear()

    def _arms(self) -> set[str]:
        return {arm for case in self._plan.cases for arm in case.arms}

    def _template(self, allocator: Allocator) -> Template:
        """Give a ready template; where workers are spawned, a new one each time."""
        spawn = self._plan.protocol.start_method is StartMethod.SPAWN
        if allocator in self._templates and not spawn:
            return self._templates[allocator]
        if allocator in self._templates:
            self._templates.pop(allocator).close()
        started = time.monotonic()
        template = Template(self._logs / "template.log", worker_environment(allocator, os.environ))
        self._templates[allocator] = template
        arms = self._arms()
        template.start(
            Preparation(
                suite=self._plan.suite,
                suite_options=self._plan.suite_options,
                specs=self._plan.models,
                dynamo=not arms <= _NO_DYNAMO,
                probe="inductor" in arms and self._plan.cases[0].device == "cpu",
            )
        )
        self._starting_s += time.monotonic() - started
        return template

    def _run_jobs(
        self,
        name: str,
        experiment: Experiment,
        case: Case,
        replicate: int,
        process_arms: tuple[tuple[str, ...], ...],
    ) -> list[tuple[Worker, tuple[str, ...]]]:
        """Run one worker for each group of arms; side by side where that changes no answer."""
        ended: list[tuple[Worker, tuple[str, ...]]] = []
        allocator = experiment.allocator(self._plan)
        for group in _batches(process_arms, 1 if self._one_at_a_time(case) else len(process_arms)):
            jobs = [(self._job(name, case, replicate, arms), arms) for arms in group]
            log = self._log_path(case)
            template = self._template(allocator)
            workers = []
            try:
                workers = [(template.fork(job, log), arms) for job, arms in jobs]
                template.wait([worker for worker, _ in workers], self._limits())
            except TemplateDiedError:
                self._templates.pop(allocator).close()
                workers = workers or [(_never_started(), case.arms)]
            _cut(log)
            ended += workers
        return ended

    def _one_at_a_time(self, case: Case) -> bool:
        spawn = self._plan.protocol.start_method is StartMethod.SPAWN
        return spawn or case.device != "cpu"

    def _limits(self) -> Limits:
        return Limits(self._plan.timeout_s, self._plan.memory_limit_bytes)

    def _job(self, experiment: str, case: Case, replicate: int, arms: tuple[str, ...]) -> Job:
        return Job(
            experiment=experiment,
            spec=self._plan.spec_of(case),
            case=case,
            suite_options=self._plan.suite_options,
            protocol=self._plan.protocol,
            replicate=replicate,
            seed=self._plan.seed,
            cache_dir=str(self._cache(case)),
            arms=arms,
            threads=self._plan.threads,
            memory_limit_bytes=self._plan.memory_limit_bytes,
        )

    def _cache(self, case: Case) -> Path:
        """Give the case's own graph caches: empty at first, kept for its later replicates."""
        if case.id not in self._caches:
            self._caches[case.id] = Path(tempfile.mkdtemp(prefix="dynamometer-cache-"))
        return self._caches[case.id]

    def _forget_cache(self, case: Case) -> None:
        shutil.rmtree(self._caches.pop(case.id, Path()), ignore_errors=True)

    def _log_path(self, case: Case) -> Path:
        return self._logs / f"{case.model}.log"

    def _findings(
        self, worker: Worker, case: Case, arms: tuple[str, ...], experiment: str
    ) -> Findings:
        """Take a worker's findings, or make some of how it died."""
        foreign = worker.receiver.foreign_bytes
        notes = (f"the model wrote {foreign} bytes to the result channel",) if foreign else ()
        if worker.report is not None:
            found = worker.report.findings
            if experiment == "memory" and found.outcome != PASSED:
                return _without_metric(found.outcome, arms, notes)
            return _with_notes(found, notes)
        outcome = _death(worker, self._plan.timeout_s, self._manifest.environment.memory_bytes)
        if experiment == "memory":
            return _without_metric(outcome, arms, notes)
        return Findings(outcome=outcome, arms=_arms_at_death(worker, case, outcome), notes=notes)

    def _record(
        self,
        case: Case,
        replicate: int,
        parts: Sequence[Findings],
        started_at: str,
        seconds: dict[str, float],
    ) -> Record:
        outcome = worst([part.outcome for part in parts])
        log = self._log_path(case)
        if outcome.status not in {Status.PASS, Status.SKIP} and outcome.detail is None:
            outcome = Outcome(
                status=outcome.status,
                stage=outcome.stage,
                reason=outcome.reason,
                detail=tail(log) or None,
            )
        return Record(
            run_id=self._manifest.run_id,
            case=case,
            replicate=replicate,
            outcome=outcome,
            arms=next((part.arms for part in parts if part.arms), _all_arms(case, outcome)),
            measurements=tuple(each for part in parts for each in part.measurements),
            absent=tuple(each for part in parts for each in part.absent),
            build_order=parts[0].build_order,
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            device_name=parts[0].device_name,
            environment_id=self._manifest.environment.id,
            seed=self._plan.seed,
            started_at=started_at,
            seconds=seconds,
            command=single_case_command(self._manifest, case),
            log=str(log.relative_to(self._directory)),
        )


def _batches(
    groups: tuple[tuple[str, ...], ...], size: int
) -> Iterator[tuple[tuple[str, ...], ...]]:
    for start in range(0, len(groups), max(1, size)):
        yield groups[start : start + size]


def _never_started() -> Worker:
    from dynamometer.common.channel import Receiver

    return Worker(pid=0, results=-1, receiver=Receiver(""), started=time.monotonic())


def _death(worker: Worker, timeout_s: float, machine_bytes: int) -> Outcome:
    """Name how a worker ended that sent no report."""
    stage = worker.progress.stage if worker.progress else Stage.WORKER
    arm = worker.progress.arm if worker.progress else None
    where = f"at stage {stage}" + (f" of {arm}" if arm else "")

    def ended(status: Status, reason: str) -> Outcome:
        return Outcome(status=status, stage=stage, reason=f"{reason} {where}")

    if worker.killed == "timeout":
        return ended(Status.TIMEOUT, f"killed after {timeout_s:g} s,")
    if worker.killed == "memory":
        return ended(Status.OOM, "killed over its memory limit,")
    if worker.ending is None:
        return ended(Status.INFRA, "the worker template died")
    number = worker.ending.wait_status & 0x7F
    if not number:
        code = worker.ending.wait_status >> 8
        return ended(Status.CRASH, f"the process exited with code {code} and no result")
    if number == signal.SIGKILL and worker.ending.peak_bytes > _KERNEL_KILL_SHARE * machine_bytes:
        return ended(Status.OOM, "killed by the kernel, most likely for want of memory,")
    return ended(Status.CRASH, f"killed by {signal.Signals(number).name}")


def _arms_at_death(worker: Worker, case: Case, outcome: Outcome) -> tuple[ArmResult, ...]:
    """Blame the arm that was at work; if it was none in particular, all of them."""
    culprit = worker.progress.arm if worker.progress else None
    if culprit is None:
        return _all_arms(case, outcome)
    spared = Outcome(
        status=Status.SKIP,
        stage=Stage.WORKER,
        reason=f"not measured: {culprit} ended the process ({outcome.status})",
    )
    return tuple(
        ArmResult(arm=arm, outcome=outcome if arm == culprit else spared) for arm in case.arms
    )


def _all_arms(case: Case, outcome: Outcome) -> tuple[ArmResult, ...]:
    return tuple(ArmResult(arm=arm, outcome=outcome) for arm in case.arms)


def _without_metric(outcome: Outcome, arms: tuple[str, ...], notes: tuple[str, ...]) -> Findings:
    """Leave the case as it is where only its memory couldn't be measured."""
    reason = outcome.reason or str(outcome.status)
    return Findings(
        outcome=PASSED,
        absent=tuple(Absence(metric="peak_memory", arm=arm, reason=reason) for arm in arms),
        notes=notes,
    )


def _with_notes(findings: Findings, notes: tuple[str, ...]) -> Findings:
    import msgspec

    return msgspec.structs.replace(findings, notes=(*findings.notes, *notes))


def _cut(log: Path) -> None:
    """Keep the beginning and the end of a log that a model has flooded."""
    if not log.exists() or log.stat().st_size <= _LOG_LIMIT_BYTES:
        return
    half = _LOG_LIMIT_BYTES // 2
    with log.open("r+b") as file:
        head = file.read(half)
        file.seek(-half, 2)
        end = file.read()
        file.seek(0)
        file.write(head + b"\n[... cut ...]\n" + end)
        file.truncate()
