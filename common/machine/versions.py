"""The versions of torch and Python that this was tried with, and whether those here are among them.

`docs/compatibility.md` says how they were tried and what differs.
"""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import distributions
from typing import TYPE_CHECKING

from dynamometer.results.values.records import Diagnosis, Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

TRIED: Mapping[str, tuple[str, ...]] = {
    "torch": ("2.11", "2.13", "2.15"),
    "Python": ("3.11", "3.12"),
}
"""Oldest first; of each release its first version."""

_REMEDY = "make test, or mind docs/compatibility.md: records say what this torch doesn't tell"


def judge_versions(folders: Iterable[Path] | None = None) -> list[Diagnosis]:
    """Judge this Python, and the torch that is installed, without importing it.

    Args:
        folders: packages are looked for in them; `None` for where Python imports from.
    """
    path = sys.path if folders is None else [str(each) for each in folders]
    torch = next(iter(distributions(name="torch", path=path)), None)
    found = {"Python": platform.python_version()}
    if torch is not None:
        found["torch"] = torch.version
    return [_judge(subject, version) for subject, version in found.items()]


def _judge(subject: str, version: str) -> Diagnosis:
    tried = TRIED[subject]
    here, oldest, newest = map(_release, (version, tried[0], tried[-1]))
    known = f"tried were {', '.join(tried)}" if len(tried) > 1 else f"tried was {tried[0]}"
    if oldest <= here <= newest:
        return Diagnosis(subject=subject, level=Level.FINE, finding=f"{version}: {known}")
    side = "newer" if here > newest else "older"
    return Diagnosis(
        subject=subject,
        level=Level.NOTE,
        finding=f"{version}: {side} than any this was tried with ({known})",
        remedy=_REMEDY,
    )


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers that tell releases apart, such as 2 and 13 of `2.13.0+cpu`."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
