"""The options of every run: how it measures, where, and what becomes of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamometer.common import registry
from dynamometer.common.interfaces.option import (
    ByteSize,
    Exclusion,
    Flag,
    Member,
    Need,
    OneOf,
    Several,
    Valued,
    Within,
)
from dynamometer.common.interfaces.workload_options import (
    BACKEND_OPTIONS,
    BATCH_SIZE,
    BATCH_SIZE_FILE,
    CHANNELS_LAST,
    COMPILED_OPTIMIZER,
    DEVICE,
    DTYPE,
    DYNAMIC,
    DYNAMIC_BATCH,
    EXCLUDE,
    INCLUDE,
    LIST,
    MATMUL_PRECISION,
    NO_SKIP,
    NOPYTHON,
    ONLY,
    OVERRIDE_OPTIONS,
    PARTITION_ID,
    QUICK,
    RAISE_BACKEND_ERRORS,
    SCALE,
    TOTAL_PARTITIONS,
    TRAINING,
)
from dynamometer.results.values.cases import RIGOROUS_REPLICATES, Protocol
from dynamometer.results.values.workers import Allocator, Caches, StartMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.option import Option
    from dynamometer.results.values.cases import Case, RunPlan


def _count(protocol: Protocol) -> tuple[int, int]:
    return protocol.replicates, protocol.most_replicates


def _replicates(plan: RunPlan, _: Case) -> int | None:
    """Return how many were made whatever they showed; `None` where that decided of further ones."""
    least, most = _count(plan.protocol)
    return least if least == most else None


REPLICATES = Valued[int | None](
    ("-r", "--replicates"), reads=click.IntRange(1), default=None, metavar="N",
    group="Measurement",
    help="Replicates of each case, whatever --target and --max-seconds. Each takes a worker process"
    " for all arms, and further ones for isolated runs and memory. None follows where eager, or"
    " every other arm, has failed, or --tune has decided.  [default: 3, and up to 5 until --target;"
    " with --quick, --accuracy or --sweep-sizes 1; with --tune 1 to 3]",
    again=_replicates,
)  # fmt: skip
RIGOROUS = Flag(
    ("--rigorous",), group="Measurement", help="5 to 10 replicates instead of 3 to 5.",
    again=lambda plan, _: _count(plan.protocol) == RIGOROUS_REPLICATES,
)  # fmt: skip
HALF_WIDTH = Valued(
    ("--target",), reads=Within(0, 1, min_open=True, max_open=True),
    default=Protocol().target, metavar="SHARE", group="Measurement",
    help="Half-width of the interval at which a speedup is known well enough.",
    again=lambda plan, _: plan.protocol.target,
)  # fmt: skip
CASE_BUDGET = Valued[float | None](
    ("--max-seconds",), reads=Within(0, min_open=True), default=None,
    metavar="SECONDS", group="Measurement",
    help="A case that took this long gets no replicates beyond the least number.",
    again=lambda plan, _: plan.protocol.case_budget_s,
)  # fmt: skip
CACHES = OneOf(
    ("--cold", "--warm"), values=(Caches.COLD, Caches.WARM), default=Caches.FIRST_COLD,
    group="Measurement",
    helps=(
        "Compile from empty graph caches in every replicate, not in the first alone.",
        "Compile with the caches that an earlier process has filled.",
    ),
    again=lambda plan, _: plan.protocol.caches,
)  # fmt: skip
SEED = Valued(
    ("--seed",), reads=click.IntRange(0, 2**32 - 1), default=0, metavar="N", group="Measurement",
    help="For weights, inputs and the order of everything random.",
    again=lambda plan, _: plan.seed, is_always_said=True,
)  # fmt: skip
TIMEOUT = Valued[float | None](
    ("--timeout",), reads=Within(0, min_open=True), default=None,
    metavar="SECONDS", group="Execution",
    help="Stop a worker process that takes longer, from its start on: by SIGTERM, and 3 s later by"
    " SIGKILL. The arm at work, or else the case, is then `timeout`; other arms begin again in a"
    " new worker, with as long. Each candidate of `ensemble` has so long by itself, on a graph of"
    " a model 600 at most.  [default: 1200; with parity.py or --parity 120]",
    again=lambda plan, _: plan.timeout_s, is_always_said=True,
)  # fmt: skip
MEMORY_LIMIT = Valued[int | None](
    ("--memory-limit",), reads=ByteSize(), default=None, metavar="SIZE", group="Execution",
    help="Kill a worker over this.  [default: 85 % of memory]",
    again=lambda plan, _: plan.memory_limit_bytes,
)  # fmt: skip
RETRIES_FOR = Several(
    ("--retries-for",), reads=click.STRING, metavar="STATUS[,...]", group="Execution",
    help="Attempt what ends so again, up to twice, such as timeout,infra. The last attempt counts;"
    " all are kept.",
)  # fmt: skip
CALLS = Valued[int | None](
    ("-n", "--repeat"), reads=click.IntRange(1), default=None, metavar="N", group="Measurement",
    help="Counted calls of each arm and replicate, at least.  [default: 1 s of them]",
    again=lambda plan, _: plan.protocol.calls,
)  # fmt: skip
THREADS = Valued[int | None](
    ("-t", "--threads"), reads=click.IntRange(1), default=None, metavar="N", group="Execution",
    help="Intra-op threads of each worker, however many run at the same time (-j).  [default:"
    " torch's choice; on a CPU, without --spawn or --executor, 2 with --accuracy or --coverage, 1"
    " with parity.py or --parity]",
    again=lambda plan, _: plan.threads,
)  # fmt: skip
JOBS = Valued[int | None](
    ("-j", "--jobs"), reads=click.IntRange(1), default=None, metavar="N", group="Execution",
    help="Cases that run at the same time. More than 1 is refused but with --accuracy, --coverage,"
    " --parity, parity.py or --find-batch-sizes, on a CPU, without --spawn or --executor."
    "  [default: there one for each core, but with --find-batch-sizes 1; else 1]",
)  # fmt: skip
ALLOCATOR = Valued(
    ("--allocator",), reads=Member(Allocator), default=Allocator.KEEP, group="Measurement",
    help="The workers' malloc: glibc's, keeping freed memory or giving it back, or another."
    " With --accuracy, which times nothing, keep gives it back, too.",
    again=lambda plan, _: plan.protocol.allocator,
)  # fmt: skip
SPAWN = Flag(
    ("--spawn",), group="Execution",
    help="Start every worker from a fork server of its own, instead of one that is warm.",
    again=lambda plan, _: plan.protocol.start_method is StartMethod.SPAWN,
)  # fmt: skip
EXECUTOR = Valued(
    ("--executor",), reads=click.STRING, default=registry.DEFAULT_EXECUTOR, metavar="NAME",
    group="Execution", help="What runs the replicates of cases, such as one of a plugin.",
    again=lambda plan, _: plan.executor,
)  # fmt: skip
OUTPUT_DIR = Valued(
    ("--output-dir",), reads=click.Path(path_type=Path), default=Path("runs"), metavar="DIR",
    group="Output", help="Where the run's directory is made.",
)  # fmt: skip
DECISIONS_FILE = "decisions.sqlite"
DECISIONS = Valued[Path | None](
    ("--decisions",), reads=click.Path(dir_okay=False, path_type=Path), default=None,
    metavar="FILE", group="Execution", variable="DYNAMOMETER_DECISIONS",
    help=f"What `ensemble` has decided, and will.  [default: {DECISIONS_FILE} in --output-dir]",
    again=lambda plan, _: Path(plan.tuning.decisions) if plan.tuning else None,
)  # fmt: skip
CANDIDATES = Several(
    ("--candidate",), reads=click.STRING, metavar="NAME", group="Execution",
    help="Backend that `ensemble` may choose; may be repeated.  [default: all that work here]",
    again=lambda plan, _: plan.tuning.candidates if plan.tuning else None,
)  # fmt: skip
RETUNE = Flag(
    ("--retune",),
    group="Execution",
    help="`ensemble` decides anew, whatever was decided before.",
    again=lambda plan, _: bool(plan.tuning and plan.tuning.since),
)
TUNING_SECONDS = Valued(
    ("--tuning-seconds",), reads=Within(0, min_open=True), default=120.0,
    metavar="SECONDS", group="Execution",
    help="A graph that took `ensemble` this long gets no replicates beyond the least number.",
    again=lambda plan, _: plan.tuning.budget_s if plan.tuning else None,
)  # fmt: skip
OUTPUT = Valued[Path | None](
    ("--output",), reads=click.Path(dir_okay=False, path_type=Path), default=None,
    metavar="FILE", group="Output",
    help="Also write one backend's results here, in PyTorch's columns; rows are added with --only.",
)  # fmt: skip
SINKS = Several(
    ("--sink",), reads=click.STRING, metavar="NAME", group="Output",
    help="Also put results into this form, such as one of a plugin; may be repeated.",
)  # fmt: skip
CSV_COMPAT = Flag(
    ("--csv-compat",), group="Output",
    help="CSV with the columns of PyTorch's dashboards alone, 0 for missing.",
)  # fmt: skip
EXPECT = Valued[Path | None](
    ("--expect",), reads=click.Path(dir_okay=False, path_type=Path), default=None,
    metavar="FILE", group="Output",
    help="Compare what each case came to with a table, and exit with 1 where it changed.",
    excludes=Exclusion(
        OVERRIDE_OPTIONS, "--expect compares each model with what it came to without overrides"
    ),
)  # fmt: skip
UPDATE_EXPECTED = Flag(
    ("--update-expected",), group="Output",
    help="Put this run's results into the table of --expect.",
    needs=Need(EXPECT, "--update-expected rewrites a table: name it with --expect FILE"),
)  # fmt: skip

TUNING_OPTIONS: tuple[Option[Any], ...] = (DECISIONS, CANDIDATES, RETUNE, TUNING_SECONDS)
"""Of the backend `ensemble`."""

JSON = Flag(
    ("--json",), group="Output",
    help="Print what happens as JSON, an object a line, for other programs; text goes to standard"
    " error.",
)  # fmt: skip

REPORT_OPTIONS: tuple[Option[Any], ...] = (
    CSV_COMPAT, OUTPUT, EXPECT, UPDATE_EXPECTED, SINKS, JSON,
)  # fmt: skip
"""What is done with results, whether a run begins or goes on."""

MEASURING_OPTIONS: tuple[Option[Any], ...] = (
    *BACKEND_OPTIONS, BATCH_SIZE, BATCH_SIZE_FILE, CACHES, CALLS, CASE_BUDGET, COMPILED_OPTIMIZER,
    DYNAMIC, DYNAMIC_BATCH, EXPECT, HALF_WIDTH, NOPYTHON, REPLICATES, RIGOROUS, *OVERRIDE_OPTIONS,
)  # fmt: skip
"""Those that say what is measured and how, which not every study understands."""

_OF_MODELS: tuple[Option[Any], ...] = (
    INCLUDE, EXCLUDE, ONLY, QUICK, NO_SKIP, PARTITION_ID, TOTAL_PARTITIONS, LIST,
    *BACKEND_OPTIONS, DEVICE, TRAINING, DTYPE, MATMUL_PRECISION, CHANNELS_LAST, DYNAMIC,
    DYNAMIC_BATCH, COMPILED_OPTIMIZER, NOPYTHON, *OVERRIDE_OPTIONS, RAISE_BACKEND_ERRORS, SCALE,
    BATCH_SIZE, BATCH_SIZE_FILE,
)  # fmt: skip
_OF_MEASURING: tuple[Option[Any], ...] = (
    REPLICATES, RIGOROUS, HALF_WIDTH, CASE_BUDGET, CACHES, CALLS, ALLOCATOR, SEED,
    THREADS, JOBS, TIMEOUT, MEMORY_LIMIT, RETRIES_FOR, SPAWN, EXECUTOR, *TUNING_OPTIONS, OUTPUT_DIR,
    *REPORT_OPTIONS,
)  # fmt: skip


def run_options(
    of_studies: Sequence[Option[Any]] = (), of_suites: Sequence[Option[Any]] = ()
) -> tuple[Option[Any], ...]:
    """Return all options of a run, in the order of the help and of a command that repeats a case.

    Args:
        of_studies: what studies add.
        of_suites: what suites add; one that several share is there once.
    """
    every = (*_OF_MODELS, *of_studies, *_OF_MEASURING, *of_suites)
    return tuple(dict.fromkeys(every))
