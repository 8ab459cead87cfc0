"""What a parent asks of one worker process, and what comes back."""

from __future__ import annotations

from dynamometer.results.schema import (
    Absence,
    ArmResult,
    Case,
    Measurement,
    ModelSpec,
    Outcome,
    Protocol,
    Stage,
    Value,
)


class Job(Value, kw_only=True):
    """One experiment on one case in one process."""

    experiment: str
    spec: ModelSpec
    case: Case
    suite_options: dict[str, str]
    protocol: Protocol
    replicate: int
    seed: int
    cache_dir: str
    """Directory of the compiler's graph caches; empty at a case's first replicate."""
    arms: tuple[str, ...]
    """The arms of the case this process deals with."""
    threads: int | None = None
    memory_limit_bytes: int | None = None


class Findings(Value, kw_only=True):
    """What an experiment found in one process."""

    outcome: Outcome
    arms: tuple[ArmResult, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    absent: tuple[Absence, ...] = ()
    build_order: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    device_name: str | None = None


class Progress(Value, tag="progress", kw_only=True):
    """A worker entered a stage, on one arm or on none in particular."""

    stage: Stage
    arm: str | None


class Report(Value, tag="report", kw_only=True):
    """A worker's last message."""

    findings: Findings
    seconds: dict[str, float]
    """Wall seconds by stage."""


Message = Progress | Report
