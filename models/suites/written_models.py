"""Which functions and dictionaries of a user's file build models, read from its text.

Nothing is imported: a file may do anything.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, TypeGuard

from dynamometer.models.suites.written_tables import assigned, parsed, refuse_unreadable, statements
from dynamometer.results.listing import first_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Sizes = dict[str, int | None]
"""Builders, each with the default of its argument `batch_size`; `None` where it has no number."""

_USUAL_TABLE = "MODELS"
_BATCH_SIZE = "batch_size"

_NOT_WRITTEN = (
    "what is not written as `def`, such as a lambda or a partial, is taken from a dictionary:"
    ' MODELS = {{"{name}": {name}}}, which takes the place of the functions'
)

_HELPERS = "as the file calls them itself, or by their names"

_EXAMPLE = "def example(): return {model}, (torch.randn(2, 3),)"


def builders(path: Path, name: str) -> Sizes:
    """Return the models of a file that are wanted.

    Args:
        path: of the file.
        name: the only function, dictionary or model of `MODELS` that is wanted; empty for all
            functions but helpers, as those that begin with an underscore, or for the dictionary
            `MODELS` where there is one.

    Raises:
        ValueError: the file can't be parsed, or doesn't hold what was named.
    """
    written = _written(path)
    table = written.table(name)
    if table is None and name in written.functions:
        return {name: written.functions[name]}
    refuse_unreadable(path, written.tree, name if name in written.tables else _USUAL_TABLE)
    if table is not None:
        found = written.tables[table]
        return found if name in {"", table} else {name: found[name]}
    public = written.public
    if name:
        models = {**public, **written.tables, **written.tables.get(_USUAL_TABLE, {})}
        known = ", ".join(sorted(models.keys() - {_USUAL_TABLE})) or "none"
        msg = (
            f"{path} has no model {name!r}, which is a function that needs no arguments"
            " or a dictionary of them, or a model of MODELS;"
            f" it has: {known}{_advice(written.tree, name)}"
        )
        raise ValueError(msg)
    if not public and written.helpers:
        helper = next(iter(written.helpers))
        msg = (
            f"{path} has no function that could build a model but {first_of([*written.helpers])},"
            f" {_HELPERS}; to run one, name it: {path}::{helper}"
        )
        raise ValueError(msg)
    if not public:
        likely = _class(written.tree) or next(iter(written.uncallable), "")
        advice = _advice(written.tree, likely)
        msg = (
            f"{path} has no function without arguments that could build a model"
            f"{advice or '; ' + _NOT_WRITTEN.format(name='name')}"
        )
        raise ValueError(msg)
    return public


def left_out(path: Path) -> tuple[str, ...]:
    """Say which functions aren't run with a file: what `MODELS` lacks, or what is no model.

    Of those that `MODELS` lacks or that need arguments, not those that the file makes use of.

    Raises:
        ValueError: the file can't be parsed.
    """
    written = _written(path)
    used = {
        each.id
        for each in ast.walk(written.tree)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    if _USUAL_TABLE not in written.tables:
        needing = [
            f"{name} ({why})" for name, why in written.uncallable.items() if name not in used
        ]
        told = f"{path} has functions that are no models, as they take arguments or are async"
        how = "one without arguments can return what they make"
        notes = [f"{told}: {first_of(needing)}; {how}"] if needing else []
        if helpers := [*written.helpers]:
            told = f"{path} has functions that are taken for no models, {_HELPERS}"
            notes.append(f"{told}: {first_of(helpers)}; to run one, name it: {path}::{helpers[0]}")
        return tuple(notes)
    names = [each for each in written.public if each not in used]
    if not names:
        return ()
    told = f"{_USUAL_TABLE} takes the place of the functions of {path}, of which it leaves out"
    return (f"{told} {len(names)}: {first_of(names)}; to run one, name it: {path}::{names[0]}",)


def table_of(path: Path, name: str) -> str | None:
    """Return the dictionary that a name stands for, or a model is of; `None` where there is none.

    Raises:
        ValueError: the file can't be parsed.
    """
    return _written(path).table(name)


@dataclass(frozen=True)
class _Written:
    """What a file holds.

    Attributes:
        tree: its text.
        functions: those that need no arguments.
        tables: its dictionaries.
    """

    tree: ast.Module
    functions: Sizes
    tables: dict[str, Sizes]

    @property
    def public(self) -> Sizes:
        """Those of the functions whose names don't begin with an underscore, but for helpers."""
        helpers = {each for each in self.functions if each.startswith("_")} | self.helpers.keys()
        return {each: size for each, size in self.functions.items() if each not in helpers}

    @property
    def helpers(self) -> Sizes:
        """Those that the file calls as it is imported, or that are named as of a script or test."""
        called = _called_on_import(self.tree)
        return {
            each: size
            for each, size in self.functions.items()
            if not each.startswith("_")
            and (each == "main" or each.startswith("test_") or each in called)
        }

    @property
    def uncallable(self) -> dict[str, str]:
        """Other functions, without an underscore, each with the arguments it needs, or `async`.

        None that is decorated, as decorators may give arguments, or take the function elsewhere.
        """
        return {
            name: "async" if isinstance(node, ast.AsyncFunctionDef) else ", ".join(needed)
            for name, node in _functions(self.tree).items()
            if not (name.startswith("_") or node.decorator_list)
            and ((needed := _required(node.args)) or isinstance(node, ast.AsyncFunctionDef))
        }

    def table(self, name: str) -> str | None:
        """Return the dictionary that a name stands for, or a model is of, if there is one."""
        is_of_usual = name in {"", *self.tables.get(_USUAL_TABLE, {})}
        if name in self.functions and not is_of_usual:
            return None
        wanted = _USUAL_TABLE if is_of_usual and name not in self.tables else name
        return wanted if wanted in self.tables else None


@dataclass(frozen=True)
class _Parameters:
    """What a function can be given.

    Attributes:
        positional: names of what may come by position, in order.
        defaults: what may come by name and has a default.
    """

    positional: tuple[str, ...] = ()
    defaults: Mapping[str, ast.expr] = field(default_factory=dict)

    @property
    def batch_size(self) -> int | None:
        """The default of an argument `batch_size`, if that is a number."""
        found = self.defaults.get(_BATCH_SIZE)
        value = found.value if isinstance(found, ast.Constant) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def given(self, count: int, named: Mapping[str, ast.expr]) -> _Parameters:
        """Return what is left of them, as of a partial, where some are given beforehand."""
        gone = self.positional[:count]
        left = {name: each for name, each in self.defaults.items() if name not in gone}
        return _Parameters(self.positional[count:], {**left, **named})


def _written(path: Path) -> _Written:
    tree = parsed(path)
    body = _run_on_import(tree)
    known = _callables(body)
    functions = {
        name: known[name].batch_size
        for name, node in _functions(tree).items()
        if isinstance(node, ast.FunctionDef) and not _required(node.args)
    }
    tables = {
        target.id: _entries(value, known)
        for target, value in assigned(tree.body)
        if isinstance(value, ast.Dict)
    }
    return _Written(tree, functions, tables)


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions of a file; of several of one name the last."""
    return {
        node.name: node
        for node in _run_on_import(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _run_on_import(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that importing a file may run, also those within `if` and the like."""
    return [*statements(_outermost(tree))]


def _outermost(tree: ast.Module) -> list[ast.stmt]:
    """Return the outermost statements of a file, without those of a script."""
    outer = (each.orelse if _is_of_script(each) else [each] for each in tree.body)
    return [*chain.from_iterable(outer)]


def _called_on_import(tree: ast.Module) -> set[str]:
    """Return the names that a file calls by itself, outside of functions and classes."""
    found: set[str] = set()
    waiting: list[ast.AST] = [*_outermost(tree)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(node.func.id)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += node.decorator_list
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


def _is_of_script(node: ast.stmt) -> TypeGuard[ast.If]:
    """Return whether a statement begins with `if __name__ == "__main__"`, either side first."""
    match node:
        case ast.If(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            return "__name__" in {getattr(each, "id", None) for each in (left, right)}
    return False


def _callables(body: Iterable[ast.stmt]) -> dict[str, _Parameters]:
    """Return what the functions of a file can be given, also those that are not written as `def`.

    Of several of one name the last counts.
    """
    known: dict[str, _Parameters] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            known[node.name] = _parameters(node.args)
        for target, value in assigned([node]):
            known[target.id] = _parameters_of(value, known)
    return known


def _entries(table: ast.Dict, known: Mapping[str, _Parameters]) -> Sizes:
    return {
        key.value: _parameters_of(value, known).batch_size
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _parameters_of(value: ast.expr, known: Mapping[str, _Parameters]) -> _Parameters:
    """Return what an expression can be given if it is a function; nothing where that isn't told."""
    match value:
        case ast.Name(id=name):
            return known.get(name, _Parameters())
        case ast.Lambda(args=arguments):
            return _parameters(arguments)
        case ast.Call(
            func=ast.Name(id="partial") | ast.Attribute(attr="partial"),
            args=[function, *given],
            keywords=keywords,
        ):
            named = {each.arg: each.value for each in keywords if each.arg is not None}
            is_told = len(named) == len(keywords) and not any(
                isinstance(each, ast.Starred) for each in (function, *given)
            )
            found = _parameters_of(function, known) if is_told else _Parameters()
            return found.given(len(given), named if is_told else {})
    return _Parameters()


def _parameters(arguments: ast.arguments) -> _Parameters:
    """Return what a function can be given; what comes by position alone has no default here."""
    pairs = [
        *zip(arguments.args[::-1], arguments.defaults[::-1], strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return _Parameters(
        positional=tuple(each.arg for each in (*arguments.posonlyargs, *arguments.args)),
        defaults={argument.arg: default for argument, default in pairs if default is not None},
    )


def _required(arguments: ast.arguments) -> list[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    needed = positional[: len(positional) - len(arguments.defaults)]
    return [each.arg for each in (*needed, *(each for each, default in named if default is None))]


def _class(tree: ast.Module) -> str | None:
    """Return the name of the last class of a file, but for those that begin with an underscore."""
    classes = [each.name for each in _run_on_import(tree) if isinstance(each, ast.ClassDef)]
    return next((each for each in reversed(classes) if not each.startswith("_")), None)


def _advice(tree: ast.Module, name: str) -> str:
    """Return what to do about a name that a file holds, and that builds no model as it stands."""
    for node in _run_on_import(tree):
        match node:
            case ast.FunctionDef(name=found) if found == name and (needed := _required(node.args)):
                return (
                    f". {name} takes arguments ({', '.join(needed)}): a function without says with"
                    f" which, such as `{_EXAMPLE.format(model=name)}`"
                )
            case ast.ClassDef(name=found) if found == name:
                return (
                    f". {name} is a class: a function makes one and says what it is called with,"
                    f" such as `{_EXAMPLE.format(model=f'{name}()')}`"
                )
            case ast.AsyncFunctionDef(name=found) if found == name:
                return f". {name} is async, so that calling it builds nothing"
    if any(name == target.id for target, _ in assigned(tree.body)):
        return f"; {_NOT_WRITTEN.format(name=name)}"
    return ""
