"""Modules, classes and functions stay small enough to be read at once."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    path
    for top in ("common", "dynamo", "results", "models", "bench")
    for path in sorted((ROOT / top).rglob("*.py"))
]
MOST_LINES = {ast.FunctionDef: 60, ast.AsyncFunctionDef: 60, ast.ClassDef: 200}
MOST_OF_A_MODULE = 400
MOST_MODULES = 14
COLLECTIONS = {"models/builders", "bench"}
"""Of like things, each of which is opened by itself."""


def too_long(source: str) -> list[str]:
    """Name what is longer than it may be."""
    found = [
        f"{node.name}: {length} lines"
        for node in ast.walk(ast.parse(source))
        for kind, most in MOST_LINES.items()
        if isinstance(node, kind)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > most
    ]  # fmt: skip
    lines = source.count("\n")
    return [*found, *[f"{lines} lines"] * (lines > MOST_OF_A_MODULE)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_too_long(path: Path) -> None:
    """A function fits a screen; a module or class that doesn't is several."""
    assert too_long(path.read_text()) == []


def test_rooms_are_small() -> None:
    """A folder of many modules is several rooms."""
    rooms = {path.parent for path in FILES}
    sizes = {str(room.relative_to(ROOT)): len(list(room.glob("*.py"))) for room in rooms}
    assert {room for room, size in sizes.items() if size > MOST_MODULES} <= COLLECTIONS


def test_rooms_say_what_belongs_in_them() -> None:
    """In the docstring of the package, with what it may import where that is not plain."""
    for room in {path.parent for path in FILES if "bench" not in path.parts}:
        assert ast.get_docstring(ast.parse((room / "__init__.py").read_text())), room


def test_one_call_can_collect_all_tests() -> None:
    """To pytest two files of one name are one module."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize(
    "source",
    ["def f():\n" + "    x = 1\n" * 60, "class A:\n" + "    x = 1\n" * 200, "x = 1\n" * 401],
    ids=["function", "class", "module"],
)
def test_what_is_too_long_would_be_seen(source: str) -> None:
    """One line more than there may be."""
    assert too_long(source)
