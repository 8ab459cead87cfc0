"""Whether a class is a module, by its bases; nothing is imported.

Names are looked up as Python does: in the file, in what it imports, in the files of that. So a name
means what it means in its file, and a base of an installed package is known as well as one of the
project.
"""

from __future__ import annotations

import ast
import builtins
import sys
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING

from dynamometer.models.parity.source.files import installed_in, located
from dynamometer.models.parity.source.scopes import Definition, Imported, Scope, scope_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from dynamometer.models.parity.source.scopes import Binding

_TORCH = "torch"
_PYTHONS_OWN = sys.stdlib_module_names | {"typing_extensions"}
"""Modules of which no class is a module; the last holds what later versions of Python do."""
_MODULE = ("Module", ("torch", "nn", "modules", "module.py"))
"""The class that is a module by itself, and where its file ends."""


class Kind(IntEnum):
    """What a class is; of several bases the greatest counts."""

    PLAIN = 0
    """No module."""
    UNKNOWN = 1
    """Only importing it tells."""
    MODULE = 2


@dataclass(frozen=True)
class Place:
    """What names are looked up in: a file, or a function or class in it.

    Attributes:
        path: of the file.
        folders: that it imports from before what is installed.
        within: the function or class, and those around it.
    """

    path: Path
    folders: tuple[Path, ...]
    within: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bases:
    """Tells of classes what they are; keeps what it has read of files, or why it could not."""

    _scopes: dict[Path, Scope | str] = field(default_factory=dict)

    def kind_of(self, node: Definition, place: Place) -> Kind:
        """Return what a class is.

        Args:
            node: its definition.
            place: the file it is in.
        """
        try:
            return _Lookup(self).of_class(node, place)
        except RecursionError:
            return Kind.UNKNOWN

    def scope(self, path: Path) -> Scope | str:
        """Return the names of a file, or why it can't be read."""
        if path not in self._scopes:
            try:
                self._scopes[path] = scope_of(path)
            except ValueError as error:
                self._scopes[path] = str(error)
        return self._scopes[path]


@dataclass(frozen=True)
class _Lookup:
    """One question; nothing is looked up twice for it, as imports go in circles."""

    bases: Bases
    seen: set[tuple[Place, tuple[str, ...]]] = field(default_factory=set)

    def of_class(self, node: Definition, place: Place) -> Kind:
        name, ending = _MODULE
        if node.name == name and place.path.parts[-len(ending) :] == ending:
            return Kind.MODULE
        own = replace(place, within=node.within)
        return _greatest(self.of_expression(each, own) for each in node.bases)

    def of_expression(self, value: ast.expr, place: Place) -> Kind:
        """Return what the class is that an expression gives."""
        match value:
            case ast.Subscript(value=inner):
                return self.of_expression(inner, place)
            case ast.IfExp(body=one, orelse=other):
                return max(self.of_expression(one, place), self.of_expression(other, place))
            case ast.BoolOp(values=values):
                return _greatest(self.of_expression(each, place) for each in values)
            case ast.Call(func=ast.Name(id=name)) if hasattr(builtins, name):
                return Kind.UNKNOWN
            case ast.Call(func=function):  # of the standard library, such as `namedtuple`, or any
                return min(self.of_expression(function, place), Kind.UNKNOWN)
        parts = _parts(value)
        return self.of_name(parts, place) if parts else Kind.UNKNOWN

    def of_name(self, parts: tuple[str, ...], place: Place) -> Kind:
        """Return what the class of a dotted name is, as a file means it."""
        scope = self.bases.scope(place.path)
        if isinstance(scope, str):
            return Kind.UNKNOWN
        if (place, parts) in self.seen:
            return Kind.PLAIN
        self.seen.add((place, parts))
        head, rest = parts[0], parts[1:]
        bindings = scope.bindings(head, place.within)
        if bindings is not None:
            return _greatest(self._of_binding(each, rest, place) for each in bindings)
        if hasattr(builtins, head):
            return Kind.PLAIN
        stars = [self._of_import(each, parts, place) for each in scope.stars]
        return _greatest(stars or [Kind.UNKNOWN])

    def _of_binding(self, binding: Binding, rest: tuple[str, ...], place: Place) -> Kind:
        match binding:
            case Definition() if not rest:
                return self.of_class(binding, place)
            case Imported(name=None):
                return self._of_import(binding, rest, place)
            case Imported(name=str() as name):
                return self._of_import(binding, (name, *rest), place)
            case ast.expr() if not rest:
                return self.of_expression(binding, place)
            case ast.expr() if parts := _parts(binding):
                return self.of_name((*parts, *rest), place)
        return Kind.UNKNOWN

    def _of_import(self, found: Imported, names: tuple[str, ...], place: Place) -> Kind:
        """Return what the class is that a module holds under a name, or one of its modules."""
        if found.level:
            above = place.path.parents
            folder = above[min(found.level, len(above)) - 1]
            return self._in_module(found.parts, names, (folder,), place)
        top = found.parts[0]
        folders = _imported_from(top, place.folders)
        if not folders and top in _PYTHONS_OWN:
            return Kind.PLAIN
        kind = self._in_module(found.parts, names, folders, place)
        # What torch makes in C++, or as it is imported, is no module.
        is_torchs = top == _TORCH and folders == _installed_in(top) != ()
        return Kind.PLAIN if is_torchs and kind is Kind.UNKNOWN else kind

    def _in_module(
        self,
        parts: tuple[str, ...],
        names: tuple[str, ...],
        folders: tuple[Path, ...],
        place: Place,
    ) -> Kind:
        path = located(parts, folders)
        if path is None or not names:
            return Kind.UNKNOWN
        found = Kind.UNKNOWN
        if path.is_file():
            found = self.of_name(names, Place(path, place.folders))
        # What a package doesn't say is in a module that it holds.
        inner, rest = (*parts, names[0]), names[1:]
        if found is not Kind.MODULE and rest and located(inner, folders) is not None:
            found = self._in_module(inner, rest, folders, place)
        return found


_installed_in = cache(installed_in)


def _imported_from(top: str, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders that hold a package or module, in the order that Python looks them up.

    Args:
        top: its name.
        folders: of the project; the first comes before what is installed, the others after that.
            A folder without code of its own comes last.
    """
    first, others = folders[:1], folders[1:]
    if _holds(top, first):
        return first
    if top in _PYTHONS_OWN:
        return ()
    if found := _installed_in(top):
        return found
    return next((folder for folder in (others, folders) if _holds(top, folder)), folders)


def _holds(top: str, folders: tuple[Path, ...]) -> bool:
    found = located((top,), folders)
    return found is not None and found.is_file()


def _greatest(kinds: Iterable[Kind]) -> Kind:
    """Return the greatest; none after a module is looked at."""
    greatest = Kind.PLAIN
    for kind in kinds:
        greatest = max(greatest, kind)
        if greatest is Kind.MODULE:
            break
    return greatest


def _parts(value: ast.expr) -> tuple[str, ...]:
    """Return the parts of a dotted name; none of anything else."""
    match value:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=inner, attr=name) if parts := _parts(inner):
            return (*parts, name)
    return ()
