"""What of a dictionary of models can't be read in a file's text, so that none is lost silently."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from dynamometer.results.store.reading import BAD_PYTHON, file_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_CHANGES = frozenset({"clear", "pop", "popitem", "setdefault", "update"})
"""Methods of a dictionary after which it holds something else."""


def parsed(path: Path) -> ast.Module:
    """Read a file's text, in the encoding it says it has.

    Raises:
        ValueError: it is no Python.
    """
    try:
        return ast.parse(file_bytes(path), str(path))
    except (OSError, *BAD_PYTHON) as error:
        msg = f"{path} can't be read: {error}"
        raise ValueError(msg) from error


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, also those within `if`, `try` and the like; not of functions, classes."""
    waiting = [*body][::-1]
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        parts = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
        inner = [each for part in (statement, *parts) for each in getattr(part, "body", [])]
        for name in ("orelse", "finalbody"):
            inner += getattr(statement, name, [])
        waiting += inner[::-1]


def assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Yield each name that is assigned plainly, and its value.

    A bare annotation, as `x: int`, has the constant `None`.
    """
    for node in body:
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((each, value) for each in targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                yield target, value or ast.Constant(value=None)


def refuse_unreadable(path: Path, tree: ast.Module, name: str) -> None:
    """Refuse a dictionary of models of which only a part can be read.

    Raises:
        ValueError: it is one; says in which line.
    """
    found = _unreadable(path, tree, name)
    if found is not None:
        msg = (
            f"{path}, line {getattr(found, 'lineno', '?')}: `{ast.unparse(found)[:60]}` can't be"
            " known without running the file. Write all models into one dictionary, with their"
            f' names as text: {name} = {{"first": first}}'
        )
        raise ValueError(msg)


def _unreadable(path: Path, tree: ast.Module, name: str) -> ast.AST | None:
    """Return the first place where a dictionary gets entries that its text doesn't show."""
    values: dict[ast.AST, ast.expr] = dict(assigned(tree.body))
    nodes = list(_in_scope(tree, name))
    changed = {each.target for each in nodes if isinstance(each, ast.AugAssign)}
    stored = [each for each in nodes if _is(each, name) and isinstance(each.ctx, ast.Store)]
    bound = [each for each in stored if each not in changed]
    given = [values.get(each) for each in bound]
    if bound and all(isinstance(each, _NO_TABLE) for each in given):
        return None
    statements = {
        each: node for node in nodes if isinstance(node, _STATEMENTS) for each in ast.walk(node)
    }
    found: list[ast.AST] = []
    for target, value in zip(bound, given, strict=True):
        if isinstance(value, ast.Dict):
            found += _unread_keys(value)
        elif not isinstance(value, _NO_TABLE):
            found.append(statements.get(target, target))
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [node for each in node.names if (each.asname or each.name) == name]
        if isinstance(node, ast.ImportFrom) and not any(
            isinstance(each, ast.Dict) for each in given
        ):
            found += [node for each in node.names if each.name == "*" and _holds(node, name, path)]
    others = _other_names(nodes, name)
    found += [
        node for each in (name, *others) for node in _in_scope(tree, each) if _changes(node, each)
    ]
    return min(found, key=lambda node: getattr(node, "lineno", 0), default=None)


_NO_TABLE = (ast.Constant, ast.List, ast.Tuple, ast.Set)
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (
    *_FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def _in_scope(node: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yield what is in a node, but for functions and such in which a name is another one."""
    waiting = [node]  # text may nest deeper than Python calls do
    while waiting:
        for each in ast.iter_child_nodes(waiting.pop()):
            if not _is_its_own(each, name):
                yield each
                waiting.append(each)


def _is_its_own(node: ast.AST, name: str) -> bool:
    """Return whether a name is one of a function, a class or a comprehension itself."""
    if not isinstance(node, _SCOPES):
        return False
    inside = list(ast.walk(node))
    stored = any(_is(each, name) and isinstance(each.ctx, ast.Store) for each in inside)
    if isinstance(node, _FUNCTIONS):
        if any(isinstance(each, ast.Global) and name in each.names for each in inside):
            return False
        return stored or any(each.arg == name for each in inside if isinstance(each, ast.arg))
    return stored


def _unread_keys(table: ast.Dict) -> Iterator[ast.AST]:
    for key, entry in zip(table.keys, table.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            yield key or entry


def _holds(node: ast.ImportFrom, name: str, path: Path) -> bool:
    """Return whether a file speaks of a name from which another one beside it imports all."""
    file = path.parent.joinpath(*(node.module or "").split(".")).with_suffix(".py")
    return file.is_file() and name.encode() in file_bytes(file)


def _other_names(nodes: Iterable[ast.AST], name: str) -> Iterator[str]:
    """Yield the names that the same dictionary has besides."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value) if _is(value, name) or any(
                _is(each, name) for each in targets
            ):
                names = {each.id for each in targets if isinstance(each, ast.Name)}
                yield from sorted(names - {name})


def _changes(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            return _is(value, name)
        case ast.AugAssign(target=target):
            return _is(target, name)
        case ast.Call(func=ast.Attribute(value=value, attr=attribute)):
            return attribute in _CHANGES and _is(value, name)
    return False


def _is(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name
