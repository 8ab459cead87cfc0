"""Which of the user's files are run with a file, by what their text says they import."""

from __future__ import annotations

import ast
import importlib.util
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import BAD_PYTHON, file_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST = 200
"""Files that are looked into; of more, as a checkout of torch has, the packages are named whole."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def with_imported_files(file: Path) -> tuple[Path, ...]:
    """Return a file, and all that it imports which is not installed, sorted.

    That is in its folder, or wherever else Python finds it, as what is installed to be edited.
    Where there is too much to look into, folders stand for all that is in them.
    """
    roots: dict[str, Path] = {}
    root_of = partial(_root, file.parent, roots)
    found = {file: file.parent}
    waiting = [file]
    while waiting and len(found) <= _MOST:
        path = waiting.pop()
        imported = dict(_imported(path, found[path], root_of))
        new = {each: root for each, root in imported.items() if each not in found}
        found |= new
        waiting += new
    if waiting:
        return tuple(
            sorted({root / path.relative_to(root).parts[0] for path, root in found.items()})
        )
    return tuple(sorted(found))


def _imported(path: Path, own: Path, root_of: Callable[[str], Path]) -> Iterator[tuple[Path, Path]]:
    """Yield the files that a file imports, each with the folder that is searched for its package.

    Args:
        path: of the file.
        own: the folder that is searched for the file's package.
        root_of: returns the folder that is searched for another one.
    """
    tree = ast.Module(body=[], type_ignores=[])
    with suppress(OSError, *BAD_PYTHON):
        tree = ast.parse(file_bytes(path))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    words = each.name.split(".")
                    yield from _files(root_of(words[0]), words)
            case ast.ImportFrom(module=module, names=names, level=0):
                words = (module or "").split(".")
                for each in names:
                    yield from _files(root_of(words[0]), [*words, each.name])
            case ast.ImportFrom(module=module, names=names, level=level):
                words = module.split(".") if module else []
                start = path.parents[level - 1] if level <= len(path.parents) else own.parent
                if start.is_relative_to(own):
                    before = start.relative_to(own).parts
                    for each in names:
                        yield from _files(own, [*before, *words, each.name])


def _files(folder: Path, words: list[str]) -> Iterator[tuple[Path, Path]]:
    """Yield the files that importing a dotted name from a folder runs, each with the folder."""
    for number in range(1, len(words) + 1):
        inside = folder.joinpath(*words[:number])
        for each in (inside / "__init__.py", inside.with_name(f"{inside.name}.py")):
            if each.is_file():
                yield each, folder


def _root(folder: Path, known: dict[str, Path], name: str) -> Path:
    """Return the folder a module is imported from; one's own where it is none of the user's."""
    if name not in known:
        is_own = any(_files(folder, [name]))
        known[name] = folder if is_own else _elsewhere(name) or folder
    return known[name]


def _elsewhere(name: str) -> Path | None:
    """Return the folder of a module of the user's that Python finds by its path."""
    if name in {"dynamometer", *sys.stdlib_module_names}:
        return None
    spec = None
    with suppress(ImportError, ValueError, AttributeError):
        spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    folders = [Path(each) for each in spec.submodule_search_locations or ()]
    place = folders[0] if folders else Path(spec.origin or "")
    is_known = not place.is_absolute() or _INSTALLED.intersection(place.parts)
    return None if is_known else place.parent
