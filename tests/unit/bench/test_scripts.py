"""Scripts that make pages of figures, which nobody runs for weeks."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

SCRIPTS = sorted(path.stem for path in Path(__file__).parents[3].glob("bench/*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_it_imports_is_there(name: str) -> None:
    """A renamed function would else be found when the page is to be made again."""
    importlib.import_module(name)
