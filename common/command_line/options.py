"""Commands made of declared options, shown in groups, which parse to a request."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

from dynamometer.common.interfaces.option import (
    Argument,
    Flag,
    Group,
    OneOf,
    Request,
    Several,
    Switch,
    Valued,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dynamometer.common.interfaces.option import Option

    Invocation = tuple[str, list[str]]


class GroupedOption(click.Option):
    """An option that belongs to a group of the help."""

    def __init__(self, option: Option[Any], flags: Sequence[str], **kwargs: Any) -> None:
        """Take what is declared, and what `click.Option` takes."""
        super().__init__([*flags, option.key], **{"help": option.help, **kwargs})
        self.group: str = option.group


class GroupedCommand(click.Command):
    """A command whose help shows its options by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group, and the rest under `Other`."""
        sections: dict[str, list[tuple[str, str]]] = {
            name: [] for name in (*get_args(Group), "Other")
        }
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row:
                sections[getattr(parameter, "group", "Other")].append(row)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def command(
    name: str,
    options: Sequence[Option[Any]],
    run: Callable[[Request, Invocation], int],
    text: str,
) -> GroupedCommand:
    """Make a command.

    Args:
        name: of the command.
        options: what it takes, in the order of the help within each group.
        run: what it does with what it was asked, given also the program and the arguments that were
            typed; returns the exit code.
        text: what its help says.
    """

    @click.pass_context
    def parsed(context: click.Context, /, **values: object) -> int:
        return run(_request(context, options, values), context.obj)

    parameters = [parameter for option in options for parameter in _parameters(option)]
    return GroupedCommand(name, params=parameters, callback=parsed, help=text)


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
                metavar=option.flag if option.is_required else f"[{option.flag}]",
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
