"""`dynamometer calibrate`: a run of arms whose effect is known, and the page it comes to."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dynamometer.common import registry
from dynamometer.common.command_line.stored.runs import run_directory
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Flag, Several, Valued, defaults
from dynamometer.common.interfaces.run_options import (
    OUTPUT_DIR,
    REPLICATES,
    REPORT_OPTIONS,
    SEED,
    SPAWN,
    run_options,
)
from dynamometer.common.interfaces.workload_options import ONLY as ONLY_OF_RUN
from dynamometer.common.interfaces.workload_options import SCALE as SCALE_OF_RUN
from dynamometer.common.studies.calibration.study import ISOLATED, STUDY
from dynamometer.results.values.cases import DEFAULT_REPLICATES, Protocol, RunPlan, Scale
from dynamometer.results.values.workers import StartMethod

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.execution.executors.of_plugins import Faults
    from dynamometer.common.interfaces.option import Option, Request
    from dynamometer.common.studies.calibration.page import Calibration
    from dynamometer.results.values.records import Manifest

MODELS = (
    "alexnet",
    "basic_gnn_gcn",
    "dcgan",
    "densenet121",
    "dlrm",
    "functorch_dp_cifar10",
    "hf_DistilBert",
    "mnasnet1_0",
    "mobilenet_v2",
    "nanogpt",
    "resnet18",
    "shufflenet_v2_x1_0",
    "timm_vision_transformer",
)
"""Of torchbench: convolutions, attention, tables, a graph; calls of 4 to 45 ms at small scale."""

ONLY = msgspec.structs.replace(
    ONLY_OF_RUN, help="This model of torchbench; may be repeated.  [default: thirteen]"
)
SCALE = msgspec.structs.replace(
    SCALE_OF_RUN, default=Scale.SMALL, help="How far models are shrunk."
)
COUNT = Valued(
    REPLICATES.flags, reads=click.IntRange(DEFAULT_REPLICATES[1]), default=20, metavar="N",
    group="Measurement", help="Worker processes each model is measured in.",
)  # fmt: skip
BUSY = Flag(
    ("--busy",), group="Measurement", help="While a process of ours computes now and then."
)  # fmt: skip
EVALUATED = Several(
    ("--from",), reads=click.Path(path_type=Path), metavar="RUN",
    group="Output", help="Measure nothing: evaluate this run, or several as one.",
)  # fmt: skip
PAGE = Valued[Path | None](
    ("--page",), reads=click.Path(dir_okay=False, path_type=Path), default=None, metavar="FILE",
    group="Output",
    help="Where the page goes; its picture and all results (CSV) beside it."
    "  [default: the run's directory]",
)  # fmt: skip
OPTIONS: tuple[Option[Any], ...] = (
    *(ONLY, SCALE, COUNT, SEED, BUSY, ISOLATED, SPAWN, EVALUATED, OUTPUT_DIR, PAGE),
)

HELP = """Find out how often measuring is wrong on this machine.

Identical arms, and arms slowed by 1, 2 and 5 %, are measured on models of torchbench; the page
that is written says how often identical arms are called different, how often intervals hold the
truth, and how often a slowdown is noticed. Later runs of torchbench with Inductor, below the
same --output-dir, learn from it.
"""


def run(asked: Request, invocation: Invocation) -> int:
    """Measure, unless runs to evaluate are named, and write the page.

    Raises:
        UsageError: a named run is no calibration, or not of the first one's kind; it is named
            beside options of measuring; or the page can't be written.
        DynamometerError: the run can't be started.
    """
    from dynamometer.common.planning import refusals
    from dynamometer.common.studies.calibration.page import write_page  # imports scipy

    program, arguments = invocation
    directories = tuple(run_directory(each, asked[OUTPUT_DIR]) for each in asked[EVALUATED])
    measuring = [
        each.named for each in OPTIONS if each in asked.typed - {EVALUATED, PAGE, OUTPUT_DIR}
    ]
    if directories and measuring:
        msg = f"--from measures nothing: leave out {', '.join(measuring)}"
        raise UsageError(msg)
    if not directories:
        directory, code = _measure(program, arguments, asked)
        if code:
            if directory.exists():
                hint = f"when that is finished: {program} calibrate --from {directory}"
                click.echo(hint, err=True)
            return code
        directories = (directory,)
    page = asked[PAGE] or directories[0] / "calibration.md"
    with refusals.store_errors_as_usage():
        found = [_read(each) for each in directories]
        _require_one_kind(dict(zip(directories, found, strict=True)))
    try:
        write_page(page, found)
    except OSError as error:
        msg = f"{page} can't be written: {error.strerror or error}; name another with --page"
        raise UsageError(msg) from error
    click.echo(f"results: {page}")
    return 0


def _measure(program: str, arguments: Sequence[str], asked: Request) -> tuple[Path, int]:
    from dynamometer.common.command_line import begin
    from dynamometer.common.command_line.session import Session
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.planning.cases import build_cases
    from dynamometer.common.planning.plan import default_memory_limit
    from dynamometer.common.planning.selection import Selection, listed, opened, select
    from dynamometer.common.studies.calibration.arms import ARMS
    from dynamometer.results.store import store

    source = registry.suite(registry.DEFAULT_SUITE)
    opening = source.opening(defaults(run_options(of_suites=source.options)))
    names = Selection(only=asked[ONLY] or MODELS)
    hint = f"`dynamometer ls models {registry.DEFAULT_SUITE}` shows all."
    specs = select(listed(opened(source, opening)), names, hint)
    plan = RunPlan(
        suite=registry.DEFAULT_SUITE,
        suite_options=opening,
        models=specs,
        cases=build_cases(specs, Workload(arms=ARMS[1:], scale=asked[SCALE])),
        experiments=STUDY.experiments(asked),
        protocol=Protocol(
            replicates=asked[COUNT],
            most_replicates=asked[COUNT],
            start_method=StartMethod.SPAWN if asked[SPAWN] else StartMethod.FORK,
        ),
        memory_limit_bytes=default_memory_limit(),
        seed=asked[SEED],
        busy=asked[BUSY],
    )
    manifest, directory = begin.begin(
        plan,
        f"{program} run {registry.DEFAULT_SUITE}",
        shlex.join([program, *arguments]),
        asked[OUTPUT_DIR],
    )
    reports = defaults(REPORT_OPTIONS)

    def action(faults: Faults) -> int:
        with store.RunStore(directory) as events:
            return Session(manifest, directory, reports, faults=faults).run(events)

    return directory, begin.carried_out(action, directory, reports, is_new=True)


def _read(directory: Path) -> Calibration:
    """Read a run back.

    Raises:
        UsageError: it measured something else.
        StoreError: it is no run directory.
    """
    from dynamometer.common.studies.calibration.arms import ARMS
    from dynamometer.common.studies.calibration.page import Calibration
    from dynamometer.results.store import store

    manifest = store.read_manifest(directory)
    if manifest.plan.cases[0].arms != ARMS:
        msg = f"{directory} is no calibration; `dynamometer calibrate` makes one"
        raise UsageError(msg)
    found = store.read_run(directory)
    if found.warning:
        click.echo(f"{directory}: {found.warning}", err=True)
    return Calibration(manifest, tuple(found.records))


def _require_one_kind(runs: Mapping[Path, Calibration]) -> None:
    """Check that runs may be evaluated as one.

    How processes are started may differ, and whether the machine was kept busy: they are told
    apart in the page.

    Raises:
        UsageError: one was measured otherwise than the first.
    """
    (first, known), *others = ((each, _traits(run.manifest)) for each, run in runs.items())
    for each, traits in others:
        for name, value in traits.items():
            if value != known[name]:
                msg = f"{each} is of {name} {value}, {first} of {known[name]}: evaluate each alone"
                raise UsageError(msg)


def _traits(manifest: Manifest) -> dict[str, object]:
    plan, environment = manifest.plan, manifest.environment
    return {
        "scale": plan.cases[0].scale,
        "processor": environment.cpu,
        "processors": environment.cpus,
        "torch": environment.packages.get("torch"),
        "threads": plan.threads,
        "allocator": plan.protocol.allocator,
    }
