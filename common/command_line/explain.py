"""`dynamometer explain TARGET`: build a callable here, and show what Dynamo makes of it."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import DynamometerError, UsageError
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning.plan import Selection, build_cases, select
from dynamometer.results.values.cases import NO_BACKEND, Scale

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.common.interfaces.suite import Suite
    from dynamometer.results.values.cases import ModelSpec
    from dynamometer.results.values.explanation import Explanation


def run(target: str, options: dict[str, Any]) -> int:
    """Explain a target, and print that or write it to a file.

    Raises:
        UsageError: there is no such target, or the file can't be written.
        DynamometerError: the target can't be built or called.
    """
    with redirect_stdout(sys.stderr):  # what the target prints is no part of the explanation
        explained = explain_target(target, Scale(options["scale"]))
    found = _written(explained, options["form"])
    output: Path | None = options["output"]
    if output is None:
        click.echo(found, nl=False)
        return 0
    try:
        output.write_text(found, encoding="utf-8")
    except OSError as error:
        msg = f"{output} can't be written: {error.strerror}"
        raise UsageError(msg) from error
    return 0


def explain_target(target: str, scale: Scale = Scale.TINY) -> Explanation:
    """Build what a target names, and have Dynamo compile it.

    Args:
        target: `SUITE/MODEL`, or `FILE.py::NAME` for a function without arguments that returns
            a callable and its inputs; a list of inputs is as many calls.
        scale: of a suite's model.

    Raises:
        UsageError: there is none of that name.
        DynamometerError: it can't be built or called; says what it raised.
    """
    suite, spec = _find(target)
    (case,) = build_cases((spec,), Workload(arms=(NO_BACKEND,), scale=scale))
    # These import torch.
    from dynamometer.common.checking.steps import configure
    from dynamometer.dynamo import state
    from dynamometer.dynamo.device import open_device
    from dynamometer.dynamo.explain import explain

    state.seed_everything(0)
    try:
        with state.running(case.mode, None):
            loaded = suite.load(spec, case)
            loaded = configure(loaded, case, open_device(case.device).torch_device)
            calls = [(each.args, each.kwargs) for each in loaded.calls]
            return explain(spec.name, loaded.module, calls)
    except Exception as error:
        msg = f"{target} can't be explained, as it fails: {type(error).__name__}: {error}"
        raise DynamometerError(msg) from error


def _find(target: str) -> tuple[Suite, ModelSpec]:
    path, colons, name = target.partition("::")
    if not colons and ".py:" in target:
        path, _, name = target.rpartition(":")
    if path.endswith(".py"):
        return _only(target, "user", name, {"target": f"{path}::{name}" if name else path})
    suite, _, name = target.partition("/")
    if not name:
        msg = f"{target!r} is neither SUITE/MODEL nor FILE.py::NAME"
        raise UsageError(msg)
    return _only(target, suite, name, {})


def _only(
    target: str, suite_name: str, name: str, suite_options: dict[str, str]
) -> tuple[Suite, ModelSpec]:
    try:
        suite: Suite = registry.resolve("suites", suite_name)(suite_options)
    except ValueError as error:
        raise UsageError(str(error)) from error
    # Of a user's file the suite itself finds what is named, which may be a dictionary of models.
    wanted = Selection(only=() if suite_name == "user" else (name,))
    specs = select(suite.specs(), wanted)
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
