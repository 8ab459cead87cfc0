"""Which files of a project or package are looked through, and how each is imported. Pure paths."""

from __future__ import annotations

import importlib.util
import keyword
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.store import EVENTS, MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_INIT = "__init__.py"
_NOT_LOOKED_AT = frozenset(("__pycache__", "node_modules", "site-packages", "test", "tests"))
_NOT_LOOKED_AT_WITHOUT_CODE = frozenset(("build", "dist", "docs"))
"""Unless they are packages."""
_NOT_READ = frozenset(("conftest.py", "setup.py"))


@dataclass(frozen=True)
class SourceFile:
    """A file with how it is imported.

    Attributes:
        path: of it.
        module: its name as it is imported.
        root: folder to import from; `None` for what is installed.
        beside: a folder that its project may import from as well, as the last.
    """

    path: Path
    module: str
    root: Path | None
    beside: Path | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that it imports from before what is installed."""
        return tuple(each for each in (self.root, self.beside) if each is not None)

    @property
    def fault(self) -> str | None:
        """Why it can't be imported, if its name says so."""
        bad = next((part for part in self.module.split(".") if not _is_name(part)), None)
        return None if bad is None else f"{bad} is no name of a module; rename {self.path.name}"


def files_of(target: str) -> list[SourceFile]:
    """Return the files of a folder, of an installed package or of a part of one.

    Args:
        target: a path, or the name of a package.

    Raises:
        ValueError: it is neither; or a file that can't be imported; says what to do.
    """
    path = Path(target)
    if path.is_dir():
        root = _root_of(path.resolve())
        return [_of_project(file, root) for file in _python_files(path.resolve())]
    if path.exists():
        return [_one_file(path.resolve())]
    package, *rest = target.split(".")
    folders = installed_in(package)
    if not folders:
        msg = f"{target} is neither a path nor an installed package: what is to be looked through?"
        raise ValueError(msg)
    return [file for folder in folders for file in _of_package(folder, (package, *rest))]


def home_of(target: str) -> Path | None:
    """Return the folder, or the file, that a target is a part of; `None` of what is installed.

    That is the package, if it is within one, else the folder itself or the file.
    """
    path = Path(target)
    if not path.exists():
        return None
    path = path.resolve()
    root = _root_of(path if path.is_dir() else path.parent)
    inside = path.relative_to(root).parts
    return root / inside[0] if inside else path


def installed_in(package: str) -> tuple[Path, ...]:
    """Return the folders that hold an installed package or module; it isn't imported."""
    if not _is_name(package) or package == "__main__":
        return ()
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # of a module that says nothing of where it is from
        return ()
    if spec is None:
        return ()
    places = [*(spec.submodule_search_locations or ())]
    if not places and spec.has_location and spec.origin:
        places = [spec.origin]
    return tuple(dict.fromkeys(Path(each).parent for each in places))


def located(parts: Sequence[str], folders: Sequence[Path]) -> Path | None:
    """Return the file of a module, or its folder where it is a package without one.

    Args:
        parts: of the module's name.
        folders: that are imported from, in order.
    """
    for folder in folders:
        place = folder.joinpath(*parts)
        files = [place / _INIT, *([place.with_name(f"{place.name}.py")] if parts else [])]
        if found := next(filter(Path.is_file, files), None):
            return found
    return next((each for folder in folders if (each := folder.joinpath(*parts)).is_dir()), None)


def _of_package(folder: Path, parts: Sequence[str]) -> Iterator[SourceFile]:
    place = folder.joinpath(*parts)
    found = [place.with_name(f"{place.name}.py")] if not place.is_dir() else _python_files(place)
    for file in filter(Path.is_file, found):
        yield SourceFile(file, _module_name(file, folder), None)


def _one_file(path: Path) -> SourceFile:
    """Return a file that is named by itself.

    Raises:
        ValueError: it can't be imported.
    """
    if path.suffix != ".py":
        msg = f"{path} is no Python file: name a package, a folder of code or a file of it"
        raise ValueError(msg)
    found = _of_project(path, _root_of(path.parent))
    if found.fault is not None:
        msg = f"{path} can't be imported: {found.fault}"
        raise ValueError(msg)
    return found


def _root_of(folder: Path) -> Path:
    """Return the nearest folder, itself or above, that is no package."""
    while (folder / _INIT).is_file():
        folder = folder.parent
    return folder


def _of_project(file: Path, root: Path) -> SourceFile:
    """Say how a file of a project is imported.

    One of a package is imported from the folder that holds the package, any other from the
    project's; what lies below a folder whose name is no module's, from that folder. What else its
    code may take for a folder to import from comes last: the project's, or the file's own.

    Args:
        file: of the project.
        root: the project's folder, or that which holds the package it is.
    """
    above = [each for each in file.parents if each.is_relative_to(root)]
    packages = [each for each in above if (each / _INIT).is_file()]
    first = packages[-1].parent if packages else root
    below = [each for each in above if each.is_relative_to(first) and each != first]
    first = next((each for each in below if not _is_name(each.name)), first)
    own = root if file.parent in packages else file.parent
    beside = next((each for each in (own, root) if each != first), None)
    return SourceFile(file, _module_name(file, first), first, beside)


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _python_files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*.py")):
        above = [each for each in file.parents if each.is_relative_to(folder) and each != folder]
        if any(map(_is_hidden, above)):
            continue
        if file.name not in _NOT_READ and file.is_file():
            yield file


def _is_hidden(folder: Path) -> bool:
    if folder.name in _NOT_LOOKED_AT_WITHOUT_CODE:
        return not (folder / _INIT).is_file()
    if (folder / MANIFEST).is_file() and (folder / EVENTS).is_file():
        return True  # of a run, which writes files as it goes on
    return folder.name.startswith(".") or folder.name in _NOT_LOOKED_AT


def _module_name(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
