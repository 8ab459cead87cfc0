"""One test case of a corpus as a script that needs torch alone. Pure: from text to text."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import BAD_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OFFERED = "_paritybench_helpers"
_LIST = "TESTCASES"
_ALWAYS = "*"
"""In the place of the name of what is needed whatever is asked for."""
_SCRIPT = '''"""{class_name} of {origin}, in eager and compiled with {backend}."""

import copy

import torch

{definitions}


def main():
    """Compare what is computed."""
    torch.manual_seed(0)
    args, kwargs = ({init_args})()
    model = {class_name}(*args, **kwargs).{mode}()
    args, kwargs = ({forward_args})()
    torch.manual_seed(0)
    expected = model(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    compiled = torch.compile(copy.deepcopy(model), backend={backend!r}, fullgraph={full_graph})
    torch.manual_seed(0)
    found = compiled(*args, **kwargs)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
    print("compiled and eager agree")


if __name__ == "__main__":
    main()
'''


def script_of(
    file: Path,
    index: int,
    class_name: str,
    backend: str,
    *,
    full_graph: bool = False,
    training: bool = False,
) -> str:
    """Return a script that runs a test case in eager and compiled.

    It holds the class, and of the file's definitions those that it needs.

    Args:
        file: of the corpus.
        index: of the test case in the file's list.
        class_name: of its module.
        backend: of `torch.compile`.
        full_graph: whether all must be one graph.
        training: whether the module is in training mode.

    Raises:
        ValueError: the file can't be parsed, or has no such test case.
    """
    try:
        tree = ast.parse(file.read_text(encoding="utf-8-sig", errors="replace"))
    except (OSError, *BAD_PYTHON) as error:
        msg = f"{file} can't be read as Python: {error}"
        raise ValueError(msg) from error
    init_args, forward_args = _functions(tree, file, index)
    wanted = {_ALWAYS, class_name, *_names(init_args), *_names(forward_args)}
    return _SCRIPT.format(
        class_name=class_name,
        origin=file.stem,
        backend=backend,
        definitions="\n\n".join(map(ast.unparse, _needed(tree, wanted))),
        init_args=ast.unparse(init_args),
        forward_args=ast.unparse(forward_args),
        full_graph=full_graph,
        mode="train" if training else "eval",
    )


def _functions(tree: ast.Module, file: Path, index: int) -> tuple[ast.expr, ast.expr]:
    """Return the functions of a test case: the constructor's arguments, and those of forward."""
    for statement in reversed(tree.body):
        match statement:
            case (
                ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.List(elts=entries) | ast.Tuple(elts=entries),
                )
                | ast.AnnAssign(
                    target=ast.Name(id=name),
                    value=ast.List(elts=entries) | ast.Tuple(elts=entries),
                )
            ) if name == _LIST and index < len(entries):
                entry = entries[index]
                if isinstance(entry, ast.Tuple) and len(entry.elts) > 2:  # noqa: PLR2004  class and two functions
                    return entry.elts[1], entry.elts[2]
    msg = f"{file} holds no test case {index}"
    raise ValueError(msg)


@dataclass(frozen=True)
class _Definition:
    """A statement of a file, or the part of an import that gives one name.

    Attributes:
        place: its number in the file, to keep the order.
        statement: what is written.
    """

    place: tuple[int, int]
    statement: ast.stmt


def _needed(tree: ast.Module, wanted: Iterable[str]) -> list[ast.stmt]:
    """Return what defines some names, and what that needs in turn, in the file's order."""
    known: defaultdict[str, list[_Definition]] = defaultdict(list)
    for place, statement in enumerate(tree.body):
        for name, found in _defined(place, statement):
            known[name].append(found)
    _add_offered(known)
    chosen: dict[tuple[int, int], ast.stmt] = {}
    seen, waiting = set[str](), [*wanted]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for found in known[name]:
            if found.place not in chosen:
                chosen[found.place] = found.statement
                waiting += _names(found.statement)
    return [chosen[place] for place in sorted(chosen)]


def _defined(place: int, statement: ast.stmt) -> Iterator[tuple[str, _Definition]]:
    """Yield the names that a statement defines, each with what is needed of it."""
    match statement:
        case ast.ImportFrom(module=module) if module == _OFFERED:
            return
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for part, alias in enumerate(names):
                one: ast.stmt = ast.Import([alias])
                if isinstance(statement, ast.ImportFrom):
                    one = ast.ImportFrom(statement.module, [alias], statement.level)
                bound = alias.asname or alias.name.partition(".")[0]
                yield bound, _Definition((place, part), one)
        case ast.Expr():
            if (name := _effect_of(statement)) is not None:
                yield name, _Definition((place, 0), statement)
        case _:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, _Definition((place, 0), statement)
                elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                    yield node.name, _Definition((place, 0), statement)


def _effect_of(statement: ast.Expr) -> str | None:
    """Return the name that is needed of what a statement changes, if of anything."""
    match statement.value:
        case ast.Call(func=ast.Name(id="patch_functional")):
            return "F"
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name("sys"), attr="path"))):
            return _ALWAYS
    return None


def _add_offered(known: defaultdict[str, list[_Definition]]) -> None:
    """Add what stands for a project's program (`offered.py`), before all that a file defines."""
    tree = ast.parse(Path(__file__).with_name("offered.py").read_text())
    statements = [
        inner
        for each in tree.body
        for inner in (each.body if isinstance(each, ast.If) else [each])
        if not (isinstance(inner, ast.ImportFrom) and inner.module == "__future__")
    ]
    for place, statement in enumerate(statements, start=-len(statements)):
        for name, found in _defined(place, statement):
            if name.startswith("_") or name == "patch_functional" or not known[name]:
                known[name].append(found)


def _names(node: ast.AST) -> list[str]:
    """Return the names that are used anywhere in a node."""
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
