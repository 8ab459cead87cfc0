"""What a user's project says of its models: `[tool.dynamometer]` in its `pyproject.toml`."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from dynamometer.common.errors import UsageError
from dynamometer.common.planning.refusals import store_errors_as_usage
from dynamometer.results.store.reading import file_text

if TYPE_CHECKING:
    from pathlib import Path

_NEEDED = """say what to run, as in `dynamometer run FILE.py`, or put it into ./pyproject.toml:

[tool.dynamometer]
models = "FILE.py"
"""


def read_project(path: Path) -> list[str]:
    """Return the arguments that a project's table stands for on the command line.

    `models` is what is run; any other key is a long option without its dashes. A list repeats the
    option, and `true` is one without a value.

    Raises:
        UsageError: there is no table, it is damaged, or doesn't say what to run.
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
    return [models, *(word for key, value in table.items() for word in _option(path, key, value))]


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


def _option(path: Path, key: str, value: object) -> list[str]:
    """Return the words that an entry stands for.

    Raises:
        UsageError: it is a table, which stands for none.
    """
    if isinstance(value, dict):
        msg = f"{path}: {key} of [tool.dynamometer] is a table: give a value, or a list of them"
        raise UsageError(msg)
    if isinstance(value, list):
        return [word for each in value for word in _option(path, key, each)]
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    return [f"--{key}", str(value)]
