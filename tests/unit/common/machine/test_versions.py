from __future__ import annotations

import configparser
import platform
import re
from pathlib import Path

import pytest

from dynamometer.common.machine import versions
from dynamometer.common.machine.versions import TRIED
from dynamometer.results.values.records import Diagnosis, Level

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "compatibility.md").read_text()


def judge(folder: Path, torch: str) -> dict[str, Diagnosis]:
    """Judge what is here, with a torch of this version installed."""
    place = folder / "torch.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {torch}\n")
    return {each.subject: each for each in versions.judge_versions([folder])}


@pytest.mark.parametrize(
    ("version", "level", "word"),
    [
        ("2.10.1", Level.NOTE, "older"),
        ("2.11.0", Level.FINE, "tried"),
        ("2.12.0", Level.FINE, "tried"),
        ("2.13.0+cpu", Level.FINE, "tried"),
        ("2.15.1", Level.FINE, "tried"),
        ("2.16.0.dev20261101+cu130", Level.NOTE, "newer"),
        ("3.0.0", Level.NOTE, "newer"),
    ],
)
def test_a_torch_that_was_never_tried_is_noted(
    version: str, level: Level, word: str, tmp_path: Path
) -> None:
    """Whether newer or older than all of them; one between two is taken for tried."""
    found = judge(tmp_path, version)["torch"]
    assert (found.level, word in found.finding) == (level, True)
    assert version in found.finding
    assert all(each in found.finding for each in TRIED["torch"])


@pytest.mark.parametrize(
    ("version", "level"), [("3.11.9", Level.FINE), ("3.14.0", Level.NOTE), ("3.10.1", Level.NOTE)]
)
def test_a_python_that_was_never_tried_is_noted(
    version: str, level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Likewise."""
    monkeypatch.setattr(platform, "python_version", lambda: version)
    assert judge(tmp_path, "2.13.0")["Python"].level is level


def test_without_torch_nothing_is_said_of_it(tmp_path: Path) -> None:
    """A folder without packages has none to judge."""
    assert [each.subject for each in versions.judge_versions([tmp_path])] == ["Python"]


def test_the_torch_that_is_imported_is_found() -> None:
    """Where nothing else is said, what is judged is what a worker would import."""
    assert "torch" in {each.subject for each in versions.judge_versions()}


@pytest.mark.parametrize("what", TRIED)
def test_the_page_names_the_versions_that_were_tried(what: str) -> None:
    """All of those the doctor knows, and no other."""
    rows = re.findall(rf"^\| {what} ([\d.]+) ", PAGE, re.MULTILINE)
    assert tuple(".".join(row.split(".")[:2]) for row in rows) == TRIED[what]


def test_the_package_asks_for_what_was_tried() -> None:
    """The oldest torch and Python of setup.cfg, and its classifiers, are among those tried."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    classifiers = re.findall(r"Python :: (3\.\d+)", config["metadata"]["classifiers"])
    assert tuple(classifiers) == TRIED["Python"]
    assert config["options"]["python_requires"] == f">={TRIED['Python'][0]}"
    assert f"torch >= {TRIED['torch'][0]}" in config["options"]["install_requires"]
