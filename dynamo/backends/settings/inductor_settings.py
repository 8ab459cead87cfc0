"""Inductor's settings, and what its modes set, read from torch's files. No torch."""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.settings.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TYPES = {each.__name__: each for each in (bool, int, float, str)}


@cache
def settings() -> Mapping[str, Values]:
    """Return Inductor's settings by their names; none where its file is elsewhere."""
    return dict(_settings(_parsed("config.py")))


@cache
def modes() -> Mapping[str, Mapping[str, Any]]:
    """Return what each mode of `torch.compile` sets, as far as the file says it plainly."""
    for node in ast.walk(ast.Module(_parsed("__init__.py"), [])):
        if isinstance(node, ast.FunctionDef) and node.name == "list_mode_options":
            for inner in ast.walk(node):
                match inner:
                    case (
                        ast.Assign(targets=[ast.Name(id="mode_options")], value=ast.Dict() as found)
                        | ast.AnnAssign(
                            target=ast.Name(id="mode_options"), value=ast.Dict() as found
                        )
                    ):
                        return dict(_modes(found))
    return {}


def _parsed(name: str) -> list[ast.stmt]:
    """Return what a file of Inductor's says; nothing if there is none."""
    spec = find_spec("torch")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "_inductor", name)
        if path.is_file():
            return ast.parse(path.read_text(encoding="utf-8")).body
    return []


def _modes(found: ast.Dict) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, value in zip(found.keys, found.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Dict):
            for settings in _constant(value):
                yield str(key.value), settings


def _settings(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Values]]:
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield prefix + name, Values(_types_of_default(value), default=_constant(value))
            case ast.AnnAssign(target=ast.Name(id=name), annotation=said, value=value):
                yield prefix + name, _annotated(said, value)
            case ast.ClassDef(name=name, bases=bases):
                named = [each.id for each in bases if isinstance(each, ast.Name)]
                above = [classes[each] for each in named if each in classes]
                for each in (*above, node):  # what a class says itself counts
                    yield from _settings(each.body, f"{prefix}{name}.")
            case _:
                pass


def _annotated(said: ast.expr, value: ast.expr | None) -> Values:
    parts = list(_alternatives(said))
    default = _constant(value) if value else ()
    words = [_choices(each) for each in parts if not _is_none(each)]
    if words and all(words):
        choices = (*(each for some in words for each in some), *(None,) * any(map(_is_none, parts)))
        return Values((), choices, default)
    types = [_type(each) for each in parts]
    return Values(tuple(each for each in types if each) if all(types) else (), (), default)


def _alternatives(said: ast.expr) -> Iterator[ast.expr]:
    """Yield the types of a union."""
    match said:
        case ast.Constant(value=str(text)):
            try:
                inside = ast.parse(text, mode="eval").body
            except SyntaxError:  # it is no type that is known here
                yield said
            else:
                yield from _alternatives(inside)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from (*_alternatives(left), *_alternatives(right))
        case ast.Subscript(value=of, slice=inside) if ast.unparse(of).endswith("Optional"):
            yield from (*_alternatives(inside), ast.Constant(None))
        case _:
            yield said


def _is_none(said: ast.expr) -> bool:
    return isinstance(said, ast.Constant) and said.value is None


def _type(said: ast.expr) -> type | None:
    if _is_none(said):
        return type(None)
    return _TYPES.get(said.id) if isinstance(said, ast.Name) else None


def _choices(said: ast.expr) -> tuple[Any, ...]:
    match said:
        case ast.Subscript(value=of, slice=inside) if ast.unparse(of).endswith("Literal"):
            for found in _constant(inside):
                return found if isinstance(found, tuple) else (found,)
    return ()


def _constant(value: ast.expr) -> tuple[Any, ...]:
    """Return a value that is written plainly; nothing where it depends on something."""
    try:
        return (ast.literal_eval(value),)
    except (ValueError, TypeError, SyntaxError):
        return ()


def _types_of_default(value: ast.expr) -> tuple[type, ...]:
    """Return which type a setting without an annotation has; nothing where that isn't plain."""
    match value:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return (bool,)
        case ast.Call(func=ast.Name(id=name)) if name in _TYPES:
            return (_TYPES[name],)
        case ast.Call(func=ast.Attribute(attr="upper" | "lower")):
            return (str,)
        case ast.BoolOp(values=values):
            types = {_types_of_default(each) for each in values}
            return types.pop() if len(types) == 1 else ()
    constant = _constant(value)
    return (type(constant[0]),) if constant and type(constant[0]) in _TYPES.values() else ()
