"""What a project's folder holds is taken from there, whatever is loaded of the same name."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from dynamometer.models.parity import SUITE, importing
from dynamometer.models.parity.corpus import Corpus, CorpusCase
from dynamometer.models.parity.roots import forget_others, provided_by, roots_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("modules_as_before")
NAMES = ("model_of_two", "helper_of_two")
FILE = """
import sys
sys.path.insert(0, {root!r})
import torch
from model_of_two import {name}
TESTCASES = [({name}, lambda: ([], {{}}), lambda: ([torch.rand(2)], {{}}))]
"""
NET = "from torch import nn\nclass {name}(nn.Module):\n    def forward(self, x): return x\n"


def project(folder: Path, name: str) -> str:
    """Write a project of a file and a package, and a file of a corpus that names its root."""
    (folder / name / "helper_of_two").mkdir(parents=True)
    (folder / name / "helper_of_two" / "__init__.py").touch()
    (folder / name / "model_of_two.py").write_text(
        f"from helper_of_two import __file__ as beside\n{NET.format(name=name)}"
    )
    text = FILE.format(root=str(folder / name), name=name)
    (folder / f"test_{name}.py").write_text(text)
    return str(folder / name)


def test_each_file_gets_the_modules_of_its_root(tmp_path: Path) -> None:
    """Two flat projects have a module of one name each."""
    for name in ("One", "Two"):
        root = project(tmp_path, name)
        loaded = importing.load(CorpusCase(tmp_path / f"test_{name}.py", 0, name))
        assert type(loaded.module).__name__ == name
        assert str(sys.modules["model_of_two"].beside).startswith(root)
        assert sys.argv == [str(tmp_path / f"test_{name}.py")]


def test_a_program_that_parses_arguments_is_imported(tmp_path: Path) -> None:
    """It finds none, whatever the command line of this process is."""
    file = tmp_path / "test_p.py"
    file.write_text(
        "import argparse, torch\nfrom torch import nn\nargparse.ArgumentParser().parse_args()\n"
        + NET.format(name="Net")
        + "TESTCASES = [(Net, lambda: ([], {}), lambda: ([torch.rand(2)], {}))]\n"
    )
    sys.argv[:] = ["server", "--what-is-this"]
    importing.load(CorpusCase(file, 0, "Net"))


def test_what_holds_all_together_is_kept(tmp_path: Path) -> None:
    """Neither torch nor Python's own modules are forgotten, nor what is from the folder."""
    root = project(tmp_path, "One")
    for name in ("torch.py", "random.py"):
        (tmp_path / "One" / name).touch()
    sys.path.insert(0, root)
    importlib.import_module("model_of_two")
    before = dict(sys.modules)
    forget_others(tmp_path / "One")
    assert dict(sys.modules) == before
    assert provided_by(tmp_path / "One") == {*NAMES, "torch", "random"}


def test_roots_are_read_from_a_files_head(tmp_path: Path) -> None:
    """As far as they are folders that are there."""
    one = project(tmp_path, "One")
    file = tmp_path / "test_p.py"
    file.write_text(
        f"import sys\nsys.path.insert(0, {one!r})\nsys.path.insert(0, '/no/such')\n"
        f"sys.path.insert(0, 'a' + __file__ + 'b')\nif sys:\n    sys.path.insert(0, {one!r})\n"
        f"sys.path.insert(0, '\\0')\nsys.path.append({one!r})\n"
    )
    assert roots_of(file) == [tmp_path / "One"]


def test_what_a_file_has_a_root_for_is_not_imported_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be another one; the rest is."""
    project(tmp_path, "One")
    asked: list[str] = []
    monkeypatch.setattr(importing, "_USUAL", ("model_of_two", "helper_of_two.x", "json"))
    monkeypatch.setattr(importing, "define_missing_schemas", lambda: None)
    monkeypatch.setattr(importing.importlib, "import_module", asked.append)
    suite = SUITE.open({"target": str(tmp_path)})
    assert isinstance(suite, Corpus)
    suite.preload(suite.specs())
    assert asked == ["json"]
