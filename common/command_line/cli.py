"""The command line: from words to a run and an exit code."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dynamometer
from dynamometer.common import registry
from dynamometer.common.command_line import request
from dynamometer.common.command_line.options import (
    GroupedCommand,
    calibrate_options,
    explain_options,
    report_options,
    run_options,
)
from dynamometer.common.errors import (
    DynamometerError,
    UnfitEnvironmentError,
    UsageError,
)
from dynamometer.common.planning import planning, refusals
from dynamometer.common.planning.plan import select
from dynamometer.results.store import store
from dynamometer.results.values.cases import Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dynamometer.common.interfaces.suite import Suite
    from dynamometer.results.values.records import Manifest

_USAGE, _INTERRUPTED, _READER_LEFT = 2, 130, 141


def main(suite: str | None = None, argv: Sequence[str] | None = None) -> int:
    """Run the program and give its exit code.

    Args:
        suite: name of the suite a script stands for; `None` for the `dynamometer` command.
        argv: the words after the program's name; `None` for those of this process.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    program = _script_words(sys.argv[0]) if suite else "dynamometer"
    try:
        command = _script(suite) if suite else _program()
        name = Path(sys.argv[0]).name if suite else program
        code = command.main(words, prog_name=name, standalone_mode=False, obj=(program, words))
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return _USAGE
    except (DynamometerError, store.StoreError) as error:
        click.echo(f"error: {error}", err=True)
        return getattr(error, "exit_code", DynamometerError.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read standard output has left, as `head` does. What was measured is stored.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_LEFT
    return code if isinstance(code, int) else 0


def _script_words(script: str) -> str:
    """Return the words that start a script from anywhere."""
    return shlex.join([sys.executable, str(Path(script).resolve())])


def _script(suite: str) -> click.Command:
    """Make the command that `./<suite>.py` is."""

    @click.command(cls=GroupedCommand, help=_RUN_HELP.format(suite=suite))
    @run_options(suite)
    @click.pass_obj
    def script(invocation: tuple[str, list[str]], /, **options: Any) -> int:
        program, words = invocation
        return _run_suite(suite, program, words, options)

    return script


def _program() -> click.Group:
    """Make the `dynamometer` command."""

    @click.group(help="What torch.compile with a given backend does to real PyTorch models.")
    @click.version_option(dynamometer.__version__, package_name="dynamometer")
    def program() -> None:
        pass

    @program.command("run", cls=GroupedCommand, help=_RUN_HELP.format(suite="TARGET") + _TARGETS)
    @click.argument("target", required=False)
    @run_options(None)
    @click.pass_obj
    def run(invocation: tuple[str, list[str]], /, target: str | None, **options: Any) -> int:
        name, words = invocation
        rest = words[1:]
        if target is None:
            from dynamometer.common.command_line.project import read_project

            words = ["run", *read_project(Path("pyproject.toml")), *rest]
            return int(program.main(words, standalone_mode=False, obj=(name, words)))
        rest.remove(target)
        return _run_target(target, name, rest, options)

    @program.command("resume", cls=GroupedCommand, help="Finish an interrupted run.")
    @click.argument("directory", type=click.Path(path_type=Path))
    @report_options
    def resume(*, directory: Path, **options: Any) -> int:
        return _resume(directory, options)

    @program.command("ls", help="List what there is, one name a line.")
    @click.argument("what", type=click.Choice(["suites", "backends", "models"]))
    @click.argument("suite", required=False)
    def ls(what: str, suite: str | None) -> None:
        click.echo("\n".join(_names(what, suite)))

    @program.command("calibrate", cls=GroupedCommand, help=_CALIBRATE_HELP)
    @calibrate_options
    @click.pass_obj
    def calibrate(invocation: tuple[str, list[str]], /, **options: Any) -> int:
        from dynamometer.common.command_line import (
            calibrate,  # scipy and rich take a while to import
        )

        program, words = invocation
        return calibrate.run(program, words, options)

    @program.command("explain", cls=GroupedCommand, help=_EXPLAIN_HELP)
    @click.argument("target")
    @explain_options
    def explain(*, target: str, **options: Any) -> int:
        from dynamometer.common.command_line import (
            explain,  # click and msgspec are all it takes until it runs
        )

        return explain.run(target, options)

    program.command("doctor", help="Say what on this machine makes figures worse.")(_doctor)
    return program


_RUN_HELP = """Measure what compiling does to the models of {suite}.

Each case runs in a process of its own; a line is printed as it ends, and everything is kept in
a directory below --output-dir, from which an interrupted run can be resumed.
"""

_CALIBRATE_HELP = """Find out how often measuring is wrong on this machine.

Identical arms, and arms slowed by 1, 2 and 5 %, are measured on models of torchbench; the page
that is written says how often identical arms are called different, how often intervals hold the
truth, and how often a slowdown is noticed. Later runs below the same --output-dir learn from it.
"""

_EXPLAIN_HELP = """Show what Dynamo makes of a model or a function.

Graph breaks with their source line and what to do about them, each graph as a table, guards in
words, bytecode beside what Python runs instead, recompiles.

TARGET is SUITE/MODEL, or FILE.py::NAME for a function without arguments that returns a module or
function and its inputs. A list of inputs is as many calls, which shows recompiles as well.
"""

_TARGETS = """
TARGET is a suite (`dynamometer ls suites`), FILE.py or FILE.py::name with models of your own, a
program.pt2 that torch.export saved, or hub:NAME for a model transformers can load. Without one,
[tool.dynamometer] in ./pyproject.toml says what to run.
"""


def _run_target(target: str, name: str, words: list[str], options: dict[str, Any]) -> int:
    """Run a suite, or models of a user's own."""
    path, colons, function = target.partition("::")
    if not path.endswith((".py", ".pt2")) and not target.startswith("hub:"):
        return _run_suite(target, f"{name} run {shlex.quote(target)}", words, options)
    if not target.startswith("hub:"):
        target = str(Path(path).resolve()) + colons + function
    if options["scale"] != Scale.FULL:
        msg = "models of your own are what your code makes them: leave out --scale"
        raise UsageError(msg)
    program = f"{name} run {shlex.quote(target)}"
    return _run_suite("user", program, words, {**options, "target": target})


def _names(what: str, suite: str | None) -> list[str]:
    match what:
        case "suites":
            return registry.choices("suites")
        case "backends":
            return registry.choices("backends")
        case _:
            return [spec.name for spec in _open(suite or "torchbench", {}).specs()]


def _open(suite: str, options: dict[str, str]) -> Suite:
    open_suite: Callable[[dict[str, str]], Suite] = registry.resolve("suites", suite)
    try:
        return open_suite(options)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _run_suite(suite: str, program: str, words: list[str], options: dict[str, Any]) -> int:
    """Plan a run and execute it."""
    if suite != "user" and not set(words) - {"--"}:
        click.echo("nothing asked for: taking --quick (see --help)", err=True)
        options["quick"] = True
    suite_options = planning.opening_options(suite, options)
    models = select(_open(suite, suite_options).specs(), planning.selection(options))
    if options["list_names"]:
        click.echo("\n".join(spec.name for spec in models))
        return 0
    plan = planning.make_plan(suite, suite_options, models, options)
    runs = Path(options["output_dir"])
    command = shlex.join([*shlex.split(program), *words])
    manifest, directory = request.begin(plan, program, command, runs)
    return _execute(manifest, directory, options)


def _resume(directory: Path, options: dict[str, Any]) -> int:
    """Finish a run where it was begun.

    Raises:
        UnfitEnvironmentError: machine or software are not those of the run; says what differs.
    """
    refusals.check_reporting(options)
    manifest = store.read_manifest(directory)
    from dynamometer.common.machine.environment import differences, read_environment, require_device

    refusals.check_expectations(registry.study(manifest.plan.study), options)
    require_device(manifest.plan.cases[0].device)
    changes = differences(manifest.environment, read_environment())
    if changes:
        msg = (
            f"{directory} was begun under other conditions: {'; '.join(changes)}. Put these back,"
            f" or measure anew: {manifest.command}"
        )
        raise UnfitEnvironmentError(msg)
    return _execute(manifest, directory, options)


def _doctor() -> int:
    """Print what was found, and give the exit code of an unfit machine if it is one."""
    from dynamometer.common.machine.doctor import examine
    from dynamometer.results.values.records import Level

    found = examine()
    for each in found:
        click.echo(f"{each.level.upper():5} {each.subject}: {each.finding}")
        if each.remedy:
            click.echo(f"      {each.remedy}")
    unfit = any(each.level is Level.UNFIT for each in found)
    return UnfitEnvironmentError.exit_code if unfit else 0


def _execute(manifest: Manifest, directory: Path, options: dict[str, Any]) -> int:
    """Run a plan, or the rest of it, and say where the results are."""
    # rich and scipy take a while to import
    from dynamometer.common.command_line.session import Reporting, Session

    reporting = Reporting(
        csv_compat=options["csv_compat"],
        expect=options["expect"],
        update_expected=options["update_expected"],
    )
    return Session(manifest, directory, reporting).run()
