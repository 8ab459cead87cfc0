"""What `make` prepares: of which Python, and with which packages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MAKE = shutil.which("make")
TORCHS_OWN = re.compile("(nvidia|cuda|triton)")
NOT_INSTALLED_BY_US = {"dynamometer", "pip"}

pytestmark = pytest.mark.skipif(MAKE is None, reason="there is no make")


def made(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Call `make setup` where everything is prepared."""
    return subprocess.run(
        ["make", "setup", *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A clone whose environment is of this Python."""
    for name in ("Makefile", "setup.cfg", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "python").chmod(0o755)
    (tmp_path / "python9.9").write_text("#!/bin/sh\necho 9.9\n")
    (tmp_path / "python9.9").chmod(0o755)
    (tmp_path / ".venv" / ".ready").touch()
    return tmp_path


def test_an_environment_of_another_python_is_refused(prepared: Path) -> None:
    """Where one is asked for; the one that is there already is used otherwise."""
    assert made(prepared).returncode == 0
    assert made(prepared, f"PYTHON={sys.executable}").returncode == 0
    done = made(prepared, "PYTHON=./python9.9")
    assert done.returncode == 2
    assert ".venv is not of ./python9.9" in done.stderr


def test_everything_that_is_installed_is_pinned() -> None:
    """So that the tests of today run on the same tomorrow; torch pins what its builds need."""
    text = (ROOT / "constraints.txt").read_text()
    pinned = {normal(each) for each in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    needed, left = set(), ["dynamometer[models,onnx,openvino,parquet,test]"]
    while left:
        name, _, extras = left.pop().partition("[")
        if normal(name) in needed or TORCHS_OWN.match(normal(name)):
            continue
        needed.add(normal(name))
        left += required(name, extras.strip("]").split(","))
    assert sorted(needed - pinned - NOT_INSTALLED_BY_US) == []


def normal(name: str) -> str:
    """Return a distribution's name as indexes have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(name: str, extras: list[str]) -> list[str]:
    """Return what an installed distribution needs here."""
    packaging = pytest.importorskip("packaging.requirements")
    try:
        found = metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # of another system
        return []
    needs = map(packaging.Requirement, found)
    return [
        f"{each.name}[{','.join(each.extras)}]"
        for each in needs
        if each.marker is None or any(each.marker.evaluate({"extra": own}) for own in extras)
    ]
