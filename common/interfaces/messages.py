"""What parent, fork server and workers say to each other.

parent   -> fork server   Preload, then a Fork for each worker; so again for another plan
fork server -> parent     Ready, then Started and Ended for each worker
worker   -> parent     Contained if it runs foreign code, Progress at each stage, Interim with what
                       it knows by then, one Report
"""

from __future__ import annotations

import msgspec

from dynamometer.results.values.cases import Case, ModelSpec, Protocol, Value
from dynamometer.results.values.choices import Tuning
from dynamometer.results.values.records import (
    NOTHING,
    Absence,
    ArmResult,
    BlockLoad,
    Measurement,
    Outcome,
    Stage,
)
from dynamometer.results.values.workers import Allocator


class Job(Value, frozen=True, kw_only=True):
    """One experiment on one case in one process."""

    study: str
    """What is asked; its experiments are known by it."""
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
    allocator: Allocator
    isolated_run: int = 0
    """Which isolated run of its arm this is, where there are several."""
    fastest_s: float | None = None
    """Seconds per call of the case's fastest arm, where that is known and may not be here."""
    threads: int | None = None
    timeout_s: float = 1200.0
    memory_limit_bytes: int | None = None
    raise_backend_errors: bool = False
    tuning: Tuning | None = None
    """Where arms made of decisions look these up."""
    corpus: str | None = None
    """Where graphs are put, by a study that records them."""


class Findings(Value, frozen=True, kw_only=True):
    """What an experiment found in one process."""

    outcome: Outcome
    arms: tuple[ArmResult, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    absent: tuple[Absence, ...] = ()
    found: msgspec.Raw = NOTHING
    """What the study's own type encodes (`packed`)."""
    build_order: tuple[str, ...] = ()
    changed_eager: str | None = None
    """The first arm that changed what eager computes; the others are run again without it."""
    disturbed_blocks: tuple[int, ...] = ()
    loads: tuple[BlockLoad, ...] = ()
    repeated_blocks: int = 0
    waited: bool = False
    notes: tuple[str, ...] = ()
    device_name: str | None = None


class Progress(Value, tag="progress", frozen=True, kw_only=True):
    """A worker entered a stage, on one arm or on none in particular."""

    stage: Stage
    arm: str | None
    doing: str | None = None
    """How the reason begins if it ends there, where the stage says too little."""


class Interim(Value, tag="interim", frozen=True, kw_only=True):
    """What a worker has found, and will be taken to have found should it end without a report."""

    findings: Findings


class Report(Value, tag="report", frozen=True, kw_only=True):
    """A worker's last message."""

    findings: Findings
    seconds: dict[Stage, float]
    """Wall seconds."""


class Contained(Value, tag="contained", frozen=True, kw_only=True):
    """A worker has given up what foreign code must not have, but for what is missing."""

    missing: tuple[str, ...]


Message = Progress | Contained | Interim | Report

LONGEST_MESSAGE = 16 * 2**20
"""Bytes between parent and fork server."""


class Preload(Value, tag="preload", frozen=True, kw_only=True):
    """What a fork server imports before it is ready for the workers of a plan."""

    study: str
    experiments: tuple[str, ...]
    suite: str
    suite_options: dict[str, str]
    specs: tuple[ModelSpec, ...]
    arms: tuple[str, ...]
    """All arms there will be; what the registered ones need is imported."""
    device: str
    is_ahead: bool = True
    """Whether to import it at once; else each worker does, before anything is timed."""


class Fork(Value, tag="fork", frozen=True, kw_only=True):
    """Start a worker; its pipe and its log come as descriptors with this message."""

    job: Job
    token: str


class Ready(Value, tag="ready", frozen=True, kw_only=True):
    """The fork server has imported what it was to import ahead."""

    device_works: bool = True
    """Whether workers that are forked of it can use the device."""


class Started(Value, tag="started", frozen=True, kw_only=True):
    """A worker runs; a descriptor of it comes with this message.

    Its process id is another one here than there, where the fork server sees no other processes.
    """


class Ended(Value, tag="ended", frozen=True, kw_only=True):
    """A worker has ended."""

    pid: int
    wait_status: int
    peak_bytes: int
    has_altered_server: bool = False
    """Whether the fork server has other limits than before, or far more memory, which its next
    worker would have."""


Command = Preload | Fork
Answer = Ready | Started | Ended
