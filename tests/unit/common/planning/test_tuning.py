"""Which candidates there are for models that are timed as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common.command_line.decisions import preparing
from dynamometer.common.planning import tuning as tuning_module
from dynamometer.common.planning.arms import Usable
from dynamometer.common.planning.tuning import (
    candidates_of,
    graphs_plan,
    models_plan,
    recording_plan,
)
from dynamometer.results.store.decisions import Decisions
from dynamometer.results.store.graphs.corpus import DESCRIPTION, Corpus, write_archive
from dynamometer.results.values.cases import BASELINE, NO_BACKEND, MatmulPrecision, Mode
from dynamometer.results.values.choices import ASSEMBLED, ENSEMBLE, Subject, Tuning
from dynamometer.results.values.decisions import Recorded
from dynamometer.results.values.graphs import Origin, Part, RecordedGraph, RecordedModel, SavedGraph

if TYPE_CHECKING:
    from pathlib import Path

CANDIDATES = ("inductor", "aot_inductor")


@pytest.mark.parametrize(
    ("mode", "is_one_graph", "expected"),
    [
        (Mode.INFERENCE, False, CANDIDATES),
        (Mode.INFERENCE, True, ("aot_inductor",)),
        (Mode.TRAINING, True, CANDIDATES),
    ],
)
def test_what_a_graph_was_tuned_with_is_not_tried_again(
    mode: Mode, *, is_one_graph: bool, expected: tuple[str, ...]
) -> None:
    """On the model that is this graph; in training a model is never one graph."""
    case = factories.case(arms=(BASELINE, ENSEMBLE), mode=mode)
    tuning = Tuning(decisions="decisions.sqlite", candidates=CANDIDATES)
    plan = factories.plan(cases=(case,), tuning=tuning)
    (made,) = models_plan(plan, {case.id: is_one_graph}).cases
    assert made.arms == (BASELINE, ASSEMBLED, *expected)


def test_a_graph_that_no_file_holds_decides_nothing_on_its_model(tmp_path: Path) -> None:
    """It was tuned with nothing, so that the model has every candidate still."""
    decisions = Decisions(tmp_path / "decisions.sqlite")
    tuning = Tuning(decisions=str(decisions.path))
    decided = factories.decision()
    graph = RecordedGraph(key=decided.key, part=Part.INFERENCE, op_count=1, calls=1)
    model = Recorded(key="model", setting=decided.setting, graphs=(graph,))
    assert not preparing.is_decided_by_graph(model, tuning)
    decisions.put(decided)
    assert decided.subject is Subject.GRAPH
    assert preparing.is_decided_by_graph(model, tuning)
    two = msgspec.structs.replace(model, graphs=(graph, graph))
    assert not preparing.is_decided_by_graph(two, tuning)


@pytest.mark.parametrize("mode", Mode)
def test_graphs_of_a_gpu_may_be_cuda_graphs(monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    """They are beside Inductor on that device alone."""
    names = Usable(names=("inductor", "aot_eager"), reasons={})
    monkeypatch.setattr(tuning_module, "usable", lambda device, mode: names)
    tuning = Tuning(decisions="decisions.sqlite")
    freezing = ("inductor:freezing",) if mode is Mode.INFERENCE else ()
    for device, graphs in (("cpu", ()), ("cuda", ("inductor:reduce-overhead",))):
        found = candidates_of(tuning, device, mode, of_models=False)
        assert found == ("inductor", *freezing, *graphs)


def corpus_of_a_graph(folder: Path) -> str:
    """Make a corpus of a single graph, and return its key."""
    graphs = Corpus.made(folder)
    key, origin = "1" * 64, Origin(suite="mine", model="net")
    saved = SavedGraph(key=key, origin=origin, ops={"torch.add": 2}, inputs=(), torch="2.13")
    write_archive(graphs.path(key), {DESCRIPTION: msgspec.json.encode(saved)})
    graph = RecordedGraph(key=key, part=Part.INFERENCE, op_count=2, calls=1)
    graphs.add(RecordedModel(origin=origin, graphs=(graph,)))
    return key


def test_graphs_are_tuned_as_the_model_is_run(tmp_path: Path) -> None:
    """As precisely, and with its threads; or their decisions would hold for another setting."""
    key = corpus_of_a_graph(tmp_path)
    case = factories.case(arms=(BASELINE, ENSEMBLE), matmul_precision=MatmulPrecision.HIGH)
    tuning = Tuning(decisions="decisions.sqlite", candidates=CANDIDATES)
    plan = graphs_plan(factories.plan(cases=(case,), tuning=tuning), tmp_path, [key], 3)
    assert [each.matmul_precision for each in plan.cases] == [MatmulPrecision.HIGH]
    assert plan.threads == 3


def test_candidates_are_timed_one_case_after_the_other(tmp_path: Path) -> None:
    """Whatever the run does: where several cases run at once, threads that wait are asleep."""
    key = corpus_of_a_graph(tmp_path)
    case = factories.case(arms=(BASELINE, ENSEMBLE))
    tuning = Tuning(decisions="decisions.sqlite", candidates=CANDIDATES)
    plan = factories.plan(cases=(case,), tuning=tuning, jobs=2)
    stages = (
        recording_plan(plan, tmp_path),
        graphs_plan(plan, tmp_path, [key], 1),
        models_plan(plan, {case.id: False}),
    )
    assert [each.jobs for each in stages] == [1, 1, 1]


def test_graphs_are_tuned_with_the_threads_of_their_models(tmp_path: Path) -> None:
    """Which a model may set itself; one graph of two models may have to be tuned for each."""
    decided = factories.decision(setting=factories.setting(threads=1))
    Decisions(tmp_path / "decisions.sqlite").put(decided)
    graph, other = (
        RecordedGraph(key=key, part=Part.INFERENCE, op_count=1, calls=1)
        for key in (decided.key, "1" * 64)
    )
    in_no_file = msgspec.structs.replace(other, key="2" * 64, reason="it holds a hook")
    models = [
        Recorded(key=str(threads), setting=factories.setting(threads=threads), graphs=graphs)
        for threads, graphs in ((2, (graph, in_no_file)), (1, (graph, other)), (2, (other, graph)))
    ]
    tuning = Tuning(decisions=str(tmp_path / "decisions.sqlite"))
    found = preparing._undecided(tuning, models)
    assert {threads: set(keys) for threads, keys in found.items()} == {
        1: {other.key},
        2: {graph.key, other.key},
    }


SINCE = "2025-02-01T00:00:00.000+00:00"


@pytest.mark.parametrize(
    ("decided_at", "counts"), [("2025-01-31", False), (SINCE, True), ("2025-02-02", True)]
)
def test_what_is_decided_anew_counts_for_nothing_before(
    decided_at: str, tmp_path: Path, *, counts: bool
) -> None:
    """Where its graph stays undecided, a model counts neither as decided by it nor as eager."""
    decisions = Decisions(tmp_path / "decisions.sqlite")
    decided = factories.decision(arm=NO_BACKEND, decided_at=decided_at)
    decisions.put(decided)
    graph = RecordedGraph(key=decided.key, part=Part.INFERENCE, op_count=1, calls=1)
    model = Recorded(key="model", setting=decided.setting, graphs=(graph,))
    tuning = Tuning(decisions=str(decisions.path), since=SINCE, candidates=("inductor",))
    assert preparing.is_decided_by_graph(model, tuning) is counts
    assert bool(preparing._graphs_that_stay(model, tuning)) is counts
    assert bool(preparing._undecided(tuning, [model])) is not counts


@pytest.mark.parametrize(
    ("suite", "is_decided", "expected"),
    [("torchbench", False, True), ("torchbench", True, False), ("corpus", False, False)],
)
def test_graphs_of_a_corpus_are_not_compared_as_models(
    suite: str, *, is_decided: bool, expected: bool
) -> None:
    """What would be decided is on the graph again, of which nothing can be assembled."""
    model = Recorded(key="model", setting=factories.setting(), is_decided=is_decided)
    plan = factories.plan(suite=suite)
    assert preparing._is_compared(plan, plan.cases[0], model) is expected
    varying = factories.case(dynamic=True)
    assert not preparing._is_compared(plan, varying, model)


def idle_model(
    path: Path, arm: str, candidates: tuple[str, ...]
) -> tuple[dict[str, bool], Decisions]:
    """Ask whether a model of one graph, with a decision, is timed; give also the decisions."""
    decisions = Decisions(path / "decisions.sqlite")
    decided = factories.decision(arm=arm)
    decisions.put(decided)
    graph = RecordedGraph(key=decided.key, part=Part.INFERENCE, op_count=1, calls=1)
    model = Recorded(key="model", setting=decided.setting, graphs=(graph,))
    case = factories.case(arms=(BASELINE, ENSEMBLE))
    tuning = Tuning(decisions=str(decisions.path), candidates=candidates)
    manifest = factories.manifest(factories.plan(cases=(case,), tuning=tuning))
    return preparing._timed_models(manifest, [(case, model)], decisions), decisions


def test_a_model_that_nothing_else_can_compute_is_not_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its only graph stays eager, so the model is; a run says so and finds it decided next time."""
    timed, decisions = idle_model(tmp_path, "eager", ("inductor",))
    assert timed == {}
    model, graph = sorted(decisions.all(), key=lambda each: each.subject is Subject.GRAPH)
    assert (model.key, model.arm) == ("model", "eager")
    assert model.tuning_s == graph.tuning_s > 0  # what deciding that took
    assert "eager, as its graph is; no other candidate is left" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arm", "candidates"), [("inductor", ("inductor",)), ("eager", ("inductor", "aot_inductor"))]
)
def test_a_model_with_something_to_choose_is_timed(
    arm: str, candidates: tuple[str, ...], tmp_path: Path
) -> None:
    """Its graph's winner against eager, or another backend for the whole."""
    timed, decisions = idle_model(tmp_path, arm, candidates)
    assert list(timed.values()) == [True]
    assert {each.subject for each in decisions.all()} == {Subject.GRAPH}


@pytest.mark.parametrize(
    ("cases", "recorded", "says"),
    [
        (2, 2, "everything was decided before"),
        (2, 1, "1 of 2 models were decided before"),
        (2, 0, "nothing can be decided"),
    ],
)
def test_what_was_found_is_called_decided(cases: int, recorded: int, says: str) -> None:
    """Not what could not be recorded."""
    assert says in preparing._known(cases, recorded)
