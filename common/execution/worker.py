"""The life of a worker process: limits, one job, one report."""

from __future__ import annotations

import faulthandler
import math
import os
import resource
import secrets
import signal
from contextlib import nullcontext, suppress
from pathlib import Path

import msgspec

from dynamometer.common import registry
from dynamometer.common.execution.channel import Channel
from dynamometer.common.execution.confinement.containment import Bounds, contain
from dynamometer.common.execution.preparation.experiments import experiment_of
from dynamometer.common.interfaces.messages import Contained, Findings, Job, Report
from dynamometer.common.interfaces.outcome import attempt
from dynamometer.common.machine import allocator
from dynamometer.common.machine.openmp import note_on_runtimes
from dynamometer.common.studies.experiment import Context, StageClock
from dynamometer.common.studies.study import Jobs
from dynamometer.results.values.cases import DynamicDims
from dynamometer.results.values.records import Outcome, Stage, Status

_PRIVATE_DESCRIPTORS = (200, 900)
"""Where the result channel is moved to, out of the way of a model that counts descriptors."""
_SPARE = 16
"""Descriptors at the end of what is allowed, in case the number that is drawn is taken."""


def run(job: Job, result_descriptor: int, token: str) -> None:
    """Do the job and report it; whatever the model does, at most one report is sent.

    Standard output and error already go to the case's log.
    """
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = job.cache_dir
    _limit(job)
    _explain_exit()
    descriptor = _move_away(result_descriptor)
    channel = Channel(descriptor, token)
    stages = StageClock(channel.send)
    if registry.suite(job.case.suite).is_foreign:
        missing = attempt(stages, lambda: _contained(job, descriptor))
        if isinstance(missing, Outcome):
            infra = msgspec.structs.replace(missing, status=Status.INFRA, stage=Stage.WORKER)
            channel.send(Report(findings=Findings(outcome=infra), seconds={}))
            return
        channel.send(missing)
    findings = attempt(stages, lambda: _measure(job, stages, channel))
    if isinstance(findings, Outcome):
        findings = Findings(outcome=findings)
    channel.send(Report(findings=findings, seconds=dict(stages.seconds)))


def _measure(job: Job, stages: StageClock, channel: Channel) -> Findings:
    from dynamometer.dynamo import first_compilation, state
    from dynamometer.dynamo.capture.compilations import keeping_all
    from dynamometer.dynamo.device import open_device
    from dynamometer.dynamo.private import gone

    study, source = registry.study(job.study), registry.suite(job.case.suite)
    experiment = experiment_of(job.study, job.experiment)
    context = Context(
        job=job,
        suite=source.open(job.suite_options),
        device=open_device(job.case.device),
        stages=stages,
        send=channel.send,
    )
    policy_note = allocator.apply(job.allocator)
    is_dynamic = job.case.has_dynamic_dims(DynamicDims.ALL)
    running = state.running(
        job.case.mode, job.threads, precision=job.case.matmul_precision, dynamic=is_dynamic,
        exact=not study.is_timed, arms=len(job.arms),
    )  # fmt: skip
    times_compiling = study.jobs is not Jobs.ALL_CORES
    quietly = nullcontext() if times_compiling else first_compilation.without_what_is_logged()
    headers = state.without_shared_headers() if source.is_foreign else nullcontext()
    with keeping_all(), running, quietly, headers:
        findings = experiment.measure(context)
        set_otherwise = (
            state.note_on_precision(job.case.matmul_precision),
            state.note_on_threads(job.threads),
        )
    found = (*context.notes, policy_note, *set_otherwise, note_on_runtimes(), *gone())
    notes = [note for note in found if note]
    return msgspec.structs.replace(findings, notes=(*findings.notes, *notes))


def _limit(job: Job) -> None:
    """Bound what the process may take, and offer it first to a kernel short of memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if job.memory_limit_bytes is not None and job.case.device == "cpu":
        # Private writable memory. Drivers of accelerators map far more than they use, so there
        # only the parent's watch over the resident set applies.
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        limit = job.memory_limit_bytes
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most)  # whoever started the run allows no more
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _contained(job: Job, descriptor: int) -> Contained:
    """Give up what foreign code must not have."""
    bounds = Bounds(cpu_s=math.ceil(job.timeout_s * (os.cpu_count() or 1)))
    descriptors = {0, 1, 2, descriptor}
    missing = contain(Path(job.cache_dir), descriptors, bounds, device=job.case.device)
    return Contained(missing=missing)


def _explain_exit() -> None:
    """Have a crash, and the SIGTERM of a timeout, leave every thread's stack in the log."""
    faulthandler.enable()
    faulthandler.register(signal.SIGTERM, chain=True)


def _move_away(descriptor: int) -> int:
    """Move a descriptor to a random high number that child processes don't inherit."""
    import fcntl

    low, high = _private_descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    floor = low + secrets.randbelow(high - low)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, floor)
    os.close(descriptor)
    return moved


def _private_descriptors(limit: int) -> tuple[int, int]:
    """Return between which numbers the channel's is, where so many descriptors may be open."""
    low, high = _PRIVATE_DESCRIPTORS
    if limit != resource.RLIM_INFINITY:
        high = min(high, max(limit - _SPARE, limit // 2 + 1))
    return min(low, high - 1, high // 2), high
