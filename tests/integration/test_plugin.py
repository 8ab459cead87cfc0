"""What somebody else brings beside a study, and nothing of ours is edited for."""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from dynamometer.results.store import store

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = Path(__file__).resolve().parent / "plugin"


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


def test_its_option_is_refused_elsewhere(tmp_path: Path) -> None:
    """As an option of one of our suites would be."""
    done = dynamometer("run", "torchbench", "--width", "5", folder=tmp_path)
    assert done.returncode == 2
    assert "--width goes with the suite wide_nets" in done.stderr


def test_they_pass_the_contract_tests() -> None:
    """Which run over everything registered."""
    names = "wide_nets or json_lines or noting or parameter_bytes or width or model_names"
    done = started("-m", "pytest", "-q", "-p", "no:randomly", "tests/contract", "-k", names)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.rsplit(" passed", 1)[0].split()[-1]) > 40
