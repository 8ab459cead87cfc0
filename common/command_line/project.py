"""What a user's project says of its models: `[tool.dynamometer]` in its `pyproject.toml`."""

from __future__ import annotations

import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dynamometer.common.command_line.dynamobench.translation import their_options
from dynamometer.common.command_line.options import OF_PROJECT
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Member, Several, Valued
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.store.reading import file_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from dynamometer.common.interfaces.option import Option

_NEEDED = """say what to run, as in `dynamometer run FILE.py`, or put it into ./pyproject.toml:

[tool.dynamometer]
models = "FILE.py"
"""


def read_project(path: Path, options: Sequence[Option[Any]] = ()) -> list[str]:
    """Return the arguments that a project's table stands for on the command line.

    `models` is what is run; any other key is a long option without its dashes. A list repeats the
    option, and `true` is one without a value.

    Args:
        path: of the file.
        options: of the command.

    Raises:
        UsageError: there is no table, it is damaged, doesn't say what to run, holds what is no
            option, gives no value to one that takes one, or one to another.
    """
    if not path.exists():
        raise UsageError(_NEEDED)
    with store_errors_as_usage():
        text = file_text(path)
    try:
        project = tomllib.loads(text.removeprefix("\ufeff"))  # which editors on Windows begin with
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        msg = f"{path} can't be read: {error}"
        raise UsageError(msg) from error
    table = _table(path, _table(path, project, "tool"), "tool.dynamometer")
    models = table.pop("models", None)
    if models is None:
        raise UsageError(_NEEDED)
    if not isinstance(models, str) or not models or models.startswith("-"):
        msg = f"{path}: models of [tool.dynamometer] is {models!r}: name one file or suite, as text"
        raise UsageError(msg)
    found = (_option(path, key, value, options) for key, value in table.items())
    return [models, *(word for words in found for word in words)]


def _table(path: Path, within: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a table of a file.

    Raises:
        UsageError: there is none, or it is something else.
    """
    found = within.get(name.rpartition(".")[2])
    if found is None:
        raise UsageError(_NEEDED)
    if not isinstance(found, dict):
        msg = f"{path}: {name} is {found!r}, where a table belongs, as in\n\n{_NEEDED}"
        raise UsageError(msg)
    return found


def _words(path: Path, key: str, value: object, options: Sequence[Option[Any]]) -> list[str]:
    """Return the words that a flag and its value are typed by, or a flag alone, or none.

    Raises:
        UsageError: there is no such flag, or it lacks a value, or takes none.
    """
    flag = f"--{key}"
    if not _is_known(flag, options):
        msg = f"{path}: {key!r} of [tool.dynamometer] is no option (run --help)"
        raise UsageError(msg)
    taken, is_switch = _taken_by(flag, options), isinstance(value, bool)
    if taken is None and not is_switch:
        msg = (
            f"{path}: {key} of [tool.dynamometer] is {value!r}, and {flag} takes no value: give"
            " true or false"
        )
        raise UsageError(msg)
    if taken is not None and value is True:
        msg = f"{path}: {key} of [tool.dynamometer] is true, and {flag} takes {taken}: give that"
        raise UsageError(msg)
    if is_switch:
        return [flag] if value else []
    return [flag, str(value)]


def _is_known(flag: str, options: Sequence[Option[Any]]) -> bool:
    """Return whether a flag is ours, or of PyTorch's harness."""
    ours = any(flag in each.flags for each in options)
    return ours or any(flag in {name, *each.also} for name, each in their_options().items())


def _taken_by(flag: str, options: Sequence[Option[Any]]) -> str | None:
    """Return what follows a flag, of ours or of PyTorch's harness; `None` where nothing does."""
    own = next((each for each in options if flag in each.flags), None)
    if isinstance(own, Valued | Several):
        if isinstance(own.reads, Member):
            return " or ".join(each.value for each in own.reads.kind)
        return own.metavar or own.reads.name
    theirs = {} if own else their_options()
    takes = any(each.value for name, each in theirs.items() if flag in {name, *each.also})
    return "a value" if takes else None


def _option(path: Path, key: str, value: object, options: Sequence[Option[Any]]) -> list[str]:
    """Return the words that an entry stands for.

    Raises:
        UsageError: it is a table, which stands for none, or what `_words` refuses.
    """
    if isinstance(value, dict):
        msg = f"{path}: {key} of [tool.dynamometer] is a table: give a value, or a list of them"
        raise UsageError(msg)
    if isinstance(value, list):
        return [word for each in value for word in _option(path, key, each, options)]
    return _words(path, key, value, options)


@contextmanager
def of_project(arguments: Iterable[str], typed: Iterable[str]) -> Iterator[None]:
    """Say of options that a command is given within this that they stand in a project's file.

    Args:
        arguments: of the file.
        typed: by the user, which aren't of the file.

    Raises:
        UsageError: one is no option, or its value can't be; says that the file has it.
    """
    own = frozenset(arguments) - {each.partition("=")[0] for each in typed}
    token = OF_PROJECT.set(own)
    try:
        yield
    except click.NoSuchOption as error:
        if (key := error.option_name) not in own:
            raise
        msg = f"pyproject.toml: {key[2:]} of [tool.dynamometer] is no option (run --help)"
        raise UsageError(msg) from error
    except click.BadParameter as error:
        if error.param is None or own.isdisjoint(error.param.opts):
            raise
        msg = f"pyproject.toml: {error.format_message()}"
        raise UsageError(msg) from error
    finally:
        OF_PROJECT.reset(token)
