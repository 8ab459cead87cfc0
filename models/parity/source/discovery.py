"""Which classes of a project or package are modules, read from its text; nothing is imported.

A class is one if a base is of `torch.nn`, or is a module of the same project by its name. What only
looks so turns out when a worker imports it.
"""

from __future__ import annotations

import ast
import importlib.util
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import BAD_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BASES = frozenset(("Module", "ModuleDict", "ModuleList", "Sequential", "LightningModule"))
_LIBRARY = ("nn", "torch.nn")
_NOT_LOOKED_AT = frozenset(
    ("__pycache__", "build", "dist", "docs", "node_modules", "site-packages", "test", "tests")
)
_NOT_READ = frozenset(("conftest.py", "setup.py"))


@dataclass(frozen=True)
class FoundClass:
    """A class that seems to be a module.

    Attributes:
        module: that defines it, as it is imported.
        class_name: its name in there.
        root: folder to import from; `None` for what is installed.
    """

    module: str
    class_name: str
    root: str | None

    @property
    def name(self) -> str:
        """What it is selected by."""
        return f"{self.module}.{self.class_name}"


@dataclass(frozen=True)
class _SourceFile:
    path: Path
    module: str
    root: str | None


@dataclass(frozen=True)
class _Definition:
    """A class of a file, and the names of its bases.

    Attributes:
        bases: the last part of each name.
        is_of_library: whether a base is written as one of `torch.nn`.
    """

    file: _SourceFile
    name: str
    bases: tuple[str, ...]
    is_of_library: bool


def found_classes(targets: Iterable[str]) -> dict[str, FoundClass]:
    """Return the modules of projects, by their names.

    Args:
        targets: folders or files of Python, or names of installed packages or parts of them.

    Raises:
        ValueError: one is neither, or none holds a module, or two hold the same; says what to do.
    """
    found: dict[str, FoundClass] = {}
    for target in targets:
        definitions = [each for file in _files_of(target) for each in _definitions(file)]
        own = {
            each.name: each
            for each in (
                FoundClass(one.file.module, one.name, one.file.root)
                for one in _modules_among(definitions)
            )
        }
        if not own:
            msg = f"{target} holds no class of nn.Module: name a package or a folder of code"
            raise ValueError(msg)
        if twice := sorted(found.keys() & own.keys()):
            msg = f"{target} has {twice[0]}, as another one has: look through each by itself"
            raise ValueError(msg)
        found |= own
    return found


def _files_of(target: str) -> Iterator[_SourceFile]:
    path = Path(target)
    if path.exists():
        yield from _files_of_path(path.resolve())
        return
    package, *rest = target.split(".")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None:
        msg = f"{target} is neither a path nor an installed package: what is to be looked through?"
        raise ValueError(msg)
    if not spec.submodule_search_locations:
        if spec.origin:
            yield _SourceFile(Path(spec.origin), package, None)
        return
    for location in spec.submodule_search_locations:
        folder = Path(location)
        place = folder.joinpath(*rest)
        files = [place.with_suffix(".py")] if rest and not place.is_dir() else _python_files(place)
        for file in filter(Path.is_file, files):
            yield _SourceFile(file, _module_name(file, folder.parent), None)


def _files_of_path(path: Path) -> Iterator[_SourceFile]:
    """Read a folder or a file; what is imported from is the folder that holds its package."""
    root = path.parent if path.is_file() else path
    while (root / "__init__.py").is_file():
        root = root.parent
    for file in [path] if path.is_file() else _python_files(path):
        name = _module_name(file, root)
        if all(part.isidentifier() for part in name.split(".")):
            yield _SourceFile(file, name, str(root))
        elif path.is_file():
            msg = f"{file} can't be imported: {name} is no name of a module; rename the file"
            raise ValueError(msg)


def _python_files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*.py")):
        between = file.relative_to(folder).parts[:-1]
        hidden = any(part.startswith(".") or part in _NOT_LOOKED_AT for part in between)
        if not hidden and file.name not in _NOT_READ:
            yield file


def _module_name(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _definitions(file: _SourceFile) -> Iterator[_Definition]:
    """Read the classes of a file; of one that is no Python there are none."""
    try:
        tree = ast.parse(file.path.read_bytes())
    except (OSError, *BAD_PYTHON):
        return
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch.nn")
        for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(each) for each in node.bases]
            of_library = any(
                base in imported or base in _BASES or base.rpartition(".")[0] in _LIBRARY
                for base in bases
            )
            names = tuple(base.rpartition(".")[2] for base in bases)
            yield _Definition(file, node.name, names, of_library)


def _modules_among(definitions: list[_Definition]) -> list[_Definition]:
    """Return those that are modules by their bases, or by those of their bases."""
    by_base: defaultdict[str, list[_Definition]] = defaultdict(list)
    for each in definitions:
        for base in each.bases:
            by_base[base].append(each)
    modules = [each for each in definitions if each.is_of_library]
    known = set(map(id, modules))
    unseen = [*modules]
    while unseen:
        for each in by_base[unseen.pop().name]:
            if id(each) not in known:
                known.add(id(each))
                unseen.append(each)
    return [each for each in definitions if id(each) in known]
