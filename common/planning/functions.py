"""Whether there are functions of given names, as far as files say. Nothing is imported."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.errors import UsageError
from dynamometer.results.store.reading import BAD_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec


def refuse_unknown_functions(names: Iterable[str], folders: Sequence[str]) -> None:
    """Refuse functions that there can't be.

    What only running a module would tell, such as what it takes from an extension in C, is let
    pass: the worker that looks it up says so if it is not there.

    Args:
        names: as `MODULE:FUNCTION` or `MODULE:CLASS.METHOD`.
        folders: that are looked into besides the path of this process.

    Raises:
        UsageError: a module has no file, or names nothing that is called so.
    """
    for name in names:
        module, _, path = name.partition(":")
        missing = _missing(module, path, tuple(folders))
        if missing:
            msg = f"there is no function {name}: {missing}"
            raise UsageError(msg)


def _missing(module: str, path: str, folders: tuple[str, ...]) -> str | None:
    """Return what of a name is certain not to be there."""
    parent, _, last = module.rpartition(".")
    if _spec(module, folders) is None:
        if parent and _spec(parent, folders) is None and not _missing(parent, last, folders):
            return None  # whatever its parent is
        is_there = parent and _spec(parent, folders) is not None
        if is_there and (_names(parent, folders).bound or {last}) >= {last}:
            return None  # which has no file of its own, or whose parent has none in Python
        return f"no module named {module!r}"
    names = _names(module, folders)
    first, _, method = path.partition(".")
    if names.are_all and first not in names.bound and _spec(f"{module}.{first}", folders) is None:
        return f"module {module!r} has no {first!r}"
    defined = names.classes.get(first)
    if method and defined and _is_plain(defined):
        own = {each for each, _ in _bound(defined.body)}
        if method.partition(".")[0] not in own:
            return f"class {first!r} of module {module!r} has no {method!r}"
    return None


def _is_plain(node: ast.ClassDef) -> bool:
    """Return whether a class has nothing from elsewhere but what every object has."""
    bases = [
        each for each in node.bases if not (isinstance(each, ast.Name) and each.id == "object")
    ]
    return not (bases or node.keywords or node.decorator_list)


@cache
def _spec(module: str, folders: tuple[str, ...]) -> ModuleSpec | None:
    """Find a module without importing its parents."""
    parent, _, _ = module.rpartition(".")
    if not parent:
        found = PathFinder.find_spec(module, list(folders)) if folders else None
        return found or _found(module, None)
    above = _spec(parent, folders)
    if above is None or above.submodule_search_locations is None:
        return None
    return _found(module, list(above.submodule_search_locations))


def _found(module: str, path: list[str] | None) -> ModuleSpec | None:
    specs = (finder.find_spec(module, path) for finder in sys.meta_path)
    return next(filter(None, specs), None)


@dataclass(frozen=True)
class _Names:
    """What a module binds.

    Attributes:
        bound: names.
        classes: those that are defined there.
        are_all: whether there can be no other.
    """

    bound: frozenset[str] = frozenset()
    classes: Mapping[str, ast.ClassDef] = field(default_factory=dict)
    are_all: bool = False


_MAKES_OTHERS = ("globals()", "vars()", "sys.modules", "setattr(", "exec(", "def __getattr__")
"""What a module's text holds that may bind names otherwise than by statements."""


@cache
def _names(module: str, folders: tuple[str, ...]) -> _Names:
    spec = _spec(module, folders)
    if spec is None or not spec.has_location or not (spec.origin or "").endswith(".py"):
        return _Names()
    text = Path(spec.origin or "").read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
    except BAD_PYTHON:
        return _Names()
    pairs = list(_bound(tree.body))
    bound = {name for name, _ in pairs}
    return _Names(
        bound=frozenset(bound),
        classes={name: node for name, node in pairs if isinstance(node, ast.ClassDef)},
        are_all="*" not in bound and not any(each in text for each in _MAKES_OTHERS),
    )


def _bound(body: Iterable[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Yield each name that statements may bind, with what binds it; `*` where all of a module."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Import() | ast.ImportFrom():
                for each in node.names:
                    yield (each.asname or each.name).partition(".")[0], node
            case ast.Name(ctx=ast.Store()):
                yield node.id, node
            case _:
                yield from _bound(ast.iter_child_nodes(node))
