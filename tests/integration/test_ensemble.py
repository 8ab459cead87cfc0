"""`ensemble` through the command line and real workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from dynamometer.results.store import store
from dynamometer.results.store.decisions import Decisions
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.decisions import Decision

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BAD = {
    "wrong": {Status.FAIL_ACCURACY},
    "remembers": {Status.FAIL_ACCURACY},
    "changes_inputs": {Status.FAIL_ACCURACY},
    "crashes": {Status.CRASH},
    "hoards": {Status.OOM, Status.FAIL},
    "fails": {Status.FAIL},
}
"""What becomes of each; an allocation may fail, or the watch over memory be faster."""


def command(model: str, candidates: Sequence[str], *words: str) -> list[str]:
    """Return the words that run a model with decisions over some candidates."""
    chosen = [word for name in candidates for word in ("--candidate", f"candidates:{name}")]
    return [
        *(sys.executable, "-m", "dynamometer", "run", f"{HERE / 'candidates.py'}::{model}"),
        *("--backend", "ensemble", "-n", "2", "-t", "1", *chosen, *words),
    ]


def environment() -> dict[str, str]:
    """Return where workers import from."""
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{HERE}"}


def run(folder: Path, words: Sequence[str]) -> str:
    """Run to the end, and give what was said on the way."""
    done = subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def decisions(folder: Path) -> dict[Subject, list[Decision]]:
    """Read what was decided."""
    found = Decisions(folder / "runs" / "decisions.sqlite").all()
    return {subject: [each for each in found if each.subject is subject] for subject in Subject}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run among whose candidates one alone is good, and what it said."""
    folder = tmp_path_factory.mktemp("bad")
    words = command("wasteful", [*BAD, "honest"], "--memory-limit", "3G", "--accuracy")
    return folder, run(folder, words)


def test_the_honest_candidate_could_be_chosen(bad: tuple[Path, str]) -> None:
    """It is right, and timed; as nothing is faster than eager here, it is eager."""
    (graph,) = decisions(bad[0])[Subject.GRAPH]
    evidence = {each.arm: each for each in graph.evidence}["candidates:honest"]
    assert evidence.outcome.status is Status.PASS
    assert evidence.speedup is not None
    assert graph.arm == "eager"


@pytest.mark.parametrize("name", BAD)
def test_a_bad_candidate_is_survived_and_reported(bad: tuple[Path, str], name: str) -> None:
    """Its loss is its own."""
    (graph,) = decisions(bad[0])[Subject.GRAPH]
    evidence = {each.arm: each for each in graph.evidence}[f"candidates:{name}"]
    assert evidence.outcome.status in BAD[name], evidence.outcome
    assert evidence.outcome.reason
    assert evidence.speedup is None


def test_a_candidate_that_hangs_is_not_chosen(tmp_path: Path) -> None:
    """Its process is ended; what is measured of the others is measured in another one."""
    run(tmp_path, command("wasteful", ["hangs", "honest"], "--timeout", "30", "--accuracy"))
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    (tuned,) = store.read_records(folder / "ensemble" / "tuned-1")[:1]
    statuses = {each.arm: each.outcome.status for each in tuned.arms}
    assert statuses["candidates:hangs"] is Status.TIMEOUT
    assert "candidates:hangs" not in {each.arm for each in decisions(tmp_path)[Subject.GRAPH]}


def test_the_run_uses_what_was_decided(bad: tuple[Path, str]) -> None:
    """Its record says so."""
    (directory,) = (path for path in (bad[0] / "runs").iterdir() if path.is_dir())
    (record,) = store.read_records(directory)
    assert record.outcome.status is Status.PASS
    (result,) = (each for each in record.arms if each.arm == "ensemble")
    arms = {each.subject: each.arm for each in result.choices}
    (graph,) = decisions(bad[0])[Subject.GRAPH]
    (model,) = decisions(bad[0])[Subject.MODEL]
    assert arms[Subject.MODEL] == model.arm
    assert arms.get(Subject.GRAPH, graph.arm) == graph.arm
    assert all(each.is_decided for each in result.choices)


def test_a_decision_for_a_candidate_is_followed(bad: tuple[Path, str], tmp_path: Path) -> None:
    """As it would be had the candidate been faster."""
    path = tmp_path / "decisions.sqlite"
    found = decisions(bad[0])
    named = [
        *(msgspec.structs.replace(each, arm="candidates:honest") for each in found[Subject.GRAPH]),
        *(msgspec.structs.replace(each, arm="assembled") for each in found[Subject.MODEL]),
    ]
    assert Decisions(path).put(*named) == 2
    words = command("wasteful", ["honest"], "--accuracy", "--decisions", str(path))
    assert "everything was decided before" in run(tmp_path, words)
    (directory,) = (each for each in (tmp_path / "runs").iterdir() if each.is_dir())
    (record,) = store.read_records(directory)
    (result,) = (each for each in record.arms if each.arm == "ensemble")
    assert result.outcome.status is Status.PASS
    assert "candidates:honest" in {each.arm for each in result.choices}


def test_a_second_run_tunes_nothing_and_another_number_of_threads_does(tmp_path: Path) -> None:
    """Nor does one that asks for it anew find what there is."""
    words = command("two_parts", ["as_it_is"], "--accuracy")
    assert "2 graphs are tuned" in run(tmp_path, words)
    before = decisions(tmp_path)
    said = run(tmp_path, words)
    assert "tuned" not in said
    assert "everything was decided before" in said
    assert decisions(tmp_path) == before
    assert "2 graphs are tuned" in run(tmp_path, [*words, "-t", "2"])
    assert {each.setting.threads for each in decisions(tmp_path)[Subject.GRAPH]} == {1, 2}
    assert "2 graphs are tuned" in run(tmp_path, [*words, "--retune"])


def test_in_training_forward_and_backward_are_tuned_apart(tmp_path: Path) -> None:
    """Each graph of AOTAutograd has a decision, and the assembled model trains rightly."""
    words = command("two_parts", ["as_it_is"], "--accuracy", "--training")
    run(tmp_path, words)
    labels = [each.label for each in decisions(tmp_path)[Subject.GRAPH]]
    assert {label.split(".")[2] for label in labels} == {"forward", "backward"}
    (directory,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    (record,) = store.read_records(directory)
    assert record.outcome.status is Status.PASS
    assert "everything was decided before" in run(tmp_path, words)


def test_a_kill_while_tuning_loses_nothing_decided(tmp_path: Path) -> None:
    """What is begun again goes on with the graphs that are left."""
    words = command("two_parts", ["as_it_is"], "--accuracy")
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not decisions(tmp_path)[Subject.GRAPH] and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = decisions(tmp_path)[Subject.GRAPH]
    assert kept
    said = run(tmp_path, words)
    assert "2 graphs are tuned" not in said
    now = {each.key: each for each in decisions(tmp_path)[Subject.GRAPH]}
    assert len(now) == 2
    assert all(now[each.key] == each for each in kept)


def test_a_corpus_is_tuned_by_itself(tmp_path: Path) -> None:
    """Without its models; a second time nothing is measured."""
    program = [sys.executable, "-m", "dynamometer"]
    target = f"{HERE / 'candidates.py'}::two_parts"
    run(tmp_path, [*program, "corpus", "record", "-o", "graphs", target])
    words = [*program, "corpus", "tune", "graphs", "--backend", "candidates:as_it_is"]
    words += ["-n", "2", "-t", "1"]
    run(tmp_path, words)
    before = decisions(tmp_path)[Subject.GRAPH]
    assert len(before) == 2
    run(tmp_path, words)
    assert decisions(tmp_path)[Subject.GRAPH] == before
    listed = subprocess.run(
        [*program, "decisions", "list", "--json"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {line["key"] for line in lines} == {each.key for each in before}
    assert msgspec.json.encode(before[0]) in listed.stdout.encode()
