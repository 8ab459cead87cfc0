"""What the names of a file stand for, read from its text; nothing is run. Pure but for reading."""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dynamometer.models.suites.written_tables import statements
from dynamometer.results.store.reading import BAD_PYTHON, opened

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Imported:
    """A module, or what one holds under a name.

    Attributes:
        parts: of the module's name.
        name: in the module; `None` of the module itself.
        level: how many dots stand before its name.
    """

    parts: tuple[str, ...]
    name: str | None = None
    level: int = 0


@dataclass(frozen=True)
class Definition:
    """A class; of its file's text no more is kept than is needed.

    Attributes:
        name: that it is given.
        bases: expressions for them.
        within: the functions and classes around it.
    """

    name: str
    bases: tuple[ast.expr, ...]
    within: tuple[str, ...] = ()


Binding = Definition | ast.expr | Imported | None
"""A class, an expression, an import; `None` of what is no class, or says nothing of it."""


@dataclass(frozen=True)
class Scope:
    """The names of a file.

    Attributes:
        bound: what each may stand for: either branch of an `if` or a `try` is taken.
        stars: modules that all names are imported from.
        classes: those that can be imported from it, by name.
        inner: those within functions and classes, by all their names.
        local: the names of each function and class, by its own and those around it.
        class_bodies: those of `local` that are classes.
    """

    bound: dict[str, list[Binding]] = field(default_factory=lambda: defaultdict(list))
    stars: list[Imported] = field(default_factory=list)
    classes: dict[str, list[Definition]] = field(default_factory=lambda: defaultdict(list))
    inner: dict[str, Definition] = field(default_factory=dict)
    local: dict[tuple[str, ...], dict[str, list[Binding]]] = field(default_factory=dict)
    class_bodies: set[tuple[str, ...]] = field(default_factory=set)

    def names(self, within: tuple[str, ...]) -> dict[str, list[Binding]]:
        """Return those of a function or class, or of the file itself, to be added to."""
        if not within:
            return self.bound
        return self.local.setdefault(within, defaultdict(list))

    def bindings(self, name: str, within: tuple[str, ...]) -> list[Binding] | None:
        """Return what a name may stand for in a function or class; `None` if nothing says so.

        Names of a class are seen in its body alone, not in what that holds.
        """
        for length in range(len(within), 0, -1):
            around = within[:length]
            own = self.local.get(around, {})
            if name in own and (around == within or around not in self.class_bodies):
                return own[name]
        return self.bound.get(name)


def scope_of(path: Path) -> Scope:
    """Read a file.

    Raises:
        ValueError: it can't be read, or is no Python; says why.
    """
    try:
        with opened(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a project's text is warned of is not ours
            tree = ast.parse(file.read())
    except (OSError, *BAD_PYTHON) as error:
        msg = f"{type(error).__name__}: {error}"
        raise ValueError(msg) from error
    scope = Scope()
    for statement in statements(tree.body):
        _bind(scope, statement)
    return scope


def _bind(scope: Scope, statement: ast.stmt, within: tuple[str, ...] = ()) -> None:
    bound = scope.names(within)
    match statement:
        case ast.ClassDef(name=name):
            found = Definition(name, tuple(statement.bases), within)
            bound[name].append(found)
            if within:
                scope.inner[".".join((*within, name))] = found
            else:
                scope.classes[name].append(found)
            _bind_all(scope, statement, within)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            bound[name].append(None)
            _bind_all(scope, statement, within)
        case ast.Import(names=names):
            for alias in names:
                parts = tuple(alias.name.split("."))
                kept = parts if alias.asname else parts[:1]
                bound[alias.asname or parts[0]].append(Imported(kept))
        case ast.ImportFrom():
            _bind_names(scope, statement, within)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _assign(bound, target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            _assign(bound, target, value)


def _bind_all(
    scope: Scope,
    outer: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
    within: tuple[str, ...],
) -> None:
    """Bind the names of a function or class, and of all that it holds."""
    inside = (*within, outer.name)
    if isinstance(outer, ast.ClassDef):
        scope.class_bodies.add(inside)
    else:
        given = outer.args
        named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        for each in filter(None, named):
            scope.names(inside)[each.arg].append(None)
    for statement in statements(outer.body):
        _bind(scope, statement, inside)


def _bind_names(scope: Scope, statement: ast.ImportFrom, within: tuple[str, ...]) -> None:
    parts = tuple(statement.module.split(".")) if statement.module else ()
    for alias in statement.names:
        found = Imported(parts, alias.name, statement.level)
        if alias.name == "*":
            scope.stars.append(found)
        else:
            scope.names(within)[alias.asname or alias.name].append(found)


def _assign(bound: dict[str, list[Binding]], target: ast.expr, value: ast.expr) -> None:
    """Bind a name to an expression, or several at once to what says nothing."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            is_alone = node is target
            bound[node.id].append(_kept(value) if is_alone else None)


def _kept(value: ast.expr) -> ast.expr | None:
    """Return what of an expression may say that it is a class."""
    match value:
        case ast.Call(func=function):
            return ast.Call(function, [], [])
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.IfExp() | ast.BoolOp():
            return value
    return None
