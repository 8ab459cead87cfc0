"""`dynamometer calibrate`: a run of arms whose effect is known, and the page it comes to."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamometer.common import registry
from dynamometer.common.command_line import request
from dynamometer.common.command_line.session import Reporting, Session
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning import planning, refusals
from dynamometer.common.planning.plan import Selection, build_cases, select
from dynamometer.common.studies.calibration.evaluation import ARMS
from dynamometer.common.studies.calibration.page import Calibration, write_page
from dynamometer.common.studies.calibration.study import STUDY
from dynamometer.results.store import store
from dynamometer.results.values.cases import Protocol, RunPlan, Scale, StartMethod

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def run(program: str, words: Sequence[str], options: dict[str, Any]) -> int:
    """Measure, unless runs to evaluate are named, and write the page.

    Raises:
        UsageError: a named run is no calibration, or not of the first one's kind, or the page
            can't be written.
        DynamometerError: the run can't be started.
    """
    directories: tuple[Path, ...] = options["evaluated"]
    if not directories:
        directory, code = _measure(program, words, options)
        if code:
            click.echo(f"when that is finished: {program} calibrate --from {directory}", err=True)
            return code
        directories = (directory,)
    page: Path = options["page"] or directories[0] / "calibration.md"
    with refusals.store_errors_as_usage():
        found = [_read(each) for each in directories]
        _require_one_kind(dict(zip(directories, found, strict=True)))
    try:
        write_page(page, found)
    except OSError as error:
        msg = f"{page} can't be written: {error.strerror}"
        raise UsageError(msg) from error
    click.echo(f"results: {page}")
    return 0


def _measure(program: str, words: Sequence[str], options: dict[str, Any]) -> tuple[Path, int]:
    suite = registry.resolve("suites", "torchbench")({})
    specs = select(suite.specs(), Selection(only=options["only"] or MODELS))
    plan = RunPlan(
        suite="torchbench",
        models=specs,
        cases=build_cases(specs, Workload(arms=ARMS[1:], scale=Scale(options["scale"]))),
        experiments=STUDY.experiments(options),
        protocol=Protocol(
            replicates=options["replicates"],
            most_replicates=options["replicates"],
            start_method=StartMethod.SPAWN if options["spawn"] else StartMethod.FORK,
        ),
        memory_limit_bytes=planning.usual_memory_limit(),
        seed=options["seed"],
        busy=options["busy"],
    )
    manifest, directory = request.begin(
        plan,
        f"{program} run torchbench",
        shlex.join([program, *words]),
        Path(options["output_dir"]),
    )
    return directory, Session(manifest, directory, Reporting()).run()


def _read(directory: Path) -> Calibration:
    """Read a run back.

    Raises:
        UsageError: it measured something else.
        StoreError: it is no run directory.
    """
    manifest = store.read_manifest(directory)
    if manifest.plan.cases[0].arms != ARMS:
        msg = f"{directory} is no calibration; `dynamometer calibrate` makes one"
        raise UsageError(msg)
    return Calibration(manifest, tuple(store.read_records(directory)))


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
