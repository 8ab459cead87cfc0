"""`ensemble` where something is decided already: by a run that was killed, or by another one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from ensemble_runs import CANDIDATES, DECISIONS, decisions, run, words

from dynamometer.results.store.decisions import Decisions
from dynamometer.results.values.choices import Subject

if TYPE_CHECKING:
    from dynamometer.results.values.decisions import Decision

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Resumed:
    """What two runs left, of which the first was killed: decisions, and what the second said."""

    folder: Path
    kept: list[Decision]
    said: str


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Resumed:
    """Kill a run as soon as a graph is decided on, and run again."""
    folder = tmp_path_factory.mktemp("resumed")
    asked, path = words(folder, "two_parts", ["as_it_is"]), folder / DECISIONS
    process = subprocess.Popen(
        [sys.executable, "-m", "dynamometer", *asked],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{HERE}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not decisions(path)[Subject.GRAPH] and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return Resumed(folder, decisions(path)[Subject.GRAPH], run(asked))


def again(resumed: Resumed, folder: Path, *more: str) -> tuple[str, Path]:
    """Run once more, with a copy of the decisions; give what was said, and the copy."""
    path = folder / "decisions.sqlite"
    Decisions(path).put(*Decisions(resumed.folder / DECISIONS).all())
    asked = words(folder, "two_parts", ["as_it_is"], "--decisions", str(path), *more)
    return run(asked), path


def test_a_kill_while_tuning_loses_nothing_decided(resumed: Resumed) -> None:
    """What is begun again goes on with the graphs that are left."""
    assert resumed.kept
    assert "2 graphs are tuned" not in resumed.said
    now = {each.key: each for each in decisions(resumed.folder / DECISIONS)[Subject.GRAPH]}
    assert len(now) == 2
    assert all(now[each.key] == each for each in resumed.kept)


def test_a_second_run_tunes_nothing(resumed: Resumed, tmp_path: Path) -> None:
    """It finds all that was decided, and leaves that alone."""
    said, path = again(resumed, tmp_path)
    assert "tuned" not in said
    assert "everything was decided before" in said
    assert decisions(path) == decisions(resumed.folder / DECISIONS)


def test_another_number_of_threads_is_tuned_for(resumed: Resumed, tmp_path: Path) -> None:
    """What was decided for one says nothing about the other."""
    said, path = again(resumed, tmp_path, "-t", "2")
    assert "2 graphs are tuned" in said
    assert {each.setting.threads for each in decisions(path)[Subject.GRAPH]} == {1, 2}


def test_what_was_decided_is_tuned_anew_where_that_is_asked(
    resumed: Resumed, tmp_path: Path
) -> None:
    """Each graph."""
    said, _ = again(resumed, tmp_path, "--retune")
    assert "2 graphs are tuned" in said


def test_a_corpus_is_tuned_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without its models; a second time nothing is measured."""
    graphs, runs, path = str(tmp_path / "graphs"), str(tmp_path / "runs"), tmp_path / DECISIONS
    target = f"{CANDIDATES}::two_parts"
    run(["corpus", "record", "-o", graphs, target, "--output-dir", runs])
    asked = ["corpus", "tune", graphs, "--backend", "candidates:as_it_is", "-n", "2", "-t", "1"]
    run([*asked, "--output-dir", runs])
    before = decisions(path)[Subject.GRAPH]
    assert len(before) == 2
    run([*asked, "--output-dir", runs])
    assert decisions(path)[Subject.GRAPH] == before
    capsys.readouterr()
    run(["decisions", "list", "--json", "--decisions", str(path)])
    listed = capsys.readouterr().out
    lines = [json.loads(line) for line in listed.splitlines()]
    assert {line["key"] for line in lines} == {each.key for each in before}
    assert msgspec.json.encode(before[0]) in listed.encode()
