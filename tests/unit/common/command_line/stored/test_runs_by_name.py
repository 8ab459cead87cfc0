"""Commands take a run by the name that `ls runs` prints."""

from __future__ import annotations

import sys
from pathlib import Path

import factories
import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.command_line.stored.runs import run_directory
from dynamometer.results.store import store

NAME = "20260101-000000-abcdef"


def store_run(runs: Path) -> Path:
    """Store a run with one record, and go to the folder above all runs."""
    plan = factories.plan(factories.model_spec("alexnet"))
    manifest = factories.manifest(plan, program=f"{sys.executable} -c pass")
    store.create(runs / NAME, manifest)
    with store.RunStore(runs / NAME) as events:
        events.append(factories.measured_record(plan.cases[0]))
    return runs / NAME


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run below the usual folder of the current directory."""
    monkeypatch.chdir(tmp_path)
    return store_run(Path("runs"))


COMMANDS = (
    ("show", NAME),
    ("show", NAME, "alexnet"),
    ("repro", NAME, "alexnet"),
    ("export", NAME, "--format", "junit"),
    ("report", NAME),
    ("rm", "--yes", NAME),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_name_is_taken(
    run: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """What `ls runs` prints can be typed."""
    assert cli.main(None, ["ls", "runs"]) == 0
    assert NAME in capsys.readouterr().out
    assert cli.main(None, [*words]) == 0
    assert run.exists() == (words[0] != "rm")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_name_is_taken_below_output_dir(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs may be elsewhere."""
    store_run(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    assert cli.main(None, [*words, "--output-dir", "elsewhere"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [(("resume", NAME), "begun under other conditions"), (("calibrate", "--from", NAME), "is no")],
    ids=["resume", "calibrate"],
)
def test_the_run_of_a_name_is_told_with_its_folder(
    run: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands that can't use this one have found it."""
    assert cli.main(None, [*words]) != 0
    assert f"{run} {said}" in capsys.readouterr().err.replace("was ", "")


def test_a_path_comes_before_a_name(run: Path) -> None:
    """A word that is a path is that, and no name leads out of the folder."""
    assert run_directory(Path(NAME), Path("runs")) == run
    assert run_directory(Path("..", "runs", NAME), Path("runs")) == Path("..", "runs", NAME)
    Path(NAME).mkdir()
    assert run_directory(Path(NAME), Path("runs")) == Path(NAME)
    assert run_directory(Path("x" * 300), Path("runs")) == Path("x" * 300)
