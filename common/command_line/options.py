"""Commands made of declared options: their help, what they refuse, and what they parse to."""

from __future__ import annotations

import gc
import os
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

from dynamometer.common import registry
from dynamometer.common.command_line.dynamobench.translation import Translation, translated
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import (
    Argument,
    Arguments,
    Flag,
    Group,
    OneOf,
    Request,
    Several,
    Switch,
    Valued,
)
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.interfaces.workload_options import TARGET
from dynamometer.common.studies.study import options_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dynamometer.common.interfaces.option import Option

    Invocation = tuple[str, list[str]]


class GroupedOption(click.Option):
    """An option that belongs to a group of the help."""

    def __init__(self, option: Option[Any], flags: Sequence[str], **kwargs: Any) -> None:
        """Take what is declared, and what `click.Option` takes."""
        super().__init__([*flags, option.key], **{"help": option.help, **kwargs})
        self.group: str = option.group


class GroupedCommand(click.Command):
    """A command of declared options, whose help shows them by group."""

    def __init__(
        self,
        name: str,
        options: Sequence[Option[Any]],
        *,
        reads_theirs: bool,
        hidden: Sequence[Option[Any]],
        **kwargs: Any,
    ) -> None:
        """Take what is declared, and what `click.Command` takes.

        Args:
            name: of the command.
            options: what it takes, in the order of the help within each group.
            reads_theirs: whether options of PyTorch's `benchmarks/dynamo` are understood as well.
            hidden: those of them that the help leaves out.
            kwargs: for `click.Command`.
        """
        parameters = [parameter for option in options for parameter in _parameters(option)]
        super().__init__(name, params=parameters, **kwargs)
        self._options = options
        self._reads_theirs = reads_theirs
        self._hidden = {option.key for option in hidden}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read options of PyTorch's harness as ours, and refuse flags that contradict each other.

        Raises:
            UsageError: what one asks for isn't done, or two are of one choice.
        """
        found = self._as_ours(args)
        for note in found.notes:
            click.echo(f"note: {note}", err=True)
        args = list(found.arguments)
        for flags in _choices(self._options):
            typed = [flag for flag in flags if flag in args]
            if len(typed) > 1:
                msg = f"{' and '.join(typed)} contradict each other: give one of them"
                raise UsageError(msg)
        return super().parse_args(ctx, args)

    def words_of(self, ctx: click.Context, typed: Sequence[str]) -> dict[str, Any]:
        """Return what was typed for each option and argument, by its key, before it is read."""
        found, _, _ = self.make_parser(ctx).parse_args([*self._as_ours(typed).arguments])
        return found

    def _as_ours(self, typed: Sequence[str]) -> Translation:
        if not self._reads_theirs:
            return Translation(tuple(typed))
        return translated(typed, {"--help", *(f for each in self._options for f in each.flags)})

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with the garbage collector on, which `__main__` had off for start-up.

        What was imported until now is never garbage, and is not looked through.
        """
        gc.freeze()
        gc.enable()
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group, and the rest under `Other`."""
        sections: dict[str, list[tuple[str, str]]] = {
            name: [] for name in (*get_args(Group), "Other")
        }
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row and parameter.name not in self._hidden:
                sections[getattr(parameter, "group", "Other")].append(row)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def refuse_non_utf8(arguments: Sequence[str]) -> None:
    """Refuse what is no text: records, reports and commands that repeat a case couldn't hold it.

    Raises:
        UsageError: a word is none; shows it.
    """
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise UsageError(_why_not_read(os.fsencode(word))) from error


def _why_not_read(word: bytes) -> str:
    try:
        text = word.decode()
    except UnicodeDecodeError:
        return f"{word!r} is not UTF-8: use a name that is"
    return f"the locale has no {text!a}: set LC_ALL=C.UTF-8, and don't set PYTHONUTF8=0"


class LazyGroup(click.Group):
    """Commands of which some are made when they are asked for, as each has dozens of options."""

    def __init__(self, makers: Mapping[str, Callable[[], click.Command]], **kwargs: Any) -> None:
        """Take what makes commands, by their names, and what `click.Group` takes."""
        super().__init__(**kwargs)
        self._makers = makers

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all."""
        return sorted({*super().list_commands(ctx), *self._makers})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make one, or find it."""
        make = self._makers.get(cmd_name)
        return make() if make else super().get_command(ctx, cmd_name)


def command(
    name: str,
    options: Sequence[Option[Any]],
    run: Callable[[Request, Invocation], int],
    text: str,
    *,
    reads_theirs: bool = False,
    hidden: Sequence[Option[Any]] = (),
) -> GroupedCommand:
    """Make a command.

    Args:
        name: of the command.
        options: what it takes, in the order of the help within each group.
        run: what it does with what it was asked, given also the program and the arguments that were
            typed; returns the exit code.
        text: what its help says.
        reads_theirs: whether options of PyTorch's `benchmarks/dynamo` are understood as well.
        hidden: options that its help leaves out.

    Raises:
        UsageError: two options can't be told apart.
    """
    _refuse_clashes(options)

    @click.pass_context
    def parsed(context: click.Context, /, **values: object) -> int:
        _require_folder()
        return run(_request(context, options, values), context.obj)

    return GroupedCommand(
        name, options, reads_theirs=reads_theirs, hidden=hidden, callback=parsed, help=text
    )


def _require_folder() -> None:
    """Refuse to do anything where the current folder is gone: the libraries of torch end so.

    Raises:
        UsageError: it is.
    """
    try:
        Path.cwd()
    except OSError as error:
        msg = f"the current folder can't be used ({error.strerror}): go to one that is there"
        raise UsageError(msg) from error


def _refuse_clashes(options: Iterable[Option[Any]]) -> None:
    """Refuse options of which it can't be told which is typed, as one of a plugin and one of ours.

    Raises:
        UsageError: there are two; says what each does.
    """
    if found := _clash(options):
        name, *clashing = found
        both = " and ".join(f"{each.named} ({each.help})" for each in clashing)
        msg = (
            f"two options are called {name}: {both}; a plugin must give its option another name,"
            " or be removed"
        )
        raise UsageError(msg)


def _clash(options: Iterable[Option[Any]]) -> tuple[str, Option[Any], Option[Any]] | None:
    """Return a name that two options have, and these."""
    known: dict[str, Option[Any]] = {}
    for option in options:
        for name in (*option.flags, option.key):
            other = known.setdefault(name, option)
            if other is not option:
                return name, other, option
    return None


def leave_out_clashes() -> None:
    """Do without studies and suites of plugins whose options can't be offered.

    These have a name of one of ours, or of a plugin that comes before, or no help can show them.
    """
    if all(registry.is_built_in(kind, name) for kind in _ADDING for name in registry.targets(kind)):
        return
    known: list[Option[Any]] = [_HELP, TARGET, *run_options()]
    added = [(kind, *each) for kind in _ADDING for each in registry.loadable(kind).items()]
    for kind, name, found in sorted(added, key=lambda each: not registry.is_built_in(*each[:2])):
        try:
            own = options_of(found) if kind == "studies" else [*found.options]
            if not registry.is_built_in(kind, name):
                _try(known, own)
        except (Exception, SystemExit) as error:  # noqa: BLE001  they may be anything
            registry.leave_out(kind, name, registry.fault(kind, name, error))
        else:
            known += own


def _try(known: Sequence[Option[Any]], own: Sequence[Option[Any]]) -> None:
    """Do with options what every run does that asks for none of them, and show their help.

    Raises:
        UsageError: one is called as another one is, or is typed without a flag.
    """
    if clash := _clash([*known, *own]):
        msg = f"its option {clash[0]} is called as another one is"
        raise UsageError(msg)
    if words := [each.named for each in own if isinstance(each, Argument | Arguments)]:
        msg = f"its option {words[0]} is typed without a flag"
        raise UsageError(msg)
    shown = command("run", own, lambda *_: 0, "")
    context = shown.make_context("run", [])
    _request(context, own, context.params)
    shown.get_help(context)


_ADDING: tuple[registry.Kind, ...] = ("studies", "suites")
"""What adds options to those of every run."""

_HELP = Flag(("--help",), group="Output", help="Show this message and exit.")


def without_argument(typed: Sequence[str], argument: Option[Any], word: str) -> list[str]:
    """Remove the word of an argument, but leave an option's value that happens to be the same.

    Args:
        typed: of the command that is run.
        argument: of it.
        word: that the argument was given.
    """
    context = click.get_current_context()
    running = context.command
    assert isinstance(running, GroupedCommand)
    for place in (index for index, each in enumerate(typed) if each == word):
        before, after = typed[:place], typed[place + 1 :]
        if running.words_of(context, [*before, _MARK, *after]).get(argument.key) == _MARK:
            return [*before, *after]
    msg = f"{word} is no argument among {typed}"
    raise AssertionError(msg)


_MARK = "\0"
"""What nobody can type."""


def overridden(
    arguments: Iterable[str], typed: Sequence[str], options: Iterable[Option[Any]]
) -> list[str]:
    """Drop flags that contradict a typed one.

    Args:
        arguments: what is asked for unless the user types otherwise.
        typed: by the user.
        options: of the command.
    """
    chosen = {flag for flags in _choices(options) if set(flags) & set(typed) for flag in flags}
    return [each for each in arguments if each not in chosen]


OF_PROJECT: ContextVar[frozenset[str]] = ContextVar("OF_PROJECT", default=frozenset())
"""Flags that stand in the file of a user's project."""


def _choices(options: Iterable[Option[Any]]) -> Iterator[tuple[str, ...]]:
    """Yield flags of which one at most can be meant."""
    return (each.flags for each in options if isinstance(each, OneOf | Switch))


def _request(
    context: click.Context, options: Sequence[Option[Any]], values: dict[str, object]
) -> Request:
    return Request(
        {option: option.value_of(values[option.key]) for option in options},
        frozenset(
            option
            for option in options
            if context.get_parameter_source(option.key) is ParameterSource.COMMANDLINE
        ),
        frozenset(option for option in options if OF_PROJECT.get() & set(option.flags)),
    )


def _parameters(option: Option[Any]) -> Iterator[click.Parameter]:
    """Yield what the parser makes of an option.

    Raises:
        TypeError: it is typed in a way there is not.
    """
    default = option.default.value if isinstance(option.default, Enum) else option.default
    match option:
        case Argument():
            yield click.Argument(
                [option.key],
                type=option.reads,
                required=option.is_required,
                **({} if option.is_required else {"default": default}),  # click takes None for one
                metavar=option.flag if option.is_required else f"[{option.flag}]",
            )
        case Arguments():
            yield click.Argument(
                [option.key],
                type=option.reads,
                nargs=-1,
                required=option.is_required,
                metavar=f"{option.flag}..." if option.is_required else f"[{option.flag}]...",
            )
        case Flag():
            yield GroupedOption(option, option.flags, is_flag=True, default=default)
        case Switch():
            yield GroupedOption(option, ["/".join(option.flags)], default=default)
        case OneOf():
            for flag, text in zip(option.flags, option.helps, strict=True):
                yield GroupedOption(
                    option, [flag], flag_value=flag, default=None, type=str, help=text
                )
        case Several():
            yield GroupedOption(
                option, option.flags, multiple=True, type=option.reads, metavar=option.metavar
            )
        case Valued():
            yield GroupedOption(
                option, option.flags, type=option.reads, default=default, show_default=True,
                metavar=option.metavar, envvar=option.variable,
            )  # fmt: skip
        case _:
            msg = f"{option.flag} is a {type(option).__name__}, which can't be typed"
            raise TypeError(msg)
