"""One sitting of a run, from the words that begin it to its exit code, without a worker."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import msgspec
import pytest
from fakes import FakeExecutor

from dynamometer.common.command_line import cli
from dynamometer.common.errors import UnfitEnvironmentError
from dynamometer.results.store import store
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.common.execution.executor import StartUp
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record

WORDS = ("--only", "alexnet", "--only", "resnet18", "--accuracy")


def press_once(case: Case, replicate: int) -> None:
    """Press Ctrl-C while a replicate is being made."""
    os.kill(os.getpid(), signal.SIGINT)


class Checking(FakeExecutor):
    """Makes records of a run that times nothing."""

    def execute(self, case: Case, replicate: int) -> Record:
        """Leave out latencies."""
        return msgspec.structs.replace(super().execute(case, replicate), measurements=())


class Unfit(FakeExecutor):
    """Can't be started."""

    def prepare(self, cases: Sequence[Case]) -> StartUp:
        """Say so."""
        msg = "no compiler"
        raise UnfitEnvironmentError(msg)


def passing(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Make records at once."""
    return Checking(experiments=("accuracy",))


def failing(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Fail on one model."""
    outcomes = {("resnet18", 0): Status.FAIL}
    return Checking(outcomes, experiments=("accuracy",))


def interrupted(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Be interrupted in the first replicate."""
    return Checking(before=press_once, experiments=("accuracy",))


def pressed_twice(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Be interrupted twice in it."""

    def press(case: Case, replicate: int) -> None:
        press_once(case, replicate)
        press_once(case, replicate)

    return Checking(before=press, experiments=("accuracy",))


def unfit(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Be none at all."""
    return Unfit()


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put runs where nothing else is."""
    monkeypatch.chdir(tmp_path)


def run(executor: str, *words: str) -> int:
    """Run two models with an executor of those above."""
    return cli.main("torchbench", [*WORDS, "--executor", f"{__name__}:{executor}", *words])


def models(folder: Path) -> list[str]:
    """Name the models that the one run below a folder has records of."""
    (directory,) = (folder / "runs").iterdir()
    return [record.case.model for record in store.read_records(directory)]


def test_a_run_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How much it will be, where the time went and where the results are; a failure is no error."""
    assert run("failing") == 0
    said = capsys.readouterr()
    assert "2 cases" in said.err
    assert "% harness)" in said.out
    assert "events.jsonl" in said.out
    assert models(tmp_path) == ["alexnet", "resnet18"]


@pytest.mark.parametrize(("executor", "stored"), [("interrupted", 1), ("pressed_twice", 0)])
def test_ctrl_c_once_and_twice(
    executor: str, stored: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once the replicate is stored, twice it is not; either way it says how to go on."""
    assert run(executor) == 130
    (directory,) = (tmp_path / "runs").iterdir()
    assert f"resume runs/{directory.name}" in capsys.readouterr().err
    assert len(models(tmp_path)) == stored


def test_what_cannot_be_started_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason; there is nothing to go on with."""
    assert run("unfit") not in {0, 1}
    said = capsys.readouterr().err
    assert "no compiler" in said
    assert "to go on later" not in said
    assert models(tmp_path) == []


def test_results_are_held_to_those_expected(capsys: pytest.CaptureFixture[str]) -> None:
    """A table is written, agreed with, and disagreed with, which is an exit code of its own."""
    assert run("passing", "--expect", "table.csv", "--update-expected") == 0
    assert "2 results put into table.csv" in capsys.readouterr().out
    assert run("passing", "--expect", "table.csv") == 0
    assert "0 of 2 results are not those expected" in capsys.readouterr().out
    assert run("failing", "--expect", "table.csv") == 1
    assert "1 of 2 results are not those expected" in capsys.readouterr().out
