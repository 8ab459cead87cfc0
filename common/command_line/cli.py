"""The command line: from arguments to a run and an exit code."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

import dynamometer
from dynamometer.common import registry
from dynamometer.common.command_line.dynamobench.translation import translated
from dynamometer.common.command_line.options import (
    LazyGroup,
    command,
    leave_out_clashes,
    overridden,
    refuse_non_utf8,
    without_argument,
)
from dynamometer.common.ending import exit_code_of
from dynamometer.common.errors import UnfitEnvironmentError, UsageError
from dynamometer.common.interfaces.option import defaults
from dynamometer.common.interfaces.run_options import OUTPUT_DIR, run_options
from dynamometer.common.interfaces.workload_options import LIST, QUICK, TARGET
from dynamometer.common.studies.study import options_of
from dynamometer.results.reports.texts import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dynamometer.common.command_line.options import GroupedCommand, Invocation
    from dynamometer.common.interfaces.option import Request


def main(suite: str | None = None, argv: Sequence[str] | None = None) -> int:
    """Run the program and give its exit code.

    Args:
        suite: name of the suite a script stands for; `None` for the `dynamometer` command.
        argv: the arguments after the program's name; `None` for those of this process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)

    def action() -> object:
        refuse_non_utf8(arguments)
        program = _script_arguments(sys.argv[0]) if suite else "dynamometer"
        found = _script(suite) if suite else _program()
        name = Path(sys.argv[0]).name if suite else program
        return _called(found, name, program, arguments)

    return exit_code_of(action)


def _called(found: click.Command, name: str, program: str, arguments: list[str]) -> object:
    """Run a command as click's `main` does, which would end with 1 where a reader has left."""
    invocation = (program, arguments)
    variable = f"_{re.sub('[-.]', '_', name)}_COMPLETE".upper()
    if os.environ.get(variable):  # a shell asks for completions
        return found.main(arguments, name, variable, standalone_mode=False, obj=invocation)
    with found.make_context(name, list(arguments), obj=invocation) as context:
        return found.invoke(context)


def _script_arguments(script: str) -> str:
    """Return the arguments that start a script from anywhere."""
    return shlex.join([sys.executable, str(Path(script).resolve())])


def _script(suite: str) -> GroupedCommand:
    """Make the command that `./<suite>.py` is."""
    source = registry.suite(suite)
    leave_out_clashes()

    def run(asked: Request, invocation: Invocation) -> int:
        program, arguments = invocation
        if not source.takes_target:
            return _run_suite(suite, program, arguments, _quick(asked, arguments))
        target = asked[TARGET]
        if target is None:
            return _run_suite(suite, program, arguments, asked)
        rest = without_argument(arguments, TARGET, target)
        target = source.target(target) or target
        program = f"{program} {shlex.quote(target)}"
        return _run_suite(suite, program, rest, asked.but(TARGET, target))

    options = (
        *run_options(options_of(*registry.studies()), source.options),
        *((TARGET,) if source.takes_target else ()),
    )
    text = _RUN_HELP.format(suite=suite) + source.help
    return command(suite, options, run, text, reads_theirs=True, hidden=source.refuses)


def _program() -> click.Group:
    """Make the `dynamometer` command."""
    makers: dict[str, Callable[[], click.Command]] = {
        "run": _run_command,
        "decisions": _decisions_command,
        "corpus": _corpus_command,
        **{name: partial(_command_of, name) for name in _MODULES},
    }
    program = LazyGroup(
        makers,
        name="dynamometer",
        help="What torch.compile with a given backend does to real PyTorch models.",
    )
    click.version_option(dynamometer.__version__, package_name="dynamometer")(program)

    @program.command("ls", help=_LS_HELP)
    @click.argument("what", type=click.Choice([*_LISTED, "models", "runs"]), metavar="WHAT")
    @click.argument("where", required=False, metavar="[SUITE|DIR]")
    @click.option("--long", is_flag=True, help="Of backends: a table with all there is to know.")
    @click.option("--json", "is_json", is_flag=True, help="The same for programs.")
    def ls(what: str, where: str | None, *, long: bool, is_json: bool) -> None:
        if where is not None and what not in {"models", "runs"}:
            msg = f"{what} are not of a suite or folder: dynamometer ls {what}, without {where!r}"
            raise UsageError(msg)
        if what != "backends" and (long or is_json):
            msg = f"--long and --json tell of backends: dynamometer ls backends, not {what}"
            raise UsageError(msg)
        if long or is_json:
            from dynamometer.common.command_line import backends_list

            found = backends_list.entries()
            click.echo(backends_list.as_json(found) if is_json else backends_list.as_table(found))
            return
        click.echo("\n".join(_runs(where) if what == "runs" else _names(what, where)))

    program.command("doctor", help="Say what on this machine makes figures worse.")(_doctor)
    return program


_MODULES = {
    "bisect": "bisect.command",
    "calibrate": "calibrate",
    "compare": "compare",
    "explain": "explain",
    "export": "stored.export",
    "history": "stored.history",
    "index": "stored.indexing",
    "report": "stored.report",
    "repro": "stored.repro",
    "resume": "stored.resume",
    "rm": "stored.removal",
    "serve": "stored.serve",
    "show": "stored.show",
}
"""By command the module that holds its OPTIONS, `run` and HELP."""


def _command_of(name: str) -> click.Command:
    module = importlib.import_module(f"{__package__}.{_MODULES[name]}")
    return command(name, module.OPTIONS, module.run, module.HELP)


def _run_command() -> click.Command:
    leave_out_clashes()
    every = run_options(
        options_of(*registry.studies()),
        [option for each in registry.suites() for option in each.options],
    )
    text = _RUN_HELP.format(suite="TARGET") + _TARGETS
    made = command("run", (*every, TARGET), _run, text, reads_theirs=True)
    made.allow_extra_args = True  # of a suite whose script is told what it holds the models of
    return made


def _decisions_command() -> click.Command:
    from dynamometer.common.command_line.decisions import commands

    return commands.group()


def _corpus_command() -> click.Command:
    from dynamometer.common.command_line import corpus

    @click.pass_obj
    def again(invocation: Invocation, arguments: list[str]) -> int:
        return _with_arguments(invocation[0], arguments)

    return corpus.group(again)


def _with_arguments(name: str, arguments: list[str]) -> int:
    """Run the `dynamometer` command with other arguments."""
    code = _called(_program(), "dynamometer", name, arguments)
    return code if isinstance(code, int) else 0


_RUN_HELP = """Measure what compiling does to the models of {suite}.

Each case runs in a process of its own; a line is printed as it ends, and everything is kept in
a directory below --output-dir, from which an interrupted run can be resumed.
"""

_LS_HELP = """List what there is, one a line.

WHAT is suites, backends, studies, executors, sinks, exports, models (of a SUITE) or runs (below a
DIR), of which it says when and where they were made, how far they came, and what they take.
"""

_TARGETS = """
TARGET is a suite (`dynamometer ls suites`), FILE.py or FILE.py::name with models of your own, a
program.pt2 that torch.export saved, hub:NAME or hub:FOLDER for a model transformers can load, a
corpus of graphs or one of them, or a folder or file of modules with TESTCASES. Without one,
[tool.dynamometer] in ./pyproject.toml says what to run.
"""


_LISTED: tuple[registry.Kind, ...] = (
    "suites", "backends", "studies", "executors", "sinks", "exports",
)  # fmt: skip
"""What a name on the command line can be of; studies have an option each."""


def _names(what: str, suite: str | None) -> list[str]:
    for kind in _LISTED:
        if kind == what:
            return registry.choices(kind)
    from dynamometer.common.planning.selection import listed, opened

    source = registry.suite(suite or registry.DEFAULT_SUITE)
    asked = defaults(run_options(of_suites=source.options))
    return [spec.name for spec in listed(opened(source, source.opening(asked)))]


def _runs(folder: str | None) -> list[str]:
    from dynamometer.common.command_line.stored import listing
    from dynamometer.common.command_line.stored.show import terminal_width

    return listing.lines(Path(folder) if folder else OUTPUT_DIR.default, terminal_width())


def _run(asked: Request, invocation: Invocation) -> int:
    """Run a suite, or models that a target names.

    Raises:
        UsageError: several targets are named.
    """
    name, arguments = invocation
    target, rest = asked[TARGET], arguments[1:]
    if target is None:
        from dynamometer.common.command_line.project import of_project, read_project

        ours = {flag for option in asked for flag in option.flags}
        rest = [*translated(rest, ours).arguments]
        project = translated(read_project(Path("pyproject.toml"), [*asked]), ours).arguments
        arguments = ["run", *overridden(project, rest, asked), *rest]
        with of_project(project, rest):
            return _with_arguments(name, arguments)
    rest = without_argument(rest, TARGET, target)
    found = registry.suite_of(target)
    suite = found or registry.suite_named(target)
    if found is None and registry.suite(suite).takes_target:
        program = f"{name} run {suite}"
        code = _called(_script(suite), program, program, rest)
        return code if isinstance(code, int) else 0
    more = click.get_current_context().args
    if more:
        msg = f"run takes one target, and these are several: {shlex.join([target, *more])}"
        raise UsageError(msg)
    if found is None:
        asked = _quick(asked, rest)
    else:
        target = registry.suite(suite).target(target) or target
    program = f"{name} run {shlex.quote(target)}"
    return _run_suite(suite, program, rest, asked.but(TARGET, target))


def _quick(asked: Request, arguments: Sequence[str]) -> Request:
    """Return what a suite is asked by some arguments, where none asks for the quick selection."""
    if set(arguments) - {"--"}:
        return asked
    click.echo("nothing asked for: taking --quick (see --help)", err=True)
    return asked.but(QUICK, value=True)


def _note(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(printable(f"note: {note}"), err=True)


def _run_suite(suite: str, program: str, arguments: list[str], asked: Request) -> int:
    """Plan a run and execute it."""
    from dynamometer.common.planning import batch_size_file, refusals, selection

    source = registry.suite(suite)
    asked = asked.with_defaults(source.options)
    refusals.check_options(asked, suite, registry.studies())
    opening = source.opening(asked)
    specs = selection.listed(selection.opened(source, opening))
    _note(source.notes(opening))  # first, as they may say why a name is unknown
    models = selection.select(specs, selection.asked_selection(asked))
    batch_sizes, notes = batch_size_file.asked_batch_sizes(asked, specs)
    _note(notes)
    if asked[LIST]:
        click.echo("\n".join(spec.name for spec in models))
        return 0
    from dynamometer.common.command_line import begin
    from dynamometer.common.planning import arms
    from dynamometer.common.planning.plan import make_plan

    asked, unusable = arms.with_every_backend(asked)
    for reason in unusable.values():
        click.echo(f"left out: {reason}", err=True)
    plan = make_plan(suite, opening, models, asked, batch_sizes)
    for reason in arms.unusable(asked, plan.cases[0].arms).values():
        click.echo(f"skipped: {reason}", err=True)
    line = shlex.join([*shlex.split(program), *arguments])
    manifest, directory = begin.begin(plan, program, line, asked[OUTPUT_DIR])
    return begin.carried_out(
        lambda faults: begin.execute(manifest, directory, asked, faults=faults),
        directory,
        asked,
        is_new=True,
    )


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
