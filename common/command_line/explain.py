"""`dynamometer explain TARGET`: build a callable here, and show what Dynamo makes of it."""

from __future__ import annotations

import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import msgspec

from dynamometer.common import registry
from dynamometer.common.command_line.output_file import write_text
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Argument, Valued, defaults
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.interfaces.workload_options import DEVICE
from dynamometer.common.interfaces.workload_options import SCALE as SCALE_OF_RUN
from dynamometer.common.interfaces.workload_options import TARGET as TARGET_OF_RUN
from dynamometer.common.interfaces.workload_options import TRAINING as TRAINING_OF_RUN
from dynamometer.common.machine.temporary import temporary_files_in
from dynamometer.results.values.cases import NO_BACKEND, Mode, Scale

if TYPE_CHECKING:
    from dynamometer.common.command_line.options import Invocation
    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.suite import Suite
    from dynamometer.results.values.cases import ModelSpec
    from dynamometer.results.values.explanation import Explanation


TARGET = Argument(("TARGET",), default="", reads=click.STRING, is_required=True)
SCALE = msgspec.structs.replace(
    SCALE_OF_RUN, default=Scale.TINY, help="How far a suite's model is shrunk."
)
TRAINING = msgspec.structs.replace(
    TRAINING_OF_RUN, help="Forward and loss of a training step, or a forward pass."
    "  [default: --inference]",
)  # fmt: skip
FORMAT = Valued(
    ("--format",), reads=click.Choice(["text", "html", "json"]), default="text", group="Output",
    help="Plain text, a page, or values.",
)  # fmt: skip
OUTPUT = Valued[Path | None](
    ("-o", "--output"), reads=click.Path(dir_okay=False, path_type=Path), default=None,
    metavar="FILE", group="Output", help="Instead of standard output.",
)  # fmt: skip
OPTIONS = (DEVICE, SCALE, TRAINING, FORMAT, OUTPUT, TARGET)

HELP = """Show what Dynamo makes of a model or a function.

Graph breaks with their source line and what to do about them, each graph as a table, guards in
words, bytecode beside what Python runs instead, recompiles.

TARGET is SUITE/MODEL, or FILE.py::NAME for a function without arguments that returns a module or
function and its inputs. A list of inputs is as many calls, which shows recompiles as well.
"""


def run(asked: Request, _: Invocation) -> int:
    """Explain a target, and print that or write it to a file.

    Raises:
        UsageError: there is no such target, it can't be built or called, or the file can't be
            written.
    """
    with redirect_stdout(sys.stderr):  # what the target prints is no part of the explanation
        mode = Mode.TRAINING if asked[TRAINING] else Mode.INFERENCE
        explained = explain_target(asked[TARGET], asked[SCALE], mode, asked[DEVICE])
    found = _written(explained, asked[FORMAT])
    output = asked[OUTPUT]
    if output is None:
        click.echo(found, nl=False)
        return 0
    write_text(output, found)
    return 0


def explain_target(target: str, scale: Scale, mode: Mode, device: str) -> Explanation:
    """Build what a target names, and have Dynamo compile it.

    Args:
        target: `SUITE/MODEL`, or `FILE.py::NAME` for a function without arguments that returns
            a callable and its inputs; a list of inputs is as many calls.
        scale: of a suite's model.
        mode: in training the loss belongs to what is compiled, and each call is followed by a
            backward pass.
        device: the type of the device that it runs on.

    Raises:
        UsageError: there is none of that name; or it can't be built or called, and what it raised.
        UnfitEnvironmentError: there is no such device, or nothing would be compiled.
    """
    from dynamometer.common.interfaces.outcome import SkippedError
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.machine.environment import require_device
    from dynamometer.common.machine.variables import require_compiling
    from dynamometer.common.planning.cases import build_cases

    require_compiling()
    require_device(device)
    suite, spec = _find(target)
    asked = Workload(arms=(NO_BACKEND,), scale=scale, mode=mode, device=device)
    (case,) = build_cases((spec,), asked)
    # These import torch.
    from dynamometer.common.checking.steps import configure
    from dynamometer.dynamo import state
    from dynamometer.dynamo.device import open_device
    from dynamometer.dynamo.explain import explain

    state.seed_everything(0)
    try:
        with TemporaryDirectory() as folder, state.running(case.mode, None):
            with temporary_files_in(Path(folder)):
                loaded = suite.load(spec, case)
            loaded = configure(loaded, case, open_device(case.device).torch_device)
            calls = [(each.args, each.kwargs) for each in loaded.calls]
            is_training = case.mode is Mode.TRAINING
            return explain(spec.name, loaded.module, calls, is_training=is_training)
    except SkippedError as error:
        msg = f"{target} can't be explained: {error}"
        raise UsageError(msg) from error
    except Exception as error:
        msg = f"{target} can't be explained, as it fails: {type(error).__name__}: {error}"
        raise UsageError(msg) from error


def _find(target: str) -> tuple[Suite, ModelSpec]:
    """Open what a target names.

    Raises:
        UsageError: there is none of that name, or several; or it is not to be run here.
    """
    from dynamometer.common.planning.selection import Selection, listed, opened, select

    file, colon, function = target.rpartition(":")
    path = f"{file}::{function}" if colon and file.endswith(".py") else target
    suite_name, model = registry.suite_of(path) if ".py" in path else None, ""
    if suite_name is None:
        suite_name, _, model = target.partition("/")
        if not model:
            msg = f"{target!r} is neither SUITE/MODEL nor FILE.py::NAME"
            raise UsageError(msg)
    source = registry.suite(suite_name)
    if source.is_foreign:
        chosen = ["DIR", "--parity", "--only", model] if model else [path, "--parity"]
        instead = shlex.join(["dynamometer", "run", *chosen])
        msg = (
            f"{target}: code of the suite {suite_name} is run in contained workers alone; explain"
            f" compiles in its own process: `{instead}` runs it there, and says where graphs end"
        )
        raise UsageError(msg)
    asked = defaults(run_options(of_suites=source.options)).but(TARGET_OF_RUN, source.target(path))
    suite = opened(source, source.opening(asked))
    # Of a user's file the suite itself finds what is named, which may be a dictionary of models.
    hint = f"`dynamometer ls models {suite_name}` shows all."
    specs = select(listed(suite), Selection(only=(model,) if model else ()), hint)
    if len(specs) > 1:
        names = ", ".join(spec.name for spec in specs)
        msg = f"{target} holds several models: add one of {names}"
        raise UsageError(msg)
    return suite, specs[0]


def _written(found: Explanation, form: str) -> str:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
    from dynamometer.results.reports import explanation_page

    return explanation_page.page(found) if form == "html" else explanation_page.text(found)
