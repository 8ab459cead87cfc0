"""Importing a user's file; and which others are run with it, by what their text says."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.bounds import name_apart
from dynamometer.results.store.reading import BAD_PYTHON, file_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

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


def import_file(path: Path) -> ModuleType:
    """Import a file as if it had been run, once: what it registers, it could not register again.

    It finds itself alone in `sys.argv`. Where another module has its name, it gets a name of its
    own: torch, and programs that torch starts, must still find the other module by that name.

    Raises:
        ImportError: it imports from `.`, as a part of a package can.
    """
    is_anothers = _is_anothers(path)
    name = name_apart(path.stem, str(path)) if is_anothers else path.stem
    known = sys.modules.get(name)
    if known is not None and _is_of(path, known):
        return known
    if is_anothers:
        sys.meta_path.insert(0, _Neighbours(path))
        sys.path.append(str(path.parent))  # for programs that torch starts
    else:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        msg = f"{path} can't be imported"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.argv[:] = [str(path)]
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        if "no known parent package" not in str(error):
            raise
        msg = (
            f"{error}: {path} is run by itself, with its folder on the path; of `.helper` import"
            " `helper`, and of a package its full name"
        )
        raise ImportError(msg) from error
    return module


@dataclass(frozen=True)
class _Neighbours:
    """Finds modules beside a file before all others, but for those of the file's own name."""

    file: Path

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is; `None` leaves it to others."""
        del target
        if path is not None or fullname == self.file.stem:
            return None
        found = PathFinder.find_spec(fullname, [str(self.file.parent)])
        # A mere folder gives way to a package elsewhere, as it does on `sys.path`.
        return found if found is not None and found.origin is not None else None


def _is_anothers(path: Path) -> bool:
    """Return whether a file has the name of another module, whether that is loaded or not."""
    name = path.stem
    if name in sys.modules:
        return not _is_of(path, sys.modules[name])
    if name in sys.stdlib_module_names:
        return True
    if not name.isidentifier():  # no statement imports it, and looking for `a.b` would import `a`
        return False
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:  # a mere folder gives way to a file
        return False
    return os.path.realpath(found.origin) != str(path)


def _is_of(path: Path, module: ModuleType) -> bool:
    """Return whether a module is that of a file."""
    file = getattr(module, "__file__", None)
    return file is not None and os.path.realpath(file) == str(path)
