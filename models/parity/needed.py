"""Which statements of a file some of its names need: those that define one, and change it. Pure."""

from __future__ import annotations

import ast
import collections.abc
import symtable
import sys
from collections import defaultdict
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ALWAYS = "*"
"""In the place of the name of what is needed whatever is asked for: all that is imported by a star,
and what changes torch, or where to import from."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.Lambda)
_IMPORTS = (ast.Import, ast.ImportFrom)
_OF_TORCH = frozenset((
    "torch", "torch.autograd", "torch.distributions", "torch.nn", "torch.nn.functional",
    "torch.nn.init", "torch.nn.modules", "torch.nn.parameter", "torch.nn.utils", "torch.optim",
    "torch.utils.checkpoint", "torch.utils.data",
))  # fmt: skip
"""What every torch has had for long."""
_WAS_IN_SIX = {
    "container_abcs": "__import__('collections.abc').abc",
    "inf": "float('inf')",
    "int_classes": "int",
    "nan": "float('nan')",
    "string_classes": "(str, bytes)",
}
"""What `torch._six` has held; `absent.py` has the same for runs."""
_PARTS_OF_PYTHON = frozenset((
    "collections.abc", "concurrent.futures", "importlib.metadata", "importlib.util",
    "logging.handlers", "multiprocessing.pool", "os.path", "unittest.mock", "urllib.parse",
    "urllib.request", "xml.etree", "xml.etree.ElementTree",
))  # fmt: skip
"""Modules of Python's own packages, which have had them for long."""
_CHANGING_METHODS = frozenset((
    "append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault",
    "sort", "update",
))  # fmt: skip
_CHANGE_NOTHING = frozenset({"print"})
_FIXED = (
    ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.expr_context,
)  # fmt: skip
"""What a value is made of that nothing can change."""


@dataclass(frozen=True)
class _Statement:
    """A statement of a file, or the part of an import that gives one name.

    Attributes:
        place: its number in the file, to keep the order.
        node: what is written.
    """

    place: tuple[int, int]
    node: ast.stmt

    @cached_property
    def names(self) -> _Names:
        """The file's names that it speaks of."""
        return _names(self.node)

    @property
    def is_import(self) -> bool:
        """Whether what it defines is another file's."""
        return isinstance(self.node, _IMPORTS)

    @property
    def is_definition(self) -> bool:
        """Whether it defines what may be called."""
        return isinstance(self.node, (*_FUNCTIONS, ast.ClassDef))

    @property
    def is_fixed(self) -> bool:
        """Whether what it defines can't be changed, such as a number."""
        match self.node:
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return all(isinstance(each, _FIXED) for each in ast.walk(value))
        return False

    @property
    def globals(self) -> list[str]:
        """The names that functions in it say they set."""
        found = (each.names for each in ast.walk(self.node) if isinstance(each, ast.Global))
        return [name for names in found for name in names]


@dataclass(frozen=True)
class _Names:
    """The names of a file that a statement speaks of.

    Attributes:
        bound: what it defines.
        used: what it needs, whatever becomes of it later.
        there: what it needs to be there, as it puts something into it.
    """

    bound: frozenset[str]
    used: frozenset[str]
    there: frozenset[str] = frozenset()


def needed(
    body: Iterable[ast.stmt], wanted: Iterable[str], apart: Iterable[str] = ()
) -> list[ast.stmt]:
    """Return what defines and changes some names, and what that needs in turn, in order.

    What a statement changes is what it assigns an attribute or an entry of, what it calls a method
    of, gives to a function, or decorates with; where it uses what a call gives, what such a call
    surely changes. What only puts something into a table, such as a
    decorator that registers, does not need what others have put there.

    Args:
        body: the statements of the file.
        wanted: names that are needed.
        apart: modules whose imports are left out.
    """
    found = _Statements(list(_statements(body, frozenset(apart))))
    chosen: dict[tuple[int, int], ast.stmt] = {}
    seen = set[tuple[str, bool]]()
    waiting = [(name, True) for name in (ALWAYS, *wanted)]
    while waiting:
        name, whole = waiting.pop()
        if {(name, whole), (name, True)} & seen:
            continue
        seen.add((name, whole))
        for each in (*found.binding[name], *(found.changing[name] if whole else ())):
            chosen[each.place] = each.node
            waiting += [(used, whole) for used in each.names.used]
            waiting += [(there, False) for there in each.names.there]
    return [chosen[place] for place in sorted(chosen)]


def guarded(statement: ast.stmt, absent: str) -> ast.stmt:
    """Return an import that leaves something in the place of what isn't there.

    Other statements, and imports of torch and of what comes with Python, stay as they are.

    Args:
        statement: of a file.
        absent: what is called with a name to stand for it.
    """
    if isinstance(statement, ast.ImportFrom):
        statement = ast.fix_missing_locations(_moved(statement))
    if not isinstance(statement, _IMPORTS) or _is_there(statement):
        return statement
    (alias,) = statement.names
    bound = _bound(alias)
    instead: ast.stmt = ast.Pass()
    if alias.name != ALWAYS and bound != "torch":
        stand_in = ast.Call(ast.Name(absent, ast.Load()), [ast.Constant(bound)], [])
        instead = ast.Assign([ast.Name(bound, ast.Store())], stand_in)
    if isinstance(statement, ast.Import) and not alias.asname and "." in alias.name:
        # The package itself may be there.
        instead = _or_else(ast.Import([ast.alias(bound)]), instead)
    return ast.fix_missing_locations(_or_else(statement, instead))


def _or_else(statement: ast.stmt, instead: ast.stmt) -> ast.stmt:
    handler = ast.ExceptHandler(ast.Name("ImportError", ast.Load()), None, [instead])
    return ast.Try([statement], [handler], [], [])


def _module(statement: ast.Import | ast.ImportFrom) -> str:
    if isinstance(statement, ast.ImportFrom):
        return f"{'.' * statement.level}{statement.module or ''}"
    return statement.names[0].name


def _is_there(statement: ast.Import | ast.ImportFrom) -> bool:
    module = _module(statement)
    package, dot, _ = module.partition(".")
    is_pythons_own = package in sys.stdlib_module_names
    return module in _OF_TORCH or (is_pythons_own and (not dot or module in _PARTS_OF_PYTHON))


def _moved(statement: ast.ImportFrom) -> ast.stmt:
    """Return an import of one name from where that is by now, or what it was."""
    (alias,) = statement.names
    if statement.module == "collections" and alias.name in collections.abc.__all__:
        return ast.ImportFrom("collections.abc", [alias], 0)
    if statement.module == "torch._six" and alias.name in _WAS_IN_SIX:
        target = ast.Name(_bound(alias), ast.Store())
        return ast.Assign([target], ast.parse(_WAS_IN_SIX[alias.name], mode="eval").body)
    return statement


def names_used(node: ast.AST) -> frozenset[str]:
    """Return the file's names that a node speaks of."""
    return _compiled_names(node).used


def names_bound(body: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the names that statements define."""
    return frozenset[str]().union(*(_compiled_names(each).bound for each in body))


class _Statements:
    """The statements of a file, by the names that they define and change."""

    def __init__(self, statements: Sequence[_Statement]) -> None:
        """Look up what each does."""
        self.binding: defaultdict[str, list[_Statement]] = defaultdict(list)
        self.changing: defaultdict[str, list[_Statement]] = defaultdict(list)
        for each in statements:
            for name in each.names.bound:
                self.binding[name].append(each)
        for each in statements:
            for name in self._changed(each):
                self.changing[name].append(each)

    def _changed(self, statement: _Statement) -> Iterator[str]:
        for node in _run_at_once(statement.node):
            match node:
                case (
                    ast.Subscript(ctx=ast.Store() | ast.Del())
                    | ast.Attribute(ctx=ast.Store() | ast.Del())
                ):
                    yield from self._at(node)
                case ast.Name(id=name, ctx=ast.Del()):
                    yield name
                case ast.Expr(value=ast.Call() as call):
                    yield from self._by_call(call)
                case ast.Call():
                    yield from self._by_part(node)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    for each in node.decorator_list:
                        yield from self._by_decorator(each)
                case _:
                    pass

    def _at(self, place: ast.expr) -> Iterator[str]:
        """Yield what is changed where something is written to, or a method is called."""
        name = _base(place)
        if name is None:
            return
        yield name
        if self._is_of_torch(name) or ast.unparse(place).startswith("sys.path"):
            yield ALWAYS

    def _by_call(self, call: ast.Call) -> Iterator[str]:
        if isinstance(call.func, ast.Name):
            if call.func.id in _CHANGE_NOTHING:
                return
            if call.func.id == "patch_functional":
                yield "F"
        else:
            yield from self._at(call.func)
        yield from self._within(_base(call.func))
        for argument in (*call.args, *(each.value for each in call.keywords)):
            if not isinstance(argument, ast.Call) and (name := _base(argument)):
                yield name

    def _by_part(self, call: ast.Call) -> Iterator[str]:
        """Yield what is surely changed by a call whose value is used: most calls change nothing."""
        match call.func:
            case ast.Name(id="setattr") if call.args:
                yield from self._at(call.args[0])
            case ast.Name(id=name):
                for each in self.binding[name]:
                    yield from each.globals if each.is_definition else ()
            case ast.Attribute(attr=name) if name.startswith("set_") or name in _CHANGING_METHODS:
                yield from self._at(call.func)

    def _by_decorator(self, decorator: ast.expr) -> Iterator[str]:
        """Yield what a decorator may put into: what is imported for that keeps its own tables."""
        name = _base(decorator)
        if name is not None and not all(each.is_import for each in self.binding[name]):
            yield name
            yield from self._within(name)

    def _within(self, name: str | None) -> Iterator[str]:
        """Yield the values of the file that a function of it, or a class, speaks of.

        Others that it calls are looked into as well.
        """
        waiting, seen = [name] if name else [], set[str]()
        while waiting:
            now = waiting.pop()
            own = [each for each in self.binding[now] if not each.is_import]
            if now in seen or not own:
                continue
            seen.add(now)
            called = [each for each in own if each.is_definition]
            waiting += [used for each in called for used in each.names.used]
            yield from (other for each in called for other in each.globals)
            if not called and now != name and not all(each.is_fixed for each in own):
                yield now

    def _is_of_torch(self, name: str) -> bool:
        return any(
            isinstance(each.node, _IMPORTS) and _module(each.node).partition(".")[0] == "torch"
            for each in self.binding[name]
        )


def _statements(body: Iterable[ast.stmt], apart: frozenset[str]) -> Iterator[_Statement]:
    """Yield a file's statements, with an import for each name, as they are run on import."""
    for place, statement in enumerate(_without_main(body)):
        match statement:
            case ast.ImportFrom(module=module) if module in {"__future__", *apart}:
                pass
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for part, alias in enumerate(names):
                    one: ast.stmt = ast.Import([alias])
                    if isinstance(statement, ast.ImportFrom):
                        one = ast.ImportFrom(statement.module, [alias], statement.level)
                    yield _Statement((place, part), one)
            case _:
                yield _Statement((place, 0), statement)


def _without_main(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements but for what is only run in a program; in its place what isn't, if any."""
    for statement in body:
        match statement:
            case ast.If(test=ast.Compare(left=ast.Name("__name__"), ops=[ast.Eq()])):
                yield from _without_main(statement.orelse)
            case _:
                yield statement


def _names(node: ast.stmt) -> _Names:
    """Find the names that a statement speaks of; what it only puts something into is apart."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.decorator_list:
            plain = copy(node)
            plain.decorator_list = []
            return _apart(_compiled_names(plain), node.decorator_list)
        case ast.Expr(value=ast.Call(func=func, args=arguments, keywords=keywords)):
            parts = (*arguments, *(each.value for each in keywords))
            used = (names_used(ast.Tuple([each], ast.Load())) for each in parts)
            return _apart(_Names(frozenset(), frozenset[str]().union(*used)), [func])
        case _:
            return _compiled_names(node)


def _apart(found: _Names, into: Sequence[ast.expr]) -> _Names:
    """Add what something is put into, and the other names that are spoken of there."""
    bases = frozenset(filter(None, map(_base, into)))
    there = bases - found.used
    return replace(found, used=found.used.union(*map(names_used, into)) - there, there=there)


def _compiled_names(node: ast.AST) -> _Names:
    """Find the names that a node speaks of, as Python's compiler does."""
    top = symtable.symtable(ast.unparse(node), "<file>", "exec")
    names = top.get_symbols()
    bound = {each.get_name() for each in names if each.is_assigned() or each.is_imported()}
    used = {each.get_name() for each in names if each.is_referenced()}
    if any(isinstance(each, ast.alias) and each.name == ALWAYS for each in ast.walk(node)):
        bound.add(ALWAYS)
    waiting = top.get_children()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        used |= {each.get_name() for each in table.get_symbols() if each.is_global()}
    return _Names(frozenset(bound), frozenset(used))


def _run_at_once(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield what of a statement runs where it stands, not what a function of it does later."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _base(node: ast.expr) -> str | None:
    """Return the name that a chain of attributes, entries and calls begins with."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                node = inner
            case ast.Call(func=inner):
                node = inner
            case _:
                return None
    return node.id


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]
