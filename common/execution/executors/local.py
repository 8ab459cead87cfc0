"""Running one replicate of a case to a record, whatever becomes of its processes."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dynamometer.common import registry
from dynamometer.common.errors import DynamometerError, UnfitEnvironmentError, UsageError
from dynamometer.common.execution.abnormal_exits import (
    culprit,
    is_harness_fault,
    left_to_run,
    with_culprit,
)
from dynamometer.common.execution.confinement.containment import MOST_PROCESSES
from dynamometer.common.execution.executor import StartUp
from dynamometer.common.execution.executors.findings import findings_from, seconds_by_stage
from dynamometer.common.execution.executors.logs import Logs
from dynamometer.common.execution.fork_servers import ForkServers
from dynamometer.common.execution.graph_caches import GraphCaches
from dynamometer.common.execution.preparation.experiments import FILL, TOOLCHAIN, experiment_of
from dynamometer.common.execution.process import Limits
from dynamometer.common.execution.repro import single_case_command
from dynamometer.common.interfaces.messages import Findings, Job
from dynamometer.common.interfaces.outcome import worst
from dynamometer.common.studies.study import skip_reason
from dynamometer.results.values.records import PASSED, Record, Stage, Status
from dynamometer.results.values.workers import Caches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dynamometer.common.execution.process import Worker
    from dynamometer.common.studies.experiment import Experiment, WorkerSpec
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.records import Manifest, Outcome


class LocalExecutor:
    """Worker processes on this machine, one case at a time."""

    def __init__(
        self,
        manifest: Manifest,
        directory: Path,
        servers: ForkServers | None = None,
        caches: GraphCaches | None = None,
        logs: Logs | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            manifest: of the run; its plan says what workers are told.
            directory: of the run; logs go to `logs/` in it.
            servers: that workers are forked from, and that are ended with it; of its own if `None`.
            caches: of the run's cases, which are removed with it; of its own if `None`.
            logs: of the run's cases.
        """
        self._manifest, self._plan, self._directory = manifest, manifest.plan, directory
        self._logs = logs or Logs(directory / "logs")
        self._servers = servers or ForkServers(self._logs.of_servers)
        # Below the run's directory, so that what a killed run left is found and removed.
        self._caches = caches or GraphCaches(directory.resolve() / "cache")

    def prepare(self, cases: Sequence[Case]) -> StartUp:
        """Start the fork server, load the backends, and let their toolchains make ready."""
        study = registry.study(self._plan.study)
        runnable = [case for case in cases if not skip_reason(study, self._plan, case)]
        if not runnable:
            return StartUp()
        started = time.monotonic()
        self._servers.ready(self._plan, self._plan.protocol.allocator)
        seconds = {"start": time.monotonic() - started}
        warnings = self._prepare_toolchain(runnable[0])
        seconds["toolchain"] = time.monotonic() - started - seconds["start"]
        self._servers.take_starting_s()
        return StartUp(seconds, warnings)

    def _prepare_toolchain(self, case: Case) -> tuple[str, ...]:
        (process,) = self._processes(TOOLCHAIN, case, 0, [])
        worker = self._run_worker(TOOLCHAIN, case, 0, process)
        self.forget(case)
        found = self._findings(TOOLCHAIN, worker, case, case.arms)
        return _warnings(found.outcome, self._logs.path(case))

    def execute(self, case: Case, replicate: int) -> Record:
        """Run every experiment of the plan on one replicate of a case."""
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        started = time.monotonic()
        seconds: defaultdict[str, float] = defaultdict(float)
        parts: list[Findings] = []
        caches = self._plan.protocol.caches
        if replicate == 0 and caches is not Caches.WARM:
            self.forget(case)  # an earlier attempt may have filled them
        if caches is Caches.WARM and not self._caches.has(case):
            filling = self._processes(FILL, case, replicate, parts)
            self._run_experiment(FILL, case, replicate, filling, seconds)
        for name in self._plan.experiments:
            wanted = self._processes(name, case, replicate, parts)
            # What failed in an earlier experiment is not asked again.
            failed = _failed(parts[0]) if parts else {}
            barred = [each for each in wanted if failed.keys() & set(each.arms)]
            experiment = experiment_of(self._plan.study, name)
            parts += [_left_out(experiment, each, failed) for each in barred]
            wanted = tuple(each for each in wanted if each not in barred)
            parts += self._run_experiment(name, case, replicate, wanted, seconds)
        if caches is Caches.COLD:
            self.forget(case)
        seconds["start"] = self._servers.take_starting_s()
        seconds["harness"] = time.monotonic() - started - sum(seconds.values())
        return self._record(case, replicate, parts, started_at, dict(seconds))

    def forget(self, case: Case) -> None:
        """Remove the graph caches of a case."""
        self._caches.forget(case)

    def hand_over(self, manifest: Manifest, directory: Path) -> LocalExecutor:
        """Return one for another plan, whose workers are forked from the same servers."""
        self._caches.clear()
        return LocalExecutor(manifest, directory, self._servers)

    def beside(self) -> LocalExecutor:
        """Return one for the same run, with fork servers of its own."""
        servers = self._servers.beside()
        return LocalExecutor(self._manifest, self._directory, servers, self._caches, self._logs)

    def close(self) -> None:
        """End the fork servers, and with them their workers; remove the graph caches."""
        self._servers.close()
        self._caches.clear()

    def _run_experiment(
        self,
        name: str,
        case: Case,
        replicate: int,
        wanted: tuple[WorkerSpec, ...],
        seconds: defaultdict[str, float],
    ) -> list[Findings]:
        """Run one experiment, and add what it took to `seconds`.

        Those of the plan's first experiment go by stage, those of others by the experiment's name.
        """
        started, starting_s = time.monotonic(), self._servers.starting_s
        ended = [self._run_process(name, case, replicate, process) for process in wanted]
        is_first = name == self._plan.experiments[0]
        by_stage = seconds_by_stage(ended[0][0], self._plan) if ended and is_first else {}
        for stage, spent_s in by_stage.items():
            seconds[stage] += spent_s
        if ended and not by_stage:
            seconds[name] += time.monotonic() - started - (self._servers.starting_s - starting_s)
        return [found for _, found in ended]

    def _run_process(
        self, name: str, case: Case, replicate: int, process: WorkerSpec
    ) -> tuple[Worker, Findings]:
        """Run a worker process; where an arm ends it, or changes eager, another for the others.

        Where the first was to find the caches empty, so is the other: it compiles them anew.
        """
        was_cold = not self._caches.has(case)
        worker = self._run_worker(name, case, replicate, process)
        if name != self._plan.experiments[0] and is_harness_fault(worker):
            # The case would pass, and nothing of it be attempted again.
            worker = self._run_worker(name, case, replicate, process)
        found = self._findings(name, worker, case, process.arms)
        decides = registry.study(self._plan.study).decides
        arm = culprit(worker, found.outcome) or found.changed_eager
        if not arm or not (rest := left_to_run(process.arms, arm, decides=decides)):
            return worker, found
        if was_cold:
            self._caches.forget(case)
        _, of_others = self._run_process(name, case, replicate, replace(process, arms=rest))
        return worker, with_culprit(of_others, arm, found, process.arms)

    def _run_worker(self, name: str, case: Case, replicate: int, process: WorkerSpec) -> Worker:
        """Run one worker process, alone: two at a time spin for each other's cores."""
        is_foreign = registry.suite(self._plan.suite).is_foreign
        processes = MOST_PROCESSES if is_foreign else None
        # Code that may say anything of itself has its time but once.
        is_of_each_arm = registry.study(self._plan.study).decides and not is_foreign
        limits = Limits(
            self._plan.timeout_s, self._plan.memory_limit_bytes, processes, is_of_each_arm
        )
        job = _job(self._plan, name, case, replicate, process, str(self._caches.of(case)))
        return self._servers.run(self._plan, job, self._logs.path(case), limits)

    def _processes(
        self, name: str, case: Case, replicate: int, found: Sequence[Findings]
    ) -> tuple[WorkerSpec, ...]:
        experiment = experiment_of(self._plan.study, name)
        return experiment.processes(case, self._plan, replicate, found)

    def _findings(
        self, experiment: str, worker: Worker, case: Case, arms: tuple[str, ...]
    ) -> Findings:
        known = experiment_of(self._plan.study, experiment)
        return findings_from(worker, known, case, arms, self._manifest)

    def _record(
        self,
        case: Case,
        replicate: int,
        parts: Sequence[Findings],
        started_at: str,
        seconds: dict[str, float],
    ) -> Record:
        first = parts[0]
        outcome = worst([part.outcome for part in parts])
        log = self._logs.path(case)
        return Record(
            run_id=self._manifest.run_id,
            case=case,
            replicate=replicate,
            outcome=outcome,
            experiments=self._plan.experiments,
            arms=first.arms,
            measurements=tuple(each for part in parts for each in part.measurements),
            absent=tuple(each for part in parts for each in part.absent),
            found=first.found.copy(),  # and not the whole message with it
            build_order=first.build_order,
            disturbed_blocks=first.disturbed_blocks,
            loads=tuple(each for part in parts for each in part.loads),
            disturbed_isolated_runs=any(part.disturbed_blocks for part in parts[1:]),
            repeated_blocks=sum(part.repeated_blocks for part in parts),
            waited=any(part.waited for part in parts),
            between_sd=self._manifest.between_sd,
            between_sds=self._manifest.between_sds,
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            varies=tuple(self._plan.spec_of(case).varies),
            device_name=first.device_name,
            environment_id=self._manifest.environment.id,
            seed=self._plan.seed,
            started_at=started_at,
            seconds=seconds,
            command=single_case_command(self._manifest, case),
            log=str(log.relative_to(self._directory)) if self._logs.settle(case) else None,
        )


def _job(
    plan: RunPlan, experiment: str, case: Case, replicate: int, process: WorkerSpec, cache_dir: str
) -> Job:
    """Return what one worker process of a plan is to do."""
    return Job(
        study=plan.study,
        experiment=experiment,
        spec=plan.spec_of(case),
        case=case,
        suite_options=plan.suite_options,
        protocol=plan.protocol,
        replicate=replicate,
        seed=plan.seed,
        cache_dir=cache_dir,
        arms=process.arms,
        allocator=process.allocator,
        isolated_run=process.isolated_run,
        fastest_s=process.fastest_s,
        threads=plan.threads,
        timeout_s=plan.timeout_s,
        memory_limit_bytes=plan.memory_limit_bytes,
        raise_backend_errors=plan.raise_backend_errors,
        tuning=plan.tuning,
        corpus=plan.corpus,
    )


def _warnings(outcome: Outcome, log: Path) -> tuple[str, ...]:
    """Return what to say of how toolchains were made ready.

    Args:
        outcome: of making them ready.
        log: what was written meanwhile.

    Raises:
        UsageError: a name on the command line is at fault, and every case would say the same.
        UnfitEnvironmentError: no backend can be used here.
        DynamometerError: a backend ends the process that loads it, as it would each case's.
    """
    if outcome == PASSED:
        return ()
    reason = outcome.reason or str(outcome.status)
    if outcome.stage is not Stage.LOAD:
        return (f"the toolchain could not be made ready: {reason}",)
    if outcome.status is Status.SKIP:
        raise UnfitEnvironmentError(reason)
    if outcome.status is Status.FAIL:
        raise UsageError(reason.removeprefix(f"{UsageError.__name__}: "))
    msg = f"a backend can't be loaded: {reason}; {log} ends with:\n{outcome.detail or ''}"
    raise DynamometerError(msg)


def _failed(found: Findings) -> dict[str, Outcome]:
    """Return what each arm came to that did not pass."""
    return {each.arm: each.outcome for each in found.arms if each.outcome != PASSED}


def _left_out(
    experiment: Experiment, process: WorkerSpec, failed: Mapping[str, Outcome]
) -> Findings:
    """Return what it means that a process is not started for arms that failed before."""
    outcome = worst([failed[arm] for arm in process.arms if arm in failed])
    return experiment.salvage(Findings(outcome=outcome), process.arms)
