"""Scripts that make pages of figures, which nobody runs for weeks."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench"
SCRIPTS = sorted(path.stem for path in BENCH.glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_it_imports_is_there(name: str) -> None:
    """A renamed function would else be found when the page is to be made again."""
    importlib.import_module(name)


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_measures_its_own_tree(name: str) -> None:
    """Whatever is installed: what can be called puts its tree on the path before it imports."""
    text = (BENCH / f"{name}.py").read_text()
    lines = list(map(ast.unparse, ast.parse(text).body))
    imports = [i for i, line in enumerate(lines) if line.startswith("from dynamometer.")]
    paths = [i for i, line in enumerate(lines) if line.startswith("sys.path.insert(")]
    if imports and "__main__" in text:
        assert paths
        assert paths[0] < imports[0]
