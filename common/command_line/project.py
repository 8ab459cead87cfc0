"""What a user's project says of its models: `[tool.dynamometer]` in its `pyproject.toml`."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from dynamometer.common.errors import UsageError

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
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))["tool"]["dynamometer"]
    except tomllib.TOMLDecodeError as error:
        msg = f"{path} can't be read: {error}"
        raise UsageError(msg) from error
    except (OSError, KeyError) as error:
        raise UsageError(_NEEDED) from error
    models = table.pop("models", None)
    if not isinstance(models, str):
        raise UsageError(_NEEDED)
    return [models, *(word for key, value in table.items() for word in _option(key, value))]


def _option(key: str, value: object) -> list[str]:
    if isinstance(value, list):
        return [word for each in value for word in _option(key, each)]
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    return [f"--{key}", str(value)]
