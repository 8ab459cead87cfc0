"""How scripts end: what they refuse, which exit code they return, what they go on with."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import backends
import check_timing
import checker
import checkout_models
import cut_graphs
import ensemble_figures
import exit_codes
import factories
import index
import kill_and_resume
import many_cases
import narrower
import pytest
import short_calls
import simulated_comparisons
import start_up
import their_commands
import without_private_names

from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.store import store
from dynamometer.results.values.cases import Scale
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def ended(monkeypatch: pytest.MonkeyPatch, script: ModuleType, *words: object) -> object:
    """Call a script, and return its exit code."""
    monkeypatch.setattr(sys, "argv", [f"{script.__name__}.py", *map(str, words)])
    try:
        return script.main()
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        (simulated_comparisons, ("--seeds", 3), "--seeds must be at least 4"),
        (short_calls, ("--processes", 1), "--processes must be at least 2"),
        (many_cases, ("--cases", 0), "--cases must be at least 1"),
        (narrower, ("nowhere",), "nowhere"),
        (checker, ("--model", "torchbench/nosuch"), "unknown model 'torchbench/nosuch'"),
        (checker, ("--model", "torchbench/resnet81"), "did you mean torchbench/resnet18"),
        (cut_graphs, ("predict", "nowhere", "--decisions", "d"), "nowhere holds no parts"),
        (cut_graphs, ("page", "nowhere", "--decisions", "d"), "nowhere holds no parts"),
        (ensemble_figures, ("nowhere",), "no run has the arm `ensemble`"),
    ],
)
def test_what_can_not_be_done_is_said_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    script: ModuleType,
    words: tuple[object, ...],
    said: str,
) -> None:
    """With exit code 2, without a traceback, and without doing anything."""
    monkeypatch.chdir(tmp_path)
    assert ended(monkeypatch, script, *words) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_run_of_another_study_is_no_calibration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has none of the arms that are compared."""
    directory = tmp_path / "run"
    store.create(directory, factories.manifest())
    with store.RunStore(directory) as run:
        run.append(factories.measured_record())
    assert ended(monkeypatch, narrower, directory) == 2
    assert "a calibration's arms" in capsys.readouterr().err


def test_help_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even of the script that takes names."""
    monkeypatch.setattr(without_private_names, "run_without", pytest.fail)
    assert ended(monkeypatch, without_private_names, "--help") == 0


@pytest.mark.parametrize(("cases", "rows"), [(5, 5), (20, 10), (25, 13)])
def test_the_last_cases_have_a_row_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cases: int, rows: int
) -> None:
    """However few there are."""
    ended(monkeypatch, many_cases, "--cases", cases)
    table = capsys.readouterr().out.splitlines()[4:]
    assert len(table) == rows
    assert table[-1].split()[0] == str(cases)


def test_peak_memory_is_in_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux gives it in KiB."""
    usage = SimpleNamespace(ru_maxrss=1000)
    monkeypatch.setattr(index.resource, "getrusage", lambda _: usage)
    assert index._peak_mb() == 1.024


@pytest.mark.parametrize("scale", Scale)
def test_figures_of_small_models_are_marked(scale: Scale) -> None:
    """Those of tiny ones otherwise."""
    summary = summarize_case([factories.record(factories.case("net", scale=scale))])
    assert ensemble_figures._label(summary) == f"net{ {'tiny': '**', 'small': '*'}.get(scale, '') }"


def test_refused_commands_end_as_is_written() -> None:
    """A run that is not there is no fault of the harness."""
    command = "-m dynamometer resume /nowhere"
    assert start_up._time(command.split(), start_up.COMMANDS[command]) > 0


@pytest.mark.parametrize(
    ("codes", "worst"), [((), 0), ((0, 1), 0), ((0, 5, 3), 5), ((0, -9, 2), 137)]
)
def test_the_worst_code_is_of_what_could_not_be_run(codes: tuple[int, ...], worst: int) -> None:
    """Models that failed are results."""
    assert exit_codes.worst(codes) == worst


def test_scripts_return_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of all that they start."""
    done = SimpleNamespace(returncode=4, stdout="", stderr="no such device")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    monkeypatch.setattr(backends, "_arms", lambda: ["eager"])
    assert ended(monkeypatch, backends, "--run", tmp_path) == 4
    assert ended(monkeypatch, their_commands) == 4
    asked = Namespace(replicates=1)
    setting = factories.setting()
    assert cut_graphs._run(tmp_path, tmp_path, SimpleNamespace(arm="onnx"), setting, asked) == 4


@pytest.mark.parametrize(("right", "code"), [([True, True], 0), ([True, False], 1)])
def test_replaying_wrong_graphs_is_no_success(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, right: list[bool], code: int
) -> None:
    """For whoever reads the exit code alone."""
    monkeypatch.syspath_prepend(EXAMPLES)
    script = importlib.import_module("replay_corpus")
    (tmp_path / "graphs").mkdir()
    for name in ("a", "b"):
        (tmp_path / "graphs" / f"{name}.graph").touch()
    said = {"inputs": [], "origin": {"suite": "mine", "model": "net"}, "ops": {}}
    found = iter(right)
    monkeypatch.setattr(script, "load", lambda _: (None, said))
    monkeypatch.setattr(script, "replay", lambda *_: ("", next(found)))
    assert ended(monkeypatch, script, tmp_path) == code


CHECKS = (check_timing._same_arms_are_not_different, check_timing._is_not_fooled,
          check_timing._sees_five_percent)  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_without_timings_could_not_be_made(
    monkeypatch: pytest.MonkeyPatch, check: Callable[[], bool]
) -> None:
    """Arms that failed are called neither different nor alike."""
    failed = summarize_case([factories.record(outcome=factories.failure(Status.FAIL))])
    monkeypatch.setattr(check_timing, "_run", lambda *_, **__: failed)
    monkeypatch.setattr(check_timing, "measure", lambda *_: [SimpleNamespace(case=failed)])
    made = check_timing._made(check_timing.Check("same", "it is so", check), 2)
    assert made.made == 0
    assert "nothing was timed" in (made.failure or "")


def test_a_log_goes_on_behind_a_line_that_was_cut_off(tmp_path: Path) -> None:
    """What is added is not lost with it."""
    path = tmp_path / "checker.jsonl"
    path.write_text('{"what": "mutation", "model": "a"}\n{"what": "mut')
    log = checker.Log(path)
    log.add(what="right", model="b")
    log.add(what="right", model="c")
    assert [each["model"] for each in checker.Log(path).entries] == ["a", "b", "c"]


def test_models_are_read_without_a_line_that_was_cut_off(tmp_path: Path) -> None:
    """The next one does not stand behind it."""
    path = tmp_path / "models.jsonl"
    path.write_text('{"model": "a"}\n{"mod')
    assert list(checkout_models._read(path)) == ["a"]
    checkout_models._append(path, {"model": "b"})
    assert [json.loads(line)["model"] for line in path.read_text().splitlines()] == ["a", "b"]


@pytest.mark.parametrize(("code", "after_s", "killed"), [("pass", 60.0, False),
                                                          ("input()", 0.0, True)])  # fmt: skip
def test_what_ended_by_itself_was_not_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, after_s: float, *, killed: bool
) -> None:
    """It says nothing of kills."""
    monkeypatch.setattr(kill_and_resume, "GRACE_S", 0.0)
    code = "import time; time.sleep(3600)" if killed else code
    found = kill_and_resume._run_and_kill(["-c", code], str(tmp_path), after_s, 0)
    assert found.killed is killed
    assert found.faults == []


@pytest.mark.parametrize(
    ("starts", "said"),
    [
        ([(False, ["1"])], "nothing was killed"),
        ([(True, ["1"]), (False, ["1", "2"])], "1 kills: nothing lost"),
        ([(True, ["1"]), (True, ["2"])], "start 1 changed a stored record"),
    ],
)
def test_kills_are_counted_and_records_stay(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    starts: list[tuple[bool, list[str]]],
    said: str,
) -> None:
    """Also across what goes on with the run."""
    stopped: Any = iter(kill_and_resume.Stopped(*each, []) for each in starts)
    monkeypatch.setattr(kill_and_resume, "_run_and_kill", lambda *_: next(stopped))
    monkeypatch.setattr(kill_and_resume, "_run_directory", lambda runs: runs)
    monkeypatch.setattr(kill_and_resume, "_lines", lambda _: starts[-1][1])
    monkeypatch.setattr(kill_and_resume, "_check", lambda _: [])
    done = SimpleNamespace(returncode=0)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    code = ended(monkeypatch, kill_and_resume, "--kills", len(starts))
    assert said in capsys.readouterr().out
    assert code == (0 if "nothing lost" in said else 1)
