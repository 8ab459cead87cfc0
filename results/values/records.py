"""The vocabulary of what came back: outcomes, measurements, records, the manifest of a run."""

from __future__ import annotations

import math
from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.values.cases import Case, RunPlan, Value
from dynamometer.results.values.choices import Choice

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

# Format history: 1 the first; 2 replicates until a target, latencies alone and apart; 3 what a
# study found as one value, which only the study reads; 4 the field's names (formats.py lists them).
SCHEMA_VERSION = 4


class Status(StrEnum):
    """How a case, or one arm of it, ended."""

    PASS = "pass"  # noqa: S105  a status, not a password
    SKIP = "skip"
    FAIL_ACCURACY = "fail_accuracy"
    NONDETERMINISTIC = "nondeterministic"
    FAIL = "fail"
    OOM = "oom"
    TIMEOUT = "timeout"
    CRASH = "crash"
    INFRA = "infra"


class Stage(StrEnum):
    """Where in the life of a case something happened."""

    LOAD = "load"
    EAGER = "eager"
    COMPILE = "compile"
    RUN = "run"
    COMPARE = "compare"
    MEASURE = "measure"
    WORKER = "worker"


class Outcome(Value, frozen=True, kw_only=True):
    """How it ended, where, why, and the evidence (a traceback, the tail of a log)."""

    status: Status
    stage: Stage | None = None
    reason: str | None = None
    detail: str | None = None

    @property
    def is_fault(self) -> bool:
        """Whether an arm does not do what eager does."""
        return self.status not in _NO_FAULTS

    @property
    def line(self) -> str:
        """Status, stage and how the reason begins, with `...` where it goes on."""
        whole = " ".join((self.reason or "no reason given").split())
        reason = whole if len(whole) <= _LONGEST_REASON else f"{whole[: _LONGEST_REASON - 3]}..."
        stage = f" ({self.stage})" if self.stage else ""
        return f"{self.status.upper()}{stage} {reason}"


_LONGEST_REASON = 100
_NO_FAULTS = frozenset({Status.PASS, Status.SKIP, Status.NONDETERMINISTIC, Status.INFRA})
PASSED = Outcome(status=Status.PASS)


class Measurement(Value, frozen=True, kw_only=True):
    """Raw samples of one metric on one arm, in the order they were taken, never averaged.

    Raises:
        ValueError: a sample is NaN or infinite, or `blocks` does not match `samples`.
    """

    metric: str
    unit: str
    arm: str
    samples: tuple[float, ...]
    blocks: tuple[int, ...] = ()
    """The block each sample belongs to, where samples of several arms are compared by block."""

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, self.samples)):
            msg = f"{self.metric} of {self.arm} holds a sample that is not finite"
            raise ValueError(msg)
        if self.blocks and len(self.blocks) != len(self.samples):
            msg = f"{self.metric} of {self.arm}: one block per sample, or none"
            raise ValueError(msg)


class Load(Value, frozen=True):
    """What others did on the machine during some time."""

    wall_s: float
    """How long it was."""
    background_s: float
    """Processor seconds others took, or the hypervisor stole."""
    is_slowed: bool = False
    """Whether heat or a falling clock slowed the processors, or others used the accelerator."""
    resolution_s: float = 0.0
    """Processor seconds that the counters can't tell from none."""


class BlockLoad(Value, frozen=True, kw_only=True):
    """What others did while a stretch of blocks was measured, when it was for the last time."""

    first: int
    """The first block."""
    last: int
    """The last one."""
    load: Load
    isolated: tuple[str, int] | None = None
    """The arm and the number of its isolated run, where the blocks are of one: these are counted
    from 0 in each."""


class Absence(Value, frozen=True, kw_only=True):
    """A metric that was asked for and is not there, and why."""

    metric: str
    arm: str
    reason: str


class CaptureStats(Value, frozen=True, kw_only=True):
    """What Dynamo captured of one arm, over its first two calls; `breaks` are by reason."""

    frames: int
    frames_ok: int
    graphs: int
    ops: int
    breaks: dict[str, int] = {}  # noqa: RUF012  msgspec copies it for each value
    recompiles: int = 0
    """Compilations, after the first call, of frames that it had compiled."""
    guards: int = 0
    """Over all frames."""
    guards_s: float | None = None
    """Seconds of a step in which they are checked to find what was compiled, where timed."""
    autograd_captures: int | None = None
    """Backward passes that compiled autograd captured; `None` in records from before it was."""
    autograd_compiles: int | None = None
    """Those it compiled."""
    cudagraph_skips: int | None = None
    """Graphs that Inductor was to run as CUDA graphs, and didn't."""
    fallbacks: int = 0
    """Graphs the backend failed on, which run in eager."""
    fallback_reason: str | None = None
    """What it raised on the first of them."""
    recompile_limit_hits: int | None = None
    """Frames Dynamo gave up on, compiled too often, over all calls before any was timed."""


class ArmResult(Value, frozen=True, kw_only=True):
    """How one arm of a case ended, and what was captured of it."""

    arm: str
    outcome: Outcome
    capture: CaptureStats | None = None
    max_error: float | None = None
    """Largest deviation of a result from eager's, both in the root mean square."""
    checked_calls: int = 0
    """How many calls were compared with eager's."""
    unchecked: tuple[str, ...] = ()
    """What was not, or not closely: each with its path and why."""
    steady: bool | None = None
    """Whether it was steady before measuring began; `None` if it never came to that."""
    choices: tuple[Choice, ...] = ()
    """Of an arm made of decisions: what was decided for its graphs, or for the model."""


class Environment(Value, frozen=True, kw_only=True):
    """The machine and software a record was made on."""

    id: str
    """Short hash of everything below except the load."""
    machine: str
    cpu: str
    cpus: int
    memory_bytes: int
    os: str
    python: str
    packages: dict[str, str]
    """Versions of what influences results: torch, model packages, this project."""
    git: str | None
    """Commit of the project's checkout, with `-dirty` where it has changes."""
    measured_git: str | None = None
    """The same of the repository that the run was begun in, which is that of what is measured."""
    governor: str | None
    load_1min: float
    variables: dict[str, str]
    """Environment variables known to change timings, where set."""


class StopReason(StrEnum):
    """Why a case is given no further replicate."""

    TARGET = "target"
    """Its speedups are known as well as was asked."""
    REPLICATES = "replicates"
    """It had as many as it may have."""
    TIME = "time"
    """It took as long as it may take."""
    FAILED = "failed"
    """No arm was timed beside the baseline, so there is nothing to repeat."""
    FOUND = "found"
    """It was a search, and that has found its end."""


class BetweenProcessSd(Value, frozen=True, kw_only=True):
    """What is known beforehand of how far processes differ that measure the same."""

    sd_log: float
    """Of a log speedup between processes, without what each leaves open (earlier: with it)."""
    df: float
    """How many degrees of freedom that knowledge is worth."""


ASSUMED_SD = BetweenProcessSd(sd_log=0.008, df=3.0)
"""Of a machine on which nothing was measured. A guess: those we know lie between 0.3 and 1.2 %, and
over all of these it calls 3 % of identical arms different (docs/simulated-error-bars.md)."""

FORMERLY_ASSUMED = BetweenProcessSd(sd_log=0.006, df=8.0)
"""Likewise, in records from before the part within processes was counted."""

SEPARATE_SD = BetweenProcessSd(sd_log=0.02, df=3.0)
"""Of arms with threads or processes of their own, which share less: a guess, soon outweighed."""


class Level(StrEnum):
    """How much a finding about the machine matters to what is measured on it."""

    FINE = "fine"
    NOTE = "note"
    UNFIT = "unfit"


class Diagnosis(Value, frozen=True, kw_only=True):
    """What was found of one thing that makes figures better or worse."""

    subject: str
    level: Level
    finding: str
    remedy: str | None = None
    """What its owner can do about it; `None` where there is nothing to do."""


NOTHING = msgspec.Raw(b"null")


def packed(found: Value) -> msgspec.Raw:
    """Return what a study found as it stands in a record."""
    return msgspec.Raw(msgspec.json.encode(found))


class Record(Value, frozen=True, kw_only=True):
    """One case in one replicate, whatever became of it: one line of `events.jsonl`."""

    schema: int = SCHEMA_VERSION
    run_id: str
    case: Case
    replicate: int
    outcome: Outcome
    """The worst of the arms', or of what happened before any arm was built."""
    experiments: tuple[str, ...] = ("speedup", "isolated", "memory")
    """What was asked for."""
    arms: tuple[ArmResult, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    absent: tuple[Absence, ...] = ()
    found: msgspec.Raw = NOTHING
    """What the study found beside measurements, as JSON; only the study itself reads it."""
    build_order: tuple[str, ...] = ()
    """The order in which the arms were built, drawn at random."""
    disturbed_blocks: tuple[int, ...] = ()
    """Blocks that were disturbed whenever they were measured."""
    loads: tuple[BlockLoad, ...] = ()
    """What others did meanwhile, for all blocks; none in earlier records."""
    disturbed_isolated_runs: bool = False
    """Whether some isolated run was disturbed for most of its blocks, to the last."""
    repeated_blocks: int = 0
    """How often a block was measured again because something had disturbed it."""
    waited: bool = False
    """Whether arms' threads don't fit on the processors together, so that others' had to be asleep
    before an arm was timed."""
    notes: tuple[str, ...] = ()
    stopped: StopReason | None = None
    """Why this is the case's last replicate; `None` if it isn't."""
    between_sd: BetweenProcessSd = ASSUMED_SD
    """What its speedups are judged by; earlier versions learnt it of all arms together."""
    between_sds: dict[str, BetweenProcessSd] = {}  # noqa: RUF012  msgspec copies it for each value
    """Likewise, of arms of which more is known, by name."""
    target: float | None = None
    """Half-width of the intervals that was asked for, relative; earlier records don't say."""
    varies: tuple[str, ...] = ()
    """What of the model's inputs differs from call to call where it is used (`ModelSpec`)."""
    device_name: str | None = None
    environment_id: str
    seed: int
    earlier: tuple[Outcome, ...] = ()
    """How earlier attempts at this replicate ended, in order; the last attempt is what counts."""
    started_at: str
    """UTC, ISO 8601."""
    seconds: dict[str, float]
    """Wall seconds by what they were spent on; `harness` is what no stage accounts for."""
    command: str
    """The exact command that repeats this case alone."""
    log: str | None = None
    """Path of the case's log, relative to the run directory."""

    @property
    def study(self) -> str:
        """The name of what was asked: that of its first experiment."""
        return self.experiments[0]

    @property
    def flakiness(self) -> str | None:
        """Say how many attempts passed; `None` where all ended alike, but for faults of ours."""
        statuses = (each.status for each in (*self.earlier, self.outcome))
        attempts = [each for each in statuses if each is not Status.INFRA]
        if len(set(attempts)) <= 1:
            return None
        return f"flaky {attempts.count(Status.PASS)}/{len(attempts)}"


class Manifest(Value, frozen=True, kw_only=True):
    """What a run directory says of itself: `manifest.json`."""

    schema: int = SCHEMA_VERSION
    run_id: str
    created_at: str
    version: str
    program: str
    """What was typed to start the program: a script, or `dynamometer run SUITE`."""
    command: str
    """The whole command line."""
    plan: RunPlan
    environment: Environment
    between_sd: BetweenProcessSd = ASSUMED_SD
    between_sds: dict[str, BetweenProcessSd] = {}  # noqa: RUF012  msgspec copies it for each value
    """As learnt from earlier runs on this machine, or else assumed; see `Record`."""
    diagnoses: tuple[Diagnosis, ...] = ()
    """What of the machine is not as it should be."""
    sources: dict[str, str] = {}  # noqa: RUF012  msgspec copies it for each value
    """Of each of the user's files that are measured, a hash of what it held, by its path."""


def has_ended(records: Sequence[Record], plan: RunPlan) -> bool:
    """Return whether a case has had its last replicate, however that came out.

    `resume` tries one again that was the harness's own fault; the case has ended all the same.

    Args:
        records: of the case, one for each replicate it had.
        plan: of its run.
    """
    return had_last([each.stopped for each in records], plan)


def had_last(stopped: Collection[str | None], plan: RunPlan) -> bool:
    """Return whether a case gets no replicate but those it had.

    Its last one says so. Earlier formats don't always: there a case with as many replicates as it
    may have has ended, unless the run retries failures, as its last one may be tried again then.

    Args:
        stopped: of each replicate it had, why there is none after it.
        plan: of the run.
    """
    is_by_number = not plan.retries_for
    return any(stopped) or (is_by_number and len(stopped) >= plan.protocol.most_replicates)


def unfinished(plan: RunPlan, records: Iterable[Record]) -> list[Case]:
    """Return the cases of a run that have not ended, in the plan's order."""
    by_case: defaultdict[str, list[Record]] = defaultdict(list)
    for each in records:
        by_case[each.case.id].append(each)
    return [case for case in plan.cases if not has_ended(by_case[case.id], plan)]


class Estimate(Value, frozen=True, kw_only=True):
    """A value with its 95 % interval, from `n` replicates. Derived, never stored."""

    value: float
    low: float
    high: float
    n: int


class Ratio(Estimate, frozen=True, kw_only=True):
    """A quotient of two arms with the two-sided p-value of "no difference"."""

    p_value: float
