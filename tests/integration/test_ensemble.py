"""`ensemble` through the command line and real workers: bad candidates, and what is decided."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import pytest
from conftest import ForkServers, local
from ensemble_runs import (
    DECISIONS,
    decisions,
    ensemble_result,
    run,
    run_directory,
    words,
)
from leaping_clock import leaping

from dynamometer.results.store.decisions import Decisions
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from pathlib import Path

BAD = {
    "wrong": {Status.FAIL_ACCURACY},
    "remembers": {Status.FAIL_ACCURACY},
    "changes_inputs": {Status.FAIL_ACCURACY},
    "crashes": {Status.CRASH},
    "hangs": {Status.TIMEOUT},
    "hoards": {Status.OOM, Status.FAIL},
    "fails": {Status.FAIL},
}
"""What becomes of each; an allocation may fail, or the watch over memory be faster."""
TIMEOUT_S = 9000.0


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run among whose candidates one alone is good.

    The time runs out whenever one says that it hangs, however long it took to get there.
    """
    folder = tmp_path_factory.mktemp("bad")
    hangs = folder / "hangs"
    hangs.touch()
    limits = ("--memory-limit", "3G", "--timeout", str(TIMEOUT_S))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HANGS", str(hangs))
        patch.setattr(time, "monotonic", leaping(time.monotonic, hangs, TIMEOUT_S + 1))
        run(words(folder, "wasteful", [*BAD, "honest"], *limits))
    return folder


def test_the_honest_candidate_could_be_chosen(bad: Path) -> None:
    """It is right, and timed; as nothing is faster than eager here, it is eager."""
    (graph,) = decisions(bad / DECISIONS)[Subject.GRAPH]
    evidence = {each.arm: each for each in graph.evidence}["candidates:honest"]
    assert evidence.outcome.status is Status.PASS
    assert evidence.speedup is not None
    assert graph.arm == "eager"


@pytest.mark.parametrize("name", BAD)
def test_a_bad_candidate_is_survived_and_reported(bad: Path, name: str) -> None:
    """Its loss is its own, and where its process ends, the others are measured in another one."""
    (graph,) = decisions(bad / DECISIONS)[Subject.GRAPH]
    evidence = {each.arm: each for each in graph.evidence}[f"candidates:{name}"]
    assert evidence.outcome.status in BAD[name], evidence.outcome
    assert evidence.outcome.reason
    assert evidence.speedup is None


def test_the_run_uses_what_was_decided(bad: Path) -> None:
    """Its record says so."""
    result = ensemble_result(bad)
    assert result.outcome.status is Status.PASS
    arms = {each.subject: each.arm for each in result.choices}
    (graph,) = decisions(bad / DECISIONS)[Subject.GRAPH]
    (model,) = decisions(bad / DECISIONS)[Subject.MODEL]
    assert arms[Subject.MODEL] == model.arm
    assert arms.get(Subject.GRAPH, graph.arm) == graph.arm
    assert all(each.is_decided for each in result.choices)


def test_a_decision_for_a_candidate_is_followed(bad: Path, tmp_path: Path) -> None:
    """As it would be had the candidate been faster."""
    path = tmp_path / "decisions.sqlite"
    found = decisions(bad / DECISIONS)
    named = [
        *(msgspec.structs.replace(each, arm="candidates:honest") for each in found[Subject.GRAPH]),
        *(msgspec.structs.replace(each, arm="assembled") for each in found[Subject.MODEL]),
    ]
    assert Decisions(path).put(*named) == 2
    said = run(words(tmp_path, "wasteful", ["honest"], "--decisions", str(path)))
    assert "everything was decided before" in said
    result = ensemble_result(tmp_path)
    assert result.outcome.status is Status.PASS
    assert "candidates:honest" in {each.arm for each in result.choices}


def test_in_training_forward_and_backward_are_tuned_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each graph of AOTAutograd has a decision, and the assembled model trains rightly.

    All of that is decided in the workers of one fork server. The run itself has another, which
    has imported nothing for a candidate.
    """
    made: list[ForkServers] = []

    def servers(log: Path) -> ForkServers:
        made.append(ForkServers(log))
        return made[-1]

    monkeypatch.setattr(local, "ForkServers", servers)
    asked = words(tmp_path, "two_parts", ["as_it_is"], "--training")
    run(asked)
    logs = {each._log.relative_to(run_directory(tmp_path)) for each in made}
    assert {str(each) for each in logs} == {
        "logs/fork-server.log",
        "ensemble/recorded-1/logs/fork-server.log",
    }
    labels = [each.label for each in decisions(tmp_path / DECISIONS)[Subject.GRAPH]]
    assert {label.split(".")[2] for label in labels} == {"forward", "backward"}
    assert ensemble_result(tmp_path).outcome.status is Status.PASS
    monkeypatch.undo()
    assert "everything was decided before" in run(asked)


def test_where_every_candidate_crashes_that_is_decided(tmp_path: Path) -> None:
    """For eager, with the crashes as evidence; they are not tried again by each later run."""
    asked = words(tmp_path, "wasteful", ["crashes"])
    run(asked)
    (graph,) = decisions(tmp_path / DECISIONS)[Subject.GRAPH]
    assert graph.arm == "eager"
    assert [each.outcome.status for each in graph.evidence] == [Status.CRASH]
    assert ensemble_result(tmp_path).outcome.status is Status.PASS
    assert "everything was decided before" in run(asked)


def test_graphs_are_tuned_with_the_threads_their_model_sets(tmp_path: Path) -> None:
    """Those that were asked for, it changes: what was decided for them would never be found."""
    run(words(tmp_path, "with_threads_of_its_own", ["as_it_is"]))
    found = Decisions(tmp_path / DECISIONS).all()
    assert {each.subject for each in found} == set(Subject)
    assert {each.setting.threads for each in found} == {2}
    choices = ensemble_result(tmp_path).choices
    assert choices
    assert all(each.is_decided for each in choices)


def test_what_is_decided_for_a_model_of_several_calls_is_found(tmp_path: Path) -> None:
    """A step of other calls is another model, and this one is looked for as it was tuned."""
    run(words(tmp_path, "in_two_calls", ["as_it_is"]))
    (model,) = decisions(tmp_path / DECISIONS)[Subject.MODEL]
    (choice,) = (e for e in ensemble_result(tmp_path).choices if e.subject is Subject.MODEL)
    assert choice.is_decided
    assert (choice.key, choice.arm) == (model.key, model.arm)
