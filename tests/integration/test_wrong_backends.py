"""Backends that compute something wrong are found out, each with the path of what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from conftest import hostile_manifest, run_manifest

from dynamometer.common.command_line import cli
from dynamometer.common.ending import ExitCode
from dynamometer.common.errors import UnfitEnvironmentError
from dynamometer.results.values.cases import BASELINE, Mode
from dynamometer.results.values.parity import Parity
from dynamometer.results.values.records import ArmResult, Stage, Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

INFERENCE = {
    "perturbs_one_element": "output[1]: 1 of 512 elements are wrong",
    "returns_other_strides": "output[0]: expected shape (8, 64) of torch.float32, got shape",
    "swaps_outputs": "output[0]: ",
    "returns_nan": "output[0]: 1 of 512 elements are wrong, the worst at [0, 0]: nan where",
    "rounds_to_bfloat16": "output[0]: ",
    "mutates_an_input": "change of inputs.args[0]: ",
}
HONEST = ("wrong_backends:honest", "eager", "aot_eager")


def judge(
    names: Sequence[str], mode: Mode, tmp_path: pytest.TempPathFactory
) -> Mapping[str, ArmResult]:
    """Run all backends as arms of one case, and give each arm's result by the backend's name."""
    arms = (*(f"wrong_backends:{name}" for name in names), *HONEST)
    manifest = hostile_manifest(["two_outputs"], arms, mode=mode, experiments=("accuracy",))
    record = run_manifest(manifest, tmp_path.mktemp(mode) / "run")["two_outputs"]
    return {result.arm.removeprefix("wrong_backends:"): result for result in record.arms}


@pytest.fixture(scope="module")
def inference(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ArmResult]:
    """Every arm's result in inference."""
    return judge(list(INFERENCE), Mode.INFERENCE, tmp_path_factory)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ArmResult]:
    """Every arm's result in training."""
    return judge(["drops_a_gradient"], Mode.TRAINING, tmp_path_factory)


@pytest.mark.parametrize("name", INFERENCE)
def test_wrong_results_are_found(name: str, inference: Mapping[str, ArmResult]) -> None:
    """The outcome names the path, and what is wrong there."""
    outcome = inference[name].outcome
    assert outcome.status is Status.FAIL_ACCURACY
    assert (outcome.reason or "").startswith(INFERENCE[name])


def test_a_dropped_gradient_is_found(training: Mapping[str, ArmResult]) -> None:
    """In training every parameter's gradient is compared."""
    outcome = training["drops_a_gradient"].outcome
    assert outcome.status is Status.FAIL_ACCURACY
    assert "gradients.first.weight" in (outcome.reason or "")


@pytest.mark.parametrize("name", [BASELINE, "honest", "eager", "aot_eager"])
def test_right_results_are_not_accused(
    name: str, inference: Mapping[str, ArmResult], training: Mapping[str, ArmResult]
) -> None:
    """A backend that computes what eager does passes, in either mode."""
    assert inference[name].outcome.status is Status.PASS
    assert training[name].outcome.status is Status.PASS


@pytest.mark.parametrize("raises", [False, True])
def test_a_backend_that_fails_on_some_graphs(tmp_path: Path, *, raises: bool) -> None:
    """These run in eager, are counted, and the rest is compiled, unless errors are wanted."""
    arms = ["wrong_backends:fails_on_exponentials", "wrong_backends:fails"]
    manifest = hostile_manifest(
        ["two_graphs"], arms, experiments=("accuracy",), raise_backend_errors=raises
    )
    record = run_manifest(manifest, tmp_path / "run")["two_graphs"]
    some, every = (result for result in record.arms if result.arm != BASELINE)
    assert every.outcome.status is Status.FAIL
    assert "not today" in (every.outcome.reason or "")
    if raises:
        assert some.outcome.status is Status.FAIL
        assert "no such operator: exp" in (some.outcome.reason or "")
    else:
        assert some.outcome.status is Status.PASS
        assert some.capture is not None
        assert (some.capture.graphs, some.capture.fallbacks) == (2, 1)
        assert some.capture.fallback_reason == "NotImplementedError: no such operator: exp"


def test_parity_asks_of_a_backend_what_it_fails_on(tmp_path: Path) -> None:
    """In eager such a graph is right, and says nothing of the backend, in either mode."""
    arms = ["wrong_backends:fails_on_exponentials"]
    manifest = hostile_manifest(["two_graphs"], arms, experiments=("parity",))
    record = run_manifest(manifest, tmp_path / "run")["two_graphs"]
    outcome = record.arms[-1].outcome
    assert (outcome.status, record.outcome.status) == (Status.FAIL, Status.FAIL)
    assert "no such operator: exp" in (outcome.reason or "")
    (as_one,) = msgspec.json.decode(record.found, type=Parity).full_graph
    assert (as_one.outcome.status, as_one.outcome.reason) == (outcome.status, outcome.reason)


@pytest.mark.parametrize("name", ["tires_alone", "tires_together"])
def test_an_arm_that_fails_while_it_is_timed_takes_no_other_along(
    name: str, tmp_path: Path
) -> None:
    """It is out, and says how; the others are timed without it."""
    arms = [f"wrong_backends:{name}", "eager"]
    record = run_manifest(hostile_manifest(["two_outputs"], arms), tmp_path / "run")["two_outputs"]
    outcomes = {result.arm: result.outcome for result in record.arms}
    tired = outcomes[f"wrong_backends:{name}"]
    assert (tired.status, tired.stage) == (Status.FAIL, Stage.MEASURE)
    assert (tired.reason or "").startswith("RuntimeError: tired")
    assert outcomes[BASELINE].status is outcomes["eager"].status is Status.PASS
    measured = {(each.arm, each.metric) for each in record.measurements}
    assert {(BASELINE, "latency"), ("eager", "latency"), ("eager", "compile_time")} <= measured
    assert (f"wrong_backends:{name}", "latency") not in measured


def test_an_arm_that_goes_wrong_while_it_is_timed_has_no_figures(tmp_path: Path) -> None:
    """Calls are compared again when it was timed; what was timed of others stays."""
    arms = ["wrong_backends:fades", "eager"]
    record = run_manifest(hostile_manifest(["two_outputs"], arms), tmp_path / "run")["two_outputs"]
    outcomes = {result.arm: result.outcome for result in record.arms}
    assert outcomes[arms[0]].status is Status.FAIL_ACCURACY
    assert (outcomes[arms[0]].reason or "").startswith("later call after it was timed: output[0]")
    assert outcomes[BASELINE].status is outcomes["eager"].status is Status.PASS
    timed = {each.arm for each in record.measurements if each.metric == "latency"}
    assert timed == {BASELINE, "eager"}


@pytest.mark.parametrize("experiment", ["accuracy", "speedup"])
def test_an_arm_that_changes_eager_takes_no_other_along(experiment: str, tmp_path: Path) -> None:
    """It doesn't pass, though its own results are right; the others are run without it.

    Beside an eager that sleeps they would seem a hundred times as fast.
    """
    arms = ["wrong_backends:replaces_relu", "wrong_backends:avoids_relu"]
    manifest = hostile_manifest(["two_outputs"], arms, experiments=(experiment,))
    record = run_manifest(manifest, tmp_path / "run")["two_outputs"]
    outcomes = {result.arm: result.outcome for result in record.arms}
    assert outcomes[arms[0]].status is Status.NONDETERMINISTIC
    assert "since the arms are there eager differs: by the arm's" in (
        outcomes[arms[0]].reason or ""
    )
    assert outcomes[BASELINE].status is outcomes[arms[1]].status is Status.PASS
    timed = {each.arm for each in record.measurements if each.metric == "latency"}
    assert timed == ({BASELINE, arms[1]} if experiment == "speedup" else set())


@pytest.mark.parametrize("experiment", ["accuracy", "speedup"])
def test_no_arm_is_to_blame_for_a_model_that_counts_its_calls(
    experiment: str, tmp_path: Path
) -> None:
    """Eager does the same by then. What is wrong from the first call on is still found."""
    arms = ["eager", "wrong_backends:swaps_outputs"]
    manifest = hostile_manifest(["counts_calls"], arms, experiments=(experiment,))
    record = run_manifest(manifest, tmp_path / "run")["counts_calls"]
    *right, wrong = record.arms
    assert wrong.outcome.status is Status.FAIL_ACCURACY
    for result in right:
        assert result.outcome.status is Status.PASS, result
        said = [each for each in result.unchecked if "keeps state of its own" in each]
        said += [each for each in result.unchecked if "eager differs by then" in each]
        assert said, result


def test_what_is_logged_is_left_out_where_no_compiling_is_timed(tmp_path: Path) -> None:
    """And is there again for a study that times it, whose workers have the same fork server."""
    arms, ends = ["wrong_backends:wants_what_is_logged"], {}
    for study in ("accuracy", "parity", "speedup"):
        manifest = hostile_manifest(
            ["two_outputs"], arms, experiments=(study,), raise_backend_errors=True
        )
        record = run_manifest(manifest, tmp_path / study)["two_outputs"]
        ends[study] = record.arms[-1].outcome.status
    assert ends == {"accuracy": Status.FAIL, "parity": Status.FAIL, "speedup": Status.PASS}


def test_an_arm_that_crashes_takes_no_other_along(tmp_path: Path) -> None:
    """Another process measures the others, and only the one that crashed has no figures."""
    arms = ["wrong_backends:crashes", "eager"]
    record = run_manifest(hostile_manifest(["two_outputs"], arms), tmp_path / "run")["two_outputs"]
    outcomes = {result.arm: result.outcome for result in record.arms}
    assert [*outcomes] == [BASELINE, *arms]
    crashed = outcomes[arms[0]]
    assert (crashed.status, record.outcome.status) == (Status.CRASH, Status.CRASH)
    assert crashed.reason == "killed by SIGSEGV at stage compile of wrong_backends:crashes"
    assert outcomes[BASELINE].status is outcomes["eager"].status is Status.PASS
    measured = {(each.arm, each.metric) for each in record.measurements}
    assert {(BASELINE, "latency"), ("eager", "latency"), ("eager", "compile_time")} <= measured
    assert {each.arm for each in record.absent if each.metric == "latency"} == {arms[0]}


def test_a_backend_that_ends_the_process_that_imports_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no mistake on the command line; what was written is quoted, and kept."""
    (tmp_path / "mine.py").write_text(NET)
    backend = "backend_that_ends_its_importer:compiles"
    runs = tmp_path / "runs"
    words = ["--backend", "eager", "--backend", backend, "--output-dir", str(runs)]
    assert cli.main(None, ["run", str(tmp_path / "mine.py"), *words]) == ExitCode.FAULT
    said = capsys.readouterr().err
    assert f"killed by SIGSEGV at stage load of {backend}" in said
    assert "Fatal Python error: Segmentation fault" in said
    (log,) = [each for each in runs.glob("*/logs/*.log") if str(each) in said]
    assert "backend_that_ends_its_importer.py" in log.read_text()


def test_a_backend_that_lacks_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Alone it is refused as one of ours is, beside another it is left out."""
    (tmp_path / "mine.py").write_text(NET)
    words = ["run", str(tmp_path / "mine.py"), "--accuracy", "--output-dir", str(tmp_path / "runs")]
    words += ["--backend", "wrong_backends:lacks_a_package"]
    assert cli.main(None, words) == UnfitEnvironmentError.exit_code
    assert "error: lacking needs the package no_such_package: pip" in capsys.readouterr().err
    assert list((tmp_path / "runs").iterdir()) == []
    assert cli.main(None, [*words, "--backend", "eager"]) == ExitCode.DONE
    assert "lacking needs the package no_such_package" in capsys.readouterr().out


def test_what_is_no_backend_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is measured."""
    (tmp_path / "mine.py").write_text(NET)
    words = [
        "--backend",
        "eager",
        "--backend",
        "string:digits",
        "--output-dir",
        str(tmp_path / "runs"),
    ]
    assert cli.main(None, ["run", str(tmp_path / "mine.py"), *words]) == ExitCode.USAGE
    says = "error: backend 'string:digits' can't be loaded: its type is str, which lacks compile"
    assert says in capsys.readouterr().err


NET = """
import torch

def net():
    return torch.nn.Linear(2, 2), torch.ones(1, 2)
"""
