"""What somebody else brings beside a study, and nothing of ours is edited for."""

from __future__ import annotations

import configparser
import csv
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from dynamometer.common import registry
from dynamometer.results.store import store
from dynamometer.results.values.records import Status

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = Path(__file__).resolve().parent / "plugin"
WORD = re.compile(r"`([\w.]+)`")
ROW = re.compile(r"^\| `(dynamometer\.\w+)` \| (.+) \| (.+) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "plugins.md").read_text())


def started(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Start Python where the plugin is installed."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{PLUGIN}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )


def dynamometer(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Start the command."""
    return started("-m", "dynamometer", *words, folder=folder)


def test_they_are_listed() -> None:
    """By the names that they are registered under."""
    for kind, name in (
        ("suites", "wide_nets"),
        ("backends", "as_is"),
        ("sinks", "json_lines"),
        ("executors", "noting"),
        ("exports", "model_names"),
    ):
        assert name in dynamometer("ls", kind).stdout.split()
    assert dynamometer("ls", "models", "wide_nets").stdout.split() == ["layer"]


def test_one_run_uses_them_all(tmp_path: Path) -> None:
    """A suite with an option of its own, a study, an executor and a sink; and a repro command."""
    words = "run wide_nets --width 5 --parameter-bytes --executor noting --sink json_lines"
    done = dynamometer(*words.split(), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (directory,) = (tmp_path / "runs").iterdir()
    manifest, records = store.read_manifest(directory), store.read_records(directory)
    assert manifest.plan.suite_options == {"width": "5"}
    assert [record.replicate for record in records] == [0, 1]
    assert (directory / "executed.txt").read_text() == "layer 0\nlayer 1\n"
    lines = [json.loads(line) for line in (directory / "lines.jsonl").read_text().splitlines()]
    assert [line["model"] for line in lines] == ["layer"]
    assert "100 bytes" in lines[0]["lines"][0]
    assert f"results: {directory.relative_to(tmp_path) / 'lines.jsonl'}" in done.stdout
    (table,) = directory.glob("weights_*_bytes.csv")
    with table.open(newline="") as file:
        assert [row["bytes"] for row in csv.DictReader(file)] == ["100"]
    exported = dynamometer("export", str(directory), "--format", "model_names")
    assert exported.stdout == "layer baseline pass\n"
    command = shlex.split(records[0].command)
    assert command[:3] == ["dynamometer", "run", "wide_nets"]
    assert {"--width", "--parameter-bytes", "--executor"} <= set(command)
    assert dynamometer(*command[1:], folder=tmp_path).returncode == 0
    first, second = sorted((tmp_path / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    assert first == directory
    assert store.read_manifest(second).plan == manifest.plan


def test_its_backend_is_compared(tmp_path: Path) -> None:
    """As one of ours is."""
    words = "run wide_nets --accuracy --backend as_is"
    done = dynamometer(*words.split(), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (directory,) = (tmp_path / "runs").iterdir()
    (record,) = store.read_records(directory)
    assert [(each.arm, each.outcome.status) for each in record.arms] == [
        ("baseline", Status.PASS), ("as_is", Status.PASS),
    ]  # fmt: skip


def test_the_page_shows_how_it_is_declared() -> None:
    """To the letter; what is committed beside it as if it were installed is the same."""
    text = (PLUGIN / "pyproject.toml").read_text()
    assert f"```toml\n{text}```" in (ROOT / "docs" / "plugins.md").read_text()
    project = tomllib.loads(text)
    installed = configparser.ConfigParser(delimiters="=")
    installed.read(PLUGIN / "parameter_bytes-1.0.dist-info" / "entry_points.txt")
    declared = project["project"]["entry-points"]
    assert {group: dict(installed[group]) for group in installed.sections()} == declared
    assert set(declared) == {f"dynamometer.{kind}" for kind in get_args(registry.Kind)}
    modules = {place.partition(":")[0] for group in declared.values() for place in group.values()}
    assert set(project["tool"]["setuptools"]["py-modules"]) == modules


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_the_page_says_where_types_are_imported_from(row: tuple[str, str, str]) -> None:
    """Each that a row names is in one of the row's modules."""
    _, types, modules = row
    found = [importlib.import_module(f"dynamometer.{each}") for each in WORD.findall(modules)]
    names = [each for each in WORD.findall(types) if each[0].isupper()]
    assert [each for each in names if not any(hasattr(one, each) for one in found)] == []


def test_its_option_is_refused_elsewhere(tmp_path: Path) -> None:
    """As an option of one of our suites would be."""
    done = dynamometer("run", "torchbench", "--width", "5", folder=tmp_path)
    assert done.returncode == 2
    assert "--width goes with the suite wide_nets" in done.stderr


def test_they_pass_the_contract_tests() -> None:
    """Which run over everything registered."""
    names = "wide_nets or as_is or json_lines or noting or parameter_bytes or width or model_names"
    done = started("-m", "pytest", "-q", "-p", "no:randomly", "tests/contract", "-k", names)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.rsplit(" passed", 1)[0].split()[-1]) > 40
