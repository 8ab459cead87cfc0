"""One sitting of a run, from the words that begin it to its exit code, without a worker."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from fakes import FakeExecutor, send_itself

from dynamometer.common.command_line import cli
from dynamometer.common.command_line.json_events import JsonEvents
from dynamometer.common.errors import UnfitEnvironmentError
from dynamometer.common.execution.executors import local
from dynamometer.results.store import store
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.execution.executor import StartUp
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
WORDS = ("--only", "alexnet", "--only", "resnet18", "--accuracy")


def press_once(case: Case, replicate: int) -> None:
    """Press Ctrl-C while a replicate is being made."""
    send_itself(signal.SIGINT)


class Checking(FakeExecutor):
    """Makes records of a run that times nothing."""

    def execute(self, case: Case, replicate: int) -> Record:
        """Leave out latencies."""
        return msgspec.structs.replace(super().execute(case, replicate), measurements=())


class Beside(Checking):
    """Executes several cases at a time."""

    def beside(self) -> Beside:
        """Return another one."""
        return Beside(experiments=self.experiments)


class Unfit(FakeExecutor):
    """Can't be started."""

    def prepare(self, cases: Sequence[Case]) -> StartUp:
        """Say so."""
        msg = "no compiler"
        raise UnfitEnvironmentError(msg)


def passing(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Make records at once."""
    return Checking(experiments=("accuracy",))


def side_by_side(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Make records of several cases at a time."""
    return Beside(experiments=("accuracy",))


def failing(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Fail on one model."""
    outcomes = {("resnet18", 0): Status.FAIL}
    return Checking(outcomes, experiments=("accuracy",))


def lost(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Have the harness fail on one model, each time."""
    outcomes = {("resnet18", 0): Status.INFRA}
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


def test_the_last_line_says_what_can_be_attempted_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where something ended by a fault of the harness; a model's own failure is a result."""
    assert run("failing") == 0
    assert "resume" not in capsys.readouterr().err
    shutil.rmtree(tmp_path / "runs")
    assert run("lost") == 3
    said = capsys.readouterr()
    (directory,) = Path("runs").iterdir()
    expected = "1 case ended by a fault of the harness; to attempt it again: "
    last = said.err.splitlines()[-1]
    assert last.startswith(expected)
    assert last.endswith(f"resume {directory}")
    assert "100%, 1/1" in said.out
    assert cli.main(None, ["show", str(directory)]) == 0
    assert f"{directory.name}: done, 1 infra" in capsys.readouterr().out


def test_what_stops_every_resume_is_no_way_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that has just failed is not what to do next; the error says what is."""
    assert run("passing") == 0
    (directory,) = Path("runs").iterdir()
    capsys.readouterr()
    with store.RunStore(directory):
        assert cli.main(None, ["resume", str(directory)]) == 3
    said = capsys.readouterr().err
    assert "is being written by another process; wait for it, or stop it" in said
    with (directory / store.EVENTS).open("ab") as file:
        file.write(b"nonsense\n")
    assert cli.main(None, ["resume", str(directory)]) == 3
    said += capsys.readouterr().err
    assert "events.jsonl:3 is damaged" in said
    assert "to go on later" not in said


def test_without_a_record_there_is_nothing_to_point_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run's directory is removed."""

    def interrupt(case: Case, replicate: int) -> None:
        raise KeyboardInterrupt

    def make(*_: object) -> FakeExecutor:
        return Checking(before=interrupt, experiments=("accuracy",))

    monkeypatch.setattr(sys.modules[__name__], "passing", make)
    assert run("passing") == 130
    said = capsys.readouterr()
    assert "nothing was measured" in said.err
    assert "results:" not in said.out
    assert "harness" not in said.out


def test_of_cases_side_by_side_no_share_is_the_harness_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when all are done: their seconds add up to more than passed."""
    monkeypatch.setattr(local, "LocalExecutor", side_by_side)
    assert cli.main("torchbench", [*WORDS, "-j", "2"]) == 0
    said = capsys.readouterr().out
    assert "2 cases at a time" in said
    assert "% harness)" not in said


def by_itself(executor: str) -> subprocess.CompletedProcess[str]:
    """Run two models in a process of its own, which a Ctrl-C that nobody handles would end."""
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "import test_session; sys.exit(test_session.run(sys.argv[1]))"
    return subprocess.run(
        [sys.executable, "-c", code, executor], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests", HERE)))},
    )  # fmt: skip


@pytest.mark.slow
def test_ctrl_c_once(tmp_path: Path) -> None:
    """The replicate is stored, and how to go on is said."""
    ended = by_itself("interrupted")
    assert ended.returncode == 130, ended.stderr
    (directory,) = (tmp_path / "runs").iterdir()
    assert f"resume runs/{directory.name}" in ended.stderr
    assert len(models(tmp_path)) == 1


@pytest.mark.slow
def test_ctrl_c_twice(tmp_path: Path) -> None:
    """The replicate is not stored; without any there is nothing to go on with."""
    ended = by_itself("pressed_twice")
    assert ended.returncode == 130, ended.stderr
    assert "nothing was measured" in ended.stderr
    assert list((tmp_path / "runs").iterdir()) == []


def test_what_cannot_be_started_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason; there is nothing to go on with."""
    assert run("unfit") not in {0, 1}
    said = capsys.readouterr().err
    assert "no compiler" in said
    assert "to go on later" not in said
    assert list((tmp_path / "runs").iterdir()) == []


def test_results_are_held_to_those_expected(capsys: pytest.CaptureFixture[str]) -> None:
    """A table is written, agreed with, and disagreed with, which is an exit code of its own."""
    assert run("passing", "--expect", "table.csv", "--update-expected") == 0
    assert "2 results put into table.csv" in capsys.readouterr().out
    assert run("passing", "--expect", "table.csv") == 0
    assert "0 of 2 results are not those expected" in capsys.readouterr().out
    assert run("failing", "--expect", "table.csv") == 1
    assert "1 of 2 results are not those expected" in capsys.readouterr().out


def test_results_are_held_to_a_table_of_pytorch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that a run is exported to agrees with that run, and not with another."""
    assert run("passing") == 0
    (directory,) = (tmp_path / "runs").iterdir()
    words = ["export", str(directory), "--format", "expected-accuracy", "-o", "theirs.csv"]
    assert cli.main(None, words) == 0
    table = (tmp_path / "theirs.csv").read_text()
    assert table.split() == ["name,accuracy,graph_breaks", "alexnet,pass,", "resnet18,pass,"]
    assert run("passing", "--expect", "theirs.csv") == 0
    assert "0 of 2 results are not those expected in theirs.csv" in capsys.readouterr().out
    assert run("failing", "--expect", "theirs.csv") == 1
    said = capsys.readouterr().out
    assert "regression: resnet18 inductor: pass became fail_to_run" in said
    assert "1 of 2 results are not those expected" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--update-expected"], "dynamometer export RUN --format expected-accuracy"),
        (["--backend", "eager", "--backend", "inductor"], "which is of one backend"),
    ],
)
def test_a_table_of_pytorch_is_of_one_backend_and_is_not_updated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    """Both are refused before anything runs."""
    (tmp_path / "theirs.csv").write_text("name,accuracy,graph_breaks\n\nalexnet,pass,0\n")
    assert run("passing", "--expect", "theirs.csv", *words) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_events_of_a_run_that_can_not_go_on_have_no_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The exit code says why."""
    assert run("unfit", "--json") == 4
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["event"] for each in events] == ["run_started"]


def test_other_programs_read_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output has JSON alone, an object a line; text goes to standard error."""
    assert run("failing", "--json") == 0
    said = capsys.readouterr()
    events = [json.loads(line) for line in said.out.splitlines()]
    assert [each["event"] for each in events] == [
        "run_started",
        *["case_started", "record", "case_ended"] * 2,
        "run_ended",
    ]
    (directory,) = (tmp_path / "runs").iterdir()
    assert events[0]["directory"] == f"runs/{directory.name}"
    assert (events[0]["cases"], events[-1]["state"]) == (2, "done")
    stored = [json.loads(line) for line in (directory / store.EVENTS).read_text().splitlines()]
    assert [each["record"] for each in events if each["event"] == "record"] == stored
    for text in ("2 cases", "% harness)", "events.jsonl", "pass rate"):
        assert text in said.err


def test_other_programs_learn_of_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    """The last event says so; the command that goes on asks for events as well."""
    assert run("interrupted", "--json") == 130
    said = capsys.readouterr()
    assert json.loads(said.out.splitlines()[-1])["state"] == "interrupted"
    assert re.search(r"resume \S+ --json", said.err)


def test_who_stops_reading_interrupts_the_run() -> None:
    """As where text is read, which ends with 141."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        events = JsonEvents(stream)
        with pytest.raises(BrokenPipeError):
            events.run_ended(factories.manifest(), is_done=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)  # or closing fails as well
