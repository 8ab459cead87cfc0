"""What of a dictionary of models can't be read in a file's text, so that none is lost silently."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import file_bytes

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
        return ast.parse(file_bytes(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        msg = f"{path} can't be read: {error}"
        raise ValueError(msg) from error


def refuse_unreadable(path: Path, tree: ast.Module, name: str) -> None:
    """Refuse a dictionary of models of which only a part can be read.

    Raises:
        ValueError: it is one; says in which line.
    """
    found = _unreadable(tree, name)
    if found is not None:
        msg = (
            f"{path}, line {getattr(found, 'lineno', '?')}: `{ast.unparse(found)[:60]}` can't be"
            " known without running the file. Write all models into one dictionary, with their"
            f' names as text: {name} = {{"first": first}}'
        )
        raise ValueError(msg)


def _unreadable(tree: ast.Module, name: str) -> ast.AST | None:
    """Return the first place where a dictionary gets entries that its text doesn't show."""
    top = {id(node) for node in tree.body}
    found = [
        *(each for node in _outside_functions(tree.body)
          for each in _assigned_unread(node, name, is_at_top=id(node) in top)),
        *(node for node in ast.walk(tree) if _changes(node, name)),
    ]  # fmt: skip
    return min(found, key=lambda node: getattr(node, "lineno", 0), default=None)


def _outside_functions(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _outside_functions(
                each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)
            )


def _assigned_unread(node: ast.stmt, name: str, *, is_at_top: bool) -> Iterator[ast.AST]:
    """Yield what of a statement that gives the name a value isn't read."""
    value: ast.expr | None = None
    match node:
        case ast.Assign(targets=targets) if any(_is(each, name) for each in targets):
            value = node.value
        case ast.AnnAssign(target=target) if _is(target, name):
            value = node.value
        case ast.AugAssign(target=target) if _is(target, name):
            yield node
        case ast.ImportFrom() if any((each.asname or each.name) == name for each in node.names):
            yield node
    if isinstance(value, ast.Dict) and is_at_top:
        for key, entry in zip(value.keys, value.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                yield key or entry
    elif value is not None:
        yield node


def _changes(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            return _is(value, name)
        case ast.Call(func=ast.Attribute(value=value, attr=attribute)):
            return attribute in _CHANGES and _is(value, name)
    return False


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
