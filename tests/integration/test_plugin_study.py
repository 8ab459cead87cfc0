"""A study of somebody else's: one file and an entry point, and nothing of ours is edited."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dynamometer.results.store import store
from dynamometer.results.values.records import StopReason

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = Path(__file__).resolve().parent / "plugin"
SCRIPT = str(ROOT / "torchbench.py")
MODELS = ("lennard_jones", "soft_actor_critic")


def arguments(tmp_path: Path, *words: str) -> list[str]:
    """Ask for the study of two models."""
    only = [word for model in MODELS for word in ("--only", model)]
    runs = ["--scale", "tiny", "--output-dir", str(tmp_path / "runs")]
    return [sys.executable, SCRIPT, *only, *runs, *words]


@pytest.fixture
def environment() -> dict[str, str]:
    """An environment in which the plugin is installed."""
    return {**os.environ, "PYTHONPATH": str(PLUGIN)}


def started(tmp_path: Path, environment: dict[str, str], *words: str) -> tuple[int, str, str]:
    """Run to the end."""
    done = subprocess.run(
        arguments(tmp_path, *words),
        env=environment,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_its_option_is_in_the_help(tmp_path: Path, environment: dict[str, str]) -> None:
    """With it installed, and without it not."""
    assert "--parameter-bytes" in started(tmp_path, environment, "--help")[1]
    bare = {key: value for key, value in environment.items() if key != "PYTHONPATH"}
    assert "--parameter-bytes" not in started(tmp_path, bare, "--help")[1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--backend", "inductor"], "--parameter-bytes compiles nothing; leave out --backend"),
        (["--training"], "leave out --training"),
        (["--coverage"], "leave out --parameter-bytes"),
        (["--accuracy"], "leave out --accuracy"),
    ],
)
def test_its_refusals(
    tmp_path: Path, environment: dict[str, str], words: list[str], text: str
) -> None:
    """Its own, and that one run asks one question."""
    code, _, errors = started(tmp_path, environment, "--parameter-bytes", *words)
    assert code == 2
    assert text in errors


def test_it_runs_is_interrupted_and_resumed(tmp_path: Path, environment: dict[str, str]) -> None:
    """Its finding, line, table, CSV and stop rule come from its own file."""
    process = subprocess.Popen(
        arguments(tmp_path, "--parameter-bytes"), env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    events = tmp_path / "runs"
    while process.poll() is None and not any(
        path.read_bytes() for path in events.glob("*/events.jsonl")
    ):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=3600)
    (directory,) = events.iterdir()
    before = store.read_records(directory)
    assert before
    if process.returncode:  # it may have been done by then, on a slow machine
        assert "interrupted; to finish:" in errors
        assert len(before) < 4
    again = subprocess.run(
        [sys.executable, "-m", "dynamometer", "resume", str(directory)],
        env={**environment, "PYTHONPATH": f"{PLUGIN}:{ROOT}"},
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    records = store.read_records(directory)
    assert records[: len(before)] == before
    assert sorted((each.case.model, each.replicate, each.stopped) for each in records) == [
        (model, replicate, stopped)
        for model in MODELS
        for replicate, stopped in ((0, None), (1, StopReason.FOUND))
    ]
    assert "--parameter-bytes" in records[0].command
    (table,) = directory.glob("weights_*_bytes.csv")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["dtype"] for row in rows} == {"torch.float32"}
    assert again.stdout.count(" bytes\n") <= len(MODELS)
