"""Running one replicate of a case to a record, whatever becomes of its processes."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from dynamometer.common import registry
from dynamometer.common.allocator import worker_environment
from dynamometer.common.deaths import arms_at_death, name_death
from dynamometer.common.messages import Findings, Job, Preparation
from dynamometer.common.outcome import worst
from dynamometer.common.process import Limits, Template, tail
from dynamometer.common.repro import single_case_command
from dynamometer.results.schema import BASELINE, PASSED, Record, StartMethod, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.experiment import Experiment, Process
    from dynamometer.common.process import Worker
    from dynamometer.results.schema import Allocator, Case, Manifest

Arms = tuple[str, ...]

_LOG_LIMIT_BYTES = 2 * 2**20
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
        self._directory = directory
        self._logs = directory / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._templates: dict[Allocator, Template] = {}
        self._caches: dict[str, Path] = {}
        # Below the run's directory, so that what a killed run left is found and removed.
        self._cache_root = directory.resolve() / "cache"
        shutil.rmtree(self._cache_root, ignore_errors=True)
        self._starting_s = 0.0

    def prepare(self) -> float:
        """Start the templates, and let the C++ toolchain prepare what it keeps."""
        runnable = [case for case in self._plan.cases if not self._plan.skip_reason(case)]
        if not runnable:
            return 0.0
        started = time.monotonic()
        if self._plan.protocol.start_method is StartMethod.FORK:
            self._start_templates(runnable[0])
        if "inductor" in self._arms():
            wanted = self._processes("toolchain", runnable[0], 0)
            self._run_workers("toolchain", runnable[0], 0, wanted)
            self._forget_cache(runnable[0])
        self._starting_s = 0.0
        return time.monotonic() - started

    def execute(self, case: Case, replicate: int) -> Record:
        """Run every experiment of the plan on one replicate of a case."""
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        started = time.monotonic()
        seconds: defaultdict[str, float] = defaultdict(float)
        parts: list[Findings] = []
        for name in self._plan.experiments:
            wanted = self._processes(name, case, replicate)
            if parts:
                # What failed in an earlier experiment is not asked again.
                good = {result.arm for result in parts[0].arms if result.outcome == PASSED}
                wanted = tuple(each for each in wanted if good.issuperset(each.arms))
            parts += self._run_experiment(name, case, replicate, wanted, seconds)
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
        shutil.rmtree(self._cache_root, ignore_errors=True)
        self._caches.clear()

    def _run_experiment(
        self,
        name: str,
        case: Case,
        replicate: int,
        wanted: tuple[Process, ...],
        seconds: defaultdict[str, float],
    ) -> list[Findings]:
        """Run one experiment, and add what it took to `seconds`.

        One worker's seconds go by its stages. Several run side by side, so theirs go by the
        clock, under the experiment's name.
        """
        started, starting_s = time.monotonic(), self._starting_s
        workers = self._run_workers(name, case, replicate, wanted)
        if len(workers) == 1 and workers[0].report:
            for stage, spent_s in workers[0].report.seconds.items():
                seconds[stage] += spent_s
        elif workers:
            seconds[name] += time.monotonic() - started - (self._starting_s - starting_s)
        return [
            self._findings(name, worker, case, process.arms)
            for worker, process in zip(workers, wanted, strict=True)
        ]

    def _run_workers(
        self, name: str, case: Case, replicate: int, wanted: tuple[Process, ...]
    ) -> list[Worker]:
        """Run the worker processes an experiment wants; side by side if there are several.

        Several are only asked for by experiments that time nothing. They take turns where memory
        is not the host's, and where each is to have a template of its own.
        """
        log = self._log_path(case)
        spawn = self._plan.protocol.start_method is StartMethod.SPAWN
        batches = [(each,) for each in wanted] if spawn or case.device != "cpu" else [wanted]
        ended: list[Worker] = []
        for batch in batches:
            if not batch:
                continue
            template = self._template(batch[0].allocator)
            jobs = [self._job(name, case, replicate, process.arms) for process in batch]
            ended += template.run(jobs, log, self._limits())
            if template.died:
                self._templates.pop(batch[0].allocator).close()
        _cut(log)
        return ended

    def _processes(self, name: str, case: Case, replicate: int) -> tuple[Process, ...]:
        experiment: Experiment = registry.resolve("experiments", name)()
        return experiment.processes(case, self._plan, replicate)

    def _start_templates(self, case: Case) -> None:
        """Start one template for each allocator policy that will be wanted, side by side."""
        wanted = {
            process.allocator
            for name in self._plan.experiments
            for process in self._processes(name, case, 0)
        }
        for allocator in sorted(wanted):
            self._templates[allocator] = self._launch(allocator)
        for template in self._templates.values():
            template.await_ready()

    def _template(self, allocator: Allocator) -> Template:
        """Give a ready template; where workers are spawned, a new one each time."""
        known = self._templates.get(allocator)
        if known is not None:
            if self._plan.protocol.start_method is StartMethod.FORK:
                return known
            known.close()
        started = time.monotonic()
        template = self._templates[allocator] = self._launch(allocator)
        template.await_ready()
        self._starting_s += time.monotonic() - started
        return template

    def _launch(self, allocator: Allocator) -> Template:
        environment = worker_environment(allocator, os.environ)
        template = Template(self._logs / "template.log", environment)
        arms = self._arms()
        template.launch(
            Preparation(
                suite=self._plan.suite,
                suite_options=self._plan.suite_options,
                specs=self._plan.models,
                dynamo=not arms <= _NO_DYNAMO,
                probe="inductor" in arms and self._plan.cases[0].device == "cpu",
            )
        )
        return template

    def _arms(self) -> set[str]:
        return {arm for case in self._plan.cases for arm in case.arms}

    def _limits(self) -> Limits:
        return Limits(self._plan.timeout_s, self._plan.memory_limit_bytes)

    def _job(self, experiment: str, case: Case, replicate: int, arms: Arms) -> Job:
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
            self._cache_root.mkdir(exist_ok=True)
            self._caches[case.id] = Path(tempfile.mkdtemp(dir=self._cache_root))
        return self._caches[case.id]

    def _forget_cache(self, case: Case) -> None:
        path = self._caches.pop(case.id, None)
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)

    def _log_path(self, case: Case) -> Path:
        return self._logs / f"{case.model.replace('/', '_')}.log"

    def _findings(self, experiment: str, worker: Worker, case: Case, arms: Arms) -> Findings:
        """Take a worker's findings, or make some of how it died."""
        if worker.report is not None:
            found = worker.report.findings
        else:
            machine_bytes = self._manifest.environment.memory_bytes
            outcome = name_death(worker, self._plan.timeout_s, machine_bytes)
            found = Findings(outcome=outcome, arms=arms_at_death(worker, case, outcome))
        if found.outcome.status is not Status.PASS:
            found = registry.resolve("experiments", experiment)().salvage(found, arms)
        foreign = worker.receiver.foreign_bytes
        if not foreign:
            return found
        note = f"the model wrote {foreign} bytes to the result channel"
        return msgspec.structs.replace(found, notes=(*found.notes, note))

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
        log = self._log_path(case)
        if outcome.status not in {Status.PASS, Status.SKIP} and outcome.detail is None:
            outcome = msgspec.structs.replace(outcome, detail=tail(log) or None)
        return Record(
            run_id=self._manifest.run_id,
            case=case,
            replicate=replicate,
            outcome=outcome,
            arms=first.arms,
            measurements=tuple(each for part in parts for each in part.measurements),
            absent=tuple(each for part in parts for each in part.absent),
            build_order=first.build_order,
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            device_name=first.device_name,
            environment_id=self._manifest.environment.id,
            seed=self._plan.seed,
            started_at=started_at,
            seconds=seconds,
            command=single_case_command(self._manifest, case),
            log=str(log.relative_to(self._directory)),
        )


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
