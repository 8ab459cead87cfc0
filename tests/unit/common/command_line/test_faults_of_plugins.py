"""What a run, and what is made of it, comes to where something of a plugin fails."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from fakes import FakeExecutor

from dynamometer.common.command_line import cli
from dynamometer.common.execution.executor import StartUp
from dynamometer.results.exports.export import Document
from dynamometer.results.store import store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.exports.export import StoredRun
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record

WORDS = ("--only", "alexnet", "--only", "resnet18", "--accuracy")


def fail(error: BaseException | None = None) -> None:
    """Raise an error."""
    raise error or ValueError("broken")


class Sink:
    """Puts results nowhere."""

    paths: Sequence[Path] = ()

    def __init__(self, *_: object) -> None:
        """Take what sinks are made of."""

    def write(self, records: Sequence[Record]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class FailsInWriting(Sink):
    """Each time."""

    def write(self, records: Sequence[Record]) -> None:
        """Fail."""
        fail()


class FailsOnAFile(Sink):
    """As on a full disk."""

    def write(self, records: Sequence[Record]) -> None:
        """Fail."""
        fail(OSError("broken"))


class ExitsInWriting(Sink):
    """As a script would."""

    def write(self, records: Sequence[Record]) -> None:
        """Fail."""
        fail(SystemExit("broken"))


class FailsInClosing(Sink):
    """When all is measured."""

    def close(self) -> None:
        """Fail."""
        fail()


class HasNoPaths(Sink):
    """When it is asked for them."""

    def __init__(self, *_: object) -> None:
        """Have some at first."""
        self.paths = ()

    def close(self) -> None:
        """Have none any more."""
        self.paths = None  # type: ignore[assignment]  # likewise


class HasNoClose:
    """Nor paths."""

    def __init__(self, *_: object) -> None:
        """Take what sinks are made of."""

    def write(self, records: Sequence[Record]) -> None:
        """Do nothing."""


class FailsAtOnce(Sink):
    """Before anything is measured."""

    def __init__(self, *_: object) -> None:
        """Fail."""
        fail()


class Executor(FakeExecutor):
    """Makes records of a run that times nothing."""

    def __init__(self, *_: object) -> None:
        """Take what executors are made of."""
        super().__init__(experiments=("accuracy",))

    def execute(self, case: Case, replicate: int) -> Record:
        """Leave out latencies."""
        return msgspec.structs.replace(super().execute(case, replicate), measurements=())


class Interrupted(Executor):
    """By Ctrl-C, in the second model."""

    def execute(self, case: Case, replicate: int) -> Record:
        """Be interrupted, unless it is the first."""
        if self.executed:
            raise KeyboardInterrupt
        return super().execute(case, replicate)


class PreparesNothing(Executor):
    """Nor says what that took."""

    def prepare(self, cases: Sequence[Case]) -> StartUp:
        """Return nothing."""
        return None  # type: ignore[return-value]  # what a plugin may do


class PreparesNonsense(Executor):
    """And says what can't be."""

    def prepare(self, cases: Sequence[Case]) -> StartUp:
        """Return what looks like it."""
        return StartUp(seconds=7)  # type: ignore[arg-type]  # what a plugin may do


class MakesNothing(Executor):
    """In place of a record."""

    def execute(self, case: Case, replicate: int) -> Record:
        """Return nothing."""
        return None  # type: ignore[return-value]  # what a plugin may do


class MakesNonsense(Executor):
    """That no file could hold."""

    def execute(self, case: Case, replicate: int) -> Record:
        """Return a record of nonsense."""
        return msgspec.structs.replace(super().execute(case, replicate), notes=7)


class MakesAnother(Executor):
    """Of which there would be no end."""

    def execute(self, case: Case, replicate: int) -> Record:
        """Return the record of a replicate that nobody has asked for."""
        return super().execute(case, replicate + 1)


class FailsInTheSecond(Executor):
    """Of two models."""

    def execute(self, case: Case, replicate: int) -> Record:
        """Fail, unless it is the first."""
        if self.executed:
            fail()
        return super().execute(case, replicate)


class FailsTwice(FailsInTheSecond):
    """The second time as it is closed, which hides nothing."""

    def close(self) -> None:
        """Fail."""
        fail(OSError("not closed"))


class FailsAtTheEnd(Executor):
    """When all is measured."""

    def close(self) -> None:
        """Fail."""
        fail()


def nothing(run: StoredRun) -> None:
    """Export nothing, and not even an empty list."""


def text(run: StoredRun) -> str:
    """Export a text."""
    return "text"


def pairs(run: StoredRun) -> list[tuple[str, str]]:
    """Export what looks like documents."""
    return [("a.txt", "text")]


def octets(run: StoredRun) -> list[Document]:
    """Export what is no text."""
    return [Document("a.txt", b"text")]  # type: ignore[arg-type]  # what a plugin may do


def surrogates(run: StoredRun) -> list[Document]:
    """Export what no file can hold."""
    return [Document("a.txt", "\ud800")]


def leaves(run: StoredRun) -> None:
    """End the program."""
    raise SystemExit(0)


def one_by_one(run: StoredRun) -> object:
    """Export a document."""
    yield Document("a.txt", "text")


@pytest.fixture(autouse=True)
def installed(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Register all of the above, and put runs where nothing else is."""
    monkeypatch.chdir(tmp_path)
    groups: dict[str, list[type | object]] = {
        "sinks": [FailsInWriting, FailsOnAFile, ExitsInWriting, FailsInClosing, HasNoPaths,
                  HasNoClose, FailsAtOnce],
        "executors": [Executor, Interrupted, PreparesNothing, PreparesNonsense, MakesNothing,
                      MakesNonsense, MakesAnother, FailsInTheSecond, FailsTwice, FailsAtTheEnd],
        "exports": [nothing, text, pairs, octets, surrogates, leaves, one_by_one],
    }  # fmt: skip
    lines = []
    for kind, found in groups.items():
        names = [each.__name__ for each in found]  # type: ignore[attr-defined]  # all have names
        lines += [f"[dynamometer.{kind}]", *(f"{name} = {__name__}:{name}" for name in names)]
    plugin.write_text("\n".join(lines))


def run(*words: str, executor: str = "Executor") -> int:
    """Run two models."""
    return cli.main("torchbench", [*WORDS, "--executor", executor, *words])


def the_run() -> Path:
    """Return the directory of the one there is."""
    (directory,) = Path("runs").iterdir()
    return directory


def origin(kind: str, name: str) -> str:
    """Return how a fault is said to be of a plugin."""
    return f"the {kind} '{name}' of {__name__}:{name} (package some-plugin) failed"


@pytest.mark.parametrize(
    "sink", ["FailsInWriting", "FailsOnAFile", "ExitsInWriting", "FailsInClosing", "HasNoPaths"]
)
def test_a_sink_that_fails_ends_no_run(sink: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All is measured, other sinks are closed, and what failed is said at the end."""
    assert run("--sink", sink) == 3
    said = capsys.readouterr()
    assert len(store.read_records(the_run())) == 2
    assert "100%, 2/2" in said.out
    last = said.err.splitlines()[-1]
    assert last.startswith(f"error: {origin('sink', sink)} with ")
    assert last.endswith("; it was left out from then on")
    assert said.err.count(sink + "'") == 1
    assert "resume" not in said.err
    assert "Traceback" not in said.err


def test_what_has_failed_is_in_no_advice(capsys: pytest.CaptureFixture[str]) -> None:
    """To finish the run: it would fail again."""
    assert run("--sink", "FailsInWriting", "--sink", "csv", executor="Interrupted") == 130
    said = capsys.readouterr().err
    assert origin("sink", "FailsInWriting") in said
    assert re.search(r"to finish: .*resume runs/\S+ --sink csv$", said, re.MULTILINE)
    for sink in ("FailsAtOnce", "HasNoClose"):
        assert cli.main(None, ["resume", str(the_run()), "--sink", sink]) in {2, 3}
        assert re.search(
            r"to go on later: .*resume runs/\S+$", capsys.readouterr().err, re.MULTILINE
        )


@pytest.mark.parametrize(
    ("sink", "code", "says"),
    [
        ("FailsAtOnce", 3, "(package some-plugin) failed with ValueError: broken"),
        (
            "HasNoClose",
            2,
            "(package some-plugin): its type is HasNoClose, which lacks close, paths",
        ),
    ],
)
def test_a_sink_that_is_none_is_known_before_anything_is_measured(
    sink: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one that there isn't."""
    assert run("--sink", sink) == code
    assert says in capsys.readouterr().err
    assert list(Path("runs").iterdir()) == []


@pytest.mark.parametrize(
    ("executor", "says"),
    [
        ("PreparesNothing", ": prepare gives NoneType, and no StartUp"),
        ("PreparesNonsense", " with ValidationError: Expected `object`, got `int`"),
        ("MakesNothing", ": execute gives NoneType, and no Record"),
        ("MakesNonsense", " with ValidationError: Expected `array`, got `int`"),
        ("MakesAnother", ": execute gives the Record of another replicate"),
    ],
)
def test_an_executor_that_does_not_do_its_work(
    executor: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends the run, and Dynamometer isn't blamed."""
    assert run(executor=executor) == 3
    said = capsys.readouterr().err
    assert f"error: {origin('executor', executor)}{says}" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("executor", ["FailsInTheSecond", "FailsTwice"])
def test_what_an_executor_has_measured_is_kept(
    executor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it fails with later hides nothing, and the way on is said."""
    assert run(executor=executor) == 3
    said = capsys.readouterr().err
    assert len(store.read_records(the_run())) == 1
    assert "to go on later" in said
    assert said.splitlines()[-1].startswith(
        f"error: {origin('executor', executor)} with ValueError: broken ("
    )
    assert ("OSError: not closed" in said) == (executor == "FailsTwice")


def test_an_executor_that_is_not_closed_takes_nothing_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All is measured and told."""
    assert run("--json", executor="FailsAtTheEnd") == 3
    said = capsys.readouterr()
    assert said.err.count(origin("executor", "FailsAtTheEnd")) == 1
    assert "100%, 2/2" in said.err
    assert json.loads(said.out.splitlines()[-1])["event"] == "run_ended"


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("nothing", ": it gives NoneType, and no Document of two texts"),
        ("text", ": it gives str, and no Document of two texts"),
        ("pairs", ": it gives tuple, and no Document of two texts"),
        ("octets", ": it gives Document of str and bytes, and no Document of two texts"),
        ("surrogates", " with UnicodeEncodeError: "),
        ("leaves", " with SystemExit: 0"),
    ],
)
def test_an_export_that_gives_no_documents(
    form: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its package is named."""
    assert run() == 0
    capsys.readouterr()
    assert cli.main(None, ["export", str(the_run()), "--format", form]) == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: {origin('export', form)}{says}")


def test_an_export_may_give_documents_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever they can be taken from."""
    assert run() == 0
    capsys.readouterr()
    assert cli.main(None, ["export", str(the_run()), "--format", "one_by_one"]) == 0
    assert capsys.readouterr().out == "text"


def test_whatever_fails_in_a_plugin_is_its_fault(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where nothing of ours watches it: the line is in its package."""
    plugin.write_text("[dynamometer.suites]\nodd = odd_source:SUITE\n")
    (plugin.parents[1] / "odd_source.py").write_text(
        "from dynamometer.common.interfaces.suite_source import SuiteSource\n"
        "class Odd(SuiteSource):\n"
        "    def opening(self, request): return {}['a']\n"
        "    def open(self, opening): ...\n"
        "SUITE = Odd()\n"
    )
    assert cli.main(None, ["run", "odd", "--list"]) == 3
    said = capsys.readouterr().err
    assert "error: the package some-plugin failed with KeyError: 'a' (" in said
    assert "odd_source.py:3)" in said
    assert "Traceback" not in said
