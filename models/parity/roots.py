"""Folders that a project is imported from: what they hold is taken from there, whatever is loaded.

A fork server has imported what most need before it knows of whom. No torch.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_HEAD_CHARACTERS = 10_000
_FIRST_ON_PATH = re.compile(r"^sys\.path\.insert\(0, *(['\"].*['\"])\)", re.MULTILINE)
_KEPT = frozenset(("__main__", "dynamometer", "functorch", "msgspec", "numpy", "torch", "torchgen"))
"""What can't be imported twice, or holds all together; nor can Python's own modules."""


def roots_of(file: Path) -> list[Path]:
    """Return the folders that a file's head puts first on the path, as far as they are there.

    Raises:
        OSError: it can't be read.
    """
    with TextIOWrapper(opened(file), encoding="utf-8", errors="replace") as text:
        head = text.read(_HEAD_CHARACTERS)
    found = []
    for each in _FIRST_ON_PATH.finditer(head):
        try:
            folder = Path(ast.literal_eval(each[1]))
        except (SyntaxError, TypeError, ValueError):  # it is more than a text
            continue
        if folder.is_dir():
            found.append(folder)
    return found


def provided_by(root: Path) -> set[str]:
    """Return the names of packages and modules that a folder holds."""
    modules = {each.stem for each in root.glob("*.py")}
    return modules | {each.parent.name for each in root.glob("*/__init__.py")}


def forget_others(root: Path) -> None:
    """Forget what is loaded of a name that a folder provides, but from elsewhere."""
    provided = provided_by(root) - _KEPT - sys.stdlib_module_names
    others = {
        name for name in provided & sys.modules.keys() if not is_from(sys.modules[name], root)
    }
    for name in [name for name in sys.modules if name.partition(".")[0] in others]:
        del sys.modules[name]
    importlib.invalidate_caches()


def is_from(module: ModuleType, root: Path) -> bool:
    """Return whether a module was imported from below a folder."""
    places = [Path(each).absolute() for each in _places(module)]
    folders = (root.absolute(), root.resolve())
    # A file of it may be a link to elsewhere.
    return any(
        path.is_relative_to(folder)
        for place in places
        for path in (place, place.resolve())
        for folder in folders
    )


def _places(module: ModuleType) -> Iterator[str]:
    file = getattr(module, "__file__", None)
    if file is not None:
        yield file
    else:
        yield from getattr(module, "__path__", ())
