"""What a user's project says of its models: `[tool.dynamometer]` in its `pyproject.toml`."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from dynamometer.common.command_line.dynamobench.translation import their_options
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Member, Several, Valued
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.store.reading import file_text

if TYPE_CHECKING:
    from collections.abc import Sequence
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
        UsageError: there is no table, it is damaged, doesn't say what to run, or gives no value
            to an option that takes one.
    """
    if not path.exists():
        raise UsageError(_NEEDED)
    with store_errors_as_usage():
        text = file_text(path)
    try:
        project = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        msg = f"{path} can't be read: {error}"
        raise UsageError(msg) from error
    table = _table(path, _table(path, project, "tool"), "tool.dynamometer")
    models = table.pop("models", None)
    if models is None:
        raise UsageError(_NEEDED)
    if not isinstance(models, str):
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


def _require_flag(path: Path, key: str, options: Sequence[Option[Any]]) -> None:
    """Refuse `true` for an option that would take the next word for its value.

    Raises:
        UsageError: it is one; says what it takes.
    """
    taken = _taken_by(f"--{key}", options)
    if taken is not None:
        msg = f"{path}: {key} of [tool.dynamometer] is true, and --{key} takes {taken}: give that"
        raise UsageError(msg)


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
        UsageError: it is a table, which stands for none, or `true` for an option with a value.
    """
    if isinstance(value, dict):
        msg = f"{path}: {key} of [tool.dynamometer] is a table: give a value, or a list of them"
        raise UsageError(msg)
    if isinstance(value, list):
        return [word for each in value for word in _option(path, key, each, options)]
    if value is True:
        _require_flag(path, key, options)
        return [f"--{key}"]
    if value is False:
        return []
    return [f"--{key}", str(value)]
