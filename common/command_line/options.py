"""The command line's options, declared once, shown in groups."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamometer.common import registry
from dynamometer.common.interfaces.option import option
from dynamometer.results.values.cases import DEFAULT_REPLICATES, Allocator, Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dynamometer.common.interfaces.option import Decorator

_GROUPS = ("Selection", "Workload", "Measurement", "Execution", "Output")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class GroupedCommand(click.Command):
    """A command whose help shows its options by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group, and the rest under `Other`."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in (*_GROUPS, "Other")}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row:
                sections[getattr(parameter, "group", "Other")].append(row)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class ByteSize(click.ParamType[int]):
    """A number of bytes, such as `800M`, `12G` or `12GiB`; units are powers of 1024."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the text."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:iB|B)?", str(value), re.IGNORECASE)
        if found is None:
            self.fail(f"{value!r} is not a size such as 800M or 12G", param, ctx)
        return int(float(found[1]) * _UNITS[found[2].upper()])


_REPORT_OPTIONS = (
    option(
        "--csv-compat", is_flag=True, group="Output",
        help="CSV with the columns of PyTorch's dashboards alone, 0 for missing.",
    ),
    option(
        "--expect", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        group="Output", help="Compare what each case came to with a table, and exit with 1 where"
        " it changed.",
    ),
    option(
        "--update-expected", is_flag=True, group="Output",
        help="Put this run's results into the table of --expect.",
    ),
)  # fmt: skip
"""What is done with results, whether a run begins or goes on."""

_WORKLOAD_OPTIONS = (
    option(
        "-k", "--filter", "include", multiple=True, metavar="REGEX", group="Selection",
        help="Models whose name contains a match; may be repeated, any counts.",
    ),
    option(
        "-x", "--exclude", multiple=True, metavar="REGEX", group="Selection",
        help="Leave these out.",
    ),
    option(
        "--only", multiple=True, metavar="NAME", group="Selection",
        help="Exactly this model; may be repeated.",
    ),
    option(
        "--quick", is_flag=True, group="Selection",
        help="A handful of models, one replicate; what a bare command line does.",
    ),
    option(
        "--no-skip", is_flag=True, group="Selection",
        help="Run also what the suite's tables skip.",
    ),
    option(
        "--partition-id", type=click.IntRange(0), default=0, metavar="I", group="Selection",
        help="Which part of the selection to run, from 0.",
    ),
    option(
        "--total-partitions", type=click.IntRange(1), default=1, metavar="N", group="Selection",
        help="How many equal parts the selection is cut into.",
    ),
    option(
        "--list", "list_names", is_flag=True, group="Selection",
        help="Print the selected names, one a line, and stop.",
    ),
    option(
        "--backend", "backends", multiple=True, metavar="NAME", group="Workload",
        help="Backend for Dynamo, or module:attribute of your own; may be repeated.",
    ),
    option(
        "--speedup-ts", is_flag=True, group="Workload",
        help="Also TorchScript, traced and frozen, without Dynamo.",
    ),
    option(
        "-d", "--device", type=click.Choice(["cpu", "cuda"]), default="cpu",
        show_default=True, group="Workload", help="Where to run.",
    ),
    option(
        "--training/--inference", "training", default=False, group="Workload",
        help="Whole training steps, or forward passes.  [default: --inference]",
    ),
    *(
        option(
            f"--{dtype}", "dtype", flag_value=dtype, default=None, type=str, group="Workload",
            help=text,
        )
        for dtype, text in {
            "float32": "Weights and inputs in float32; the default.",
            "float16": "In float16.",
            "bfloat16": "In bfloat16.",
            "amp": "In float32, under automatic mixed precision.",
        }.items()
    ),
    option(
        "--channels-last", is_flag=True, group="Workload",
        help="Weights and images with channels innermost.",
    ),
    option(
        "--dynamic-shapes", "dynamic", is_flag=True, group="Workload",
        help="Steps go through five sizes of inputs, compiled for dynamic shapes.",
    ),
    option(
        "--dynamic-batch-only", "dynamic_batch", is_flag=True, group="Workload",
        help="Likewise, with those sizes for symbols that differ, and no other.",
    ),
    option(
        "--compile-optimizer", "compiled_optimizer", is_flag=True, group="Workload",
        help="With --training: the optimizer's step is compiled too.",
    ),
    option(
        "--nopython", is_flag=True, group="Workload",
        help="Dynamo must capture each model in one graph; where it can't, say why and where.",
    ),
    *(
        option(
            flag, name, multiple=True, metavar=metavar, group="Workload", help=text,
        )
        for flag, name, metavar, text in (
            ("--allow-in-graph", "allow_in_graph", "MODULE:FUNCTION",
             "Also run with this function put into graphs unseen; may be repeated."),
            ("--disable-frame", "disable_frame", "MODULE:FUNCTION",
             "Also run with this function, or Class.method, left to Python; may be repeated."),
            ("--substitute", "substitute", "MODULE:FUNCTION=MODULE:FUNCTION",
             "Also run with the second captured in place of the first; may be repeated."),
        )
    ),
    option(
        "--overrides", "model_overrides", is_flag=True, group="Workload",
        help="Also run each model with the overrides its table declares.",
    ),
    option(
        "--raise-backend-errors", is_flag=True, group="Workload",
        help="An arm fails with its backend; else a graph it fails on runs in eager, and is"
        " counted.",
    ),
    option(
        "--scale", type=click.Choice([scale.value for scale in Scale]), default="full",
        show_default=True, group="Workload",
        help="The published configuration, or one shrunk in depth, width and input.",
    ),
    option(
        "--batch-size", type=click.IntRange(1), metavar="N", group="Workload",
        help="Instead of the suite's own.",
    ),
)  # fmt: skip
"""Which models are run, and how; what is measured of them is a study's."""

_PROTOCOL_OPTIONS = (
    option(
        "-r", "--replicates", type=click.IntRange(1), metavar="N", group="Measurement",
        help="Worker processes each case is measured in, whatever --target.  [default: 3, and up to"
        " 5 until --target; with --quick or --accuracy 1]",
    ),
    option(
        "--rigorous", is_flag=True, group="Measurement",
        help="5 to 10 replicates instead of 3 to 5.",
    ),
    option(
        "--target", "half_width", type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.01, show_default=True, metavar="SHARE", group="Measurement",
        help="Half-width of the interval at which a speedup is known well enough.",
    ),
    option(
        "--max-seconds", "case_budget_s", type=click.FloatRange(0, min_open=True),
        metavar="SECONDS", group="Measurement",
        help="A case that took this long gets no replicates beyond the least number.",
    ),
    option(
        "--cold", "caches", flag_value="cold", default=None, type=str, group="Measurement",
        help="Compile from empty graph caches in every replicate, not in the first alone.",
    ),
    option(
        "--warm", "caches", flag_value="warm", default=None, type=str, group="Measurement",
        help="Compile with the caches that an earlier process has filled.",
    ),
    option(
        "-n", "--repeat", "calls", type=click.IntRange(1), metavar="N", group="Measurement",
        help="Counted calls of each arm and replicate, at least.  [default: 1 s of them]",
    ),
    option(
        "--allocator", type=click.Choice([each.value for each in Allocator]), default="keep",
        show_default=True, group="Measurement",
        help="The workers' malloc: glibc's, keeping freed memory or giving it back, or another.",
    ),
    option(
        "--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N",
        group="Measurement", help="For weights, inputs and the order of everything random.",
    ),
    option(
        "-t", "--threads", type=click.IntRange(1), metavar="N", group="Execution",
        help="Intra-op threads.  [default: torch's choice]",
    ),
    option(
        "--timeout", "timeout_s", type=click.FloatRange(0, min_open=True), default=1200.0,
        show_default=True, metavar="SECONDS", group="Execution",
        help="Kill a worker process after this long.",
    ),
    option(
        "--memory-limit", "memory_limit_bytes", type=ByteSize(), metavar="SIZE",
        group="Execution", help="Kill a worker over this.  [default: 85 % of memory]",
    ),
    option(
        "--spawn", is_flag=True, group="Execution",
        help="Start every worker afresh instead of forking it from a warm template.",
    ),
    option(
        "--output-dir", type=click.Path(), default="runs", show_default=True, metavar="DIR",
        group="Output", help="Where the run's directory is made.",
    ),
    *_REPORT_OPTIONS,
)  # fmt: skip


_SUITE_OPTIONS = {
    "timm_models": (
        option(
            "--all", "all_architectures", is_flag=True, group="Selection",
            help="Also every other architecture of timm; -k and --only choose among them.",
        ),
    ),
    "torchbench": (
        option(
            "--torchbench-root", type=click.Path(), envvar="TORCHBENCH_ROOT", metavar="DIR",
            group="Selection", help="Run the models of a checkout of pytorch/benchmark instead.",
        ),
        option(
            "--offline-weights/--hub-weights", default=None, group="Selection",
            help="With --torchbench-root: random weights where a model asks a hub, or not; the"
            " default is random where there is no network.",
        ),
    ),
}  # fmt: skip
"""What only one suite understands."""


_CALIBRATE_OPTIONS = (
    option(
        "--only", multiple=True, metavar="NAME", group="Selection",
        help="This model of torchbench; may be repeated.  [default: thirteen]",
    ),
    option(
        "--scale", type=click.Choice([scale.value for scale in Scale]), default="small",
        show_default=True, group="Workload", help="How far models are shrunk.",
    ),
    option(
        "-r", "--replicates", type=click.IntRange(DEFAULT_REPLICATES[1]), default=20,
        show_default=True, metavar="N", group="Measurement",
        help="Worker processes each model is measured in.",
    ),
    option(
        "--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N",
        group="Measurement", help="For the order of everything random.",
    ),
    option(
        "--busy", is_flag=True, group="Measurement",
        help="While a process of ours computes now and then.",
    ),
    option(
        "--apart", is_flag=True, group="Measurement",
        help="Time some arms in processes of their own as well, as those are that interfere.",
    ),
    option(
        "--spawn", is_flag=True, group="Execution",
        help="Start every worker afresh instead of forking it from a warm template.",
    ),
    option(
        "--from", "evaluated", multiple=True, metavar="DIR", group="Output",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Measure nothing: evaluate this run, or several as one.",
    ),
    option(
        "--output-dir", type=click.Path(), default="runs", show_default=True, metavar="DIR",
        group="Output", help="Where the run's directory is made.",
    ),
    option(
        "--page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", group="Output",
        help="Where the page goes; its picture and all results (CSV) beside it."
        "  [default: the run's directory]",
    ),
)  # fmt: skip


_EXPLAIN_OPTIONS = (
    option(
        "--scale", type=click.Choice([scale.value for scale in Scale]), default="tiny",
        show_default=True, group="Workload", help="How far a suite's model is shrunk.",
    ),
    option(
        "--format", "form", type=click.Choice(["text", "html", "json"]), default="text",
        show_default=True, group="Output", help="Plain text, a page, or values.",
    ),
    option(
        "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        group="Output", help="Instead of standard output.",
    ),
)  # fmt: skip


def _with(command: Callable[..., Any], declared: Sequence[Decorator]) -> Callable[..., Any]:
    """Give a command some options, shown in their order."""
    for declare in reversed(declared):
        command = declare(command)
    return command


def explain_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of an explanation."""
    return _with(command, _EXPLAIN_OPTIONS)


def calibrate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a calibration."""
    return _with(command, _CALIBRATE_OPTIONS)


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of what is done with results."""
    return _with(command, _REPORT_OPTIONS)


def run_options(suite: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a decorator that gives a command all options of a run.

    Args:
        suite: the one it runs; `None` if that is chosen on the command line.
    """
    own = [
        declare
        for name, declared in _SUITE_OPTIONS.items()
        for declare in declared
        if suite in {None, name}
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        of_studies = [declare for study in registry.studies() for declare in study.options]
        return _with(command, (*_WORKLOAD_OPTIONS, *of_studies, *_PROTOCOL_OPTIONS, *own))

    return decorate
