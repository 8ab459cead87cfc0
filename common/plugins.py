"""What installed distributions register, by entry points in the groups `dynamometer.<kind>`.

Each is read by itself: what is wrong with one says nothing of the others.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Plugin(NamedTuple):
    """Something that a distribution registers.

    Attributes:
        kind: what it is, such as `suites`.
        name: what it is known by.
        place: its `module:attribute`.
        package: the distribution, as pip calls it.
    """

    kind: str
    name: str
    place: str
    package: str

    @property
    def origin(self) -> str:
        """Where it is and whose it is, for a message."""
        return f"{self.place} (package {self.package})"


def registered(kind: str) -> list[Plugin]:
    """Return what is registered of a kind, in the order of Python's path."""
    return [each for each in _read(tuple(sys.path))[0] if each.kind == kind]


def unread() -> tuple[str, ...]:
    """Say of which distributions it can't be read what they register, and why."""
    return _read(tuple(sys.path))[1]


def package_of(error: BaseException) -> tuple[str, str] | None:
    """Return whose code an error comes from, and from which line; `None` if from no plugin's."""
    owners = {
        each.place.partition(":")[0].partition(".")[0]: each.package
        for each in _read(tuple(sys.path))[0]
    }
    owners.pop(__name__.partition(".")[0], None)
    found, trace = None, error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if owner := owners.get(module.partition(".")[0]):
            found = owner, f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


@cache
def _read(folders: tuple[str, ...]) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    """Read the entry points of every distribution in folders that has some for us."""
    found: list[Plugin] = []
    faults: list[str] = []
    seen: set[str] = set()
    for path in map(Path, _declaring(folders)):
        package = path.stem.partition("-")[0]
        try:
            package, own = _registered_by(path, package)
        except Exception as error:  # noqa: BLE001  whatever is wrong with its files
            kind = type(error).__name__
            text = f"what the package {package} brings, as its files in {path} can't be read"
            faults.append(f"{text}: {kind}: {error}")
            continue
        # Of a distribution that is there twice Python imports the first.
        key = re.sub("[-_.]+", "-", package).lower()
        if key not in seen:
            seen.add(key)
            found += own
    return tuple(found), tuple(faults)


def _registered_by(path: Path, package: str) -> tuple[str, list[Plugin]]:
    """Return a distribution's name, or else the one given, and what it registers.

    Raises:
        Exception: its files can't be read.
    """
    from importlib.metadata import PathDistribution  # takes a fifth of the start-up time

    found = PathDistribution(path)
    package = found.metadata["Name"] or package
    return package, [
        Plugin(each.group.removeprefix(_GROUP), each.name, each.value, package)
        for each in found.entry_points
        if each.group.startswith(_GROUP)
    ]


_GROUP = "dynamometer."


def _declaring(folders: tuple[str, ...]) -> Iterator[str]:
    """Yield the `*-info` folder of each distribution that declares entry points for us.

    `entry_points.txt` is where the standard puts it (packaging.python.org, entry points).
    """
    for folder in folders:
        with suppress(OSError):
            for name in sorted(os.listdir(folder or ".")):  # noqa: PTH208  half of what Path.iterdir takes
                if name.endswith("-info") and _declares(f"{folder or '.'}/{name}"):
                    yield f"{folder or '.'}/{name}"


def _declares(distribution: str) -> bool:
    """Return whether one does, given its `*-info` folder."""
    with suppress(OSError), open(f"{distribution}/entry_points.txt", "rb") as file:  # noqa: PTH123  likewise
        return f"[{_GROUP}".encode() in file.read()
    return False  # most have no entry points
