"""What a user's project says of its models: `[tool.dynamometer]` in its `pyproject.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynamometer.common.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_NEEDED = """say what to run, as in `dynamometer run FILE.py`, or put it into ./pyproject.toml:

[tool.dynamometer]
models = "FILE.py"
"""


@dataclass(frozen=True)
class Project:
    """The table of a project.

    Attributes:
        models: what to run, as one would type it.
        options: of `dynamometer run`, by their long names without dashes.
    """

    models: str
    options: dict[str, Any]


def read_project(path: Path) -> Project:
    """Read a project's table.

    Raises:
        UsageError: there is none, it is damaged, or doesn't say what to run.
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
    return Project(models, table)
