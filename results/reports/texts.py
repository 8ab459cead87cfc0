"""How things are written wherever results are shown as text. Pure; no torch."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Estimate

_NAME_WIDTH = 30
_RESUMED = re.compile(r"torch_dynamo_resume_in_(\w+)_at_(\d+)")


def name_columns(case: Case) -> str:
    """Begin a case's line: device and name."""
    return f"{case.device:4} {case.label:<{_NAME_WIDTH}}"


def speedup_text(found: Estimate | None) -> str:
    """Write a speedup with its interval."""
    return f"{found.value:.3f}x [{found.low:.3f}, {found.high:.3f}]" if found else "-"


def place(file: str, line: int) -> str:
    """Name a line of source briefly."""
    return f"{PurePath(file).name}:{line}"


def in_source(text: str) -> str:
    """Say of functions Dynamo has made what they are."""
    return _RESUMED.sub(r"the rest of \1, from line \2", text)
