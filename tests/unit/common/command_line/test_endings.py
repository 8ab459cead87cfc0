"""How the program ends: each exit code, by the smallest thing that leads to it."""

from __future__ import annotations

import errno
import importlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from fakes import FakeExecutor, send_itself

from dynamometer.common import ending, registry
from dynamometer.common.command_line import cli
from dynamometer.common.command_line.session import Session
from dynamometer.common.errors import DynamometerError
from dynamometer.results.reports.csv_sink import CsvFiles
from dynamometer.results.reports.sinks import Destination
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Record

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
WORDS = ("--only", "alexnet", "--only", "resnet18", "--accuracy")


class Checking(FakeExecutor):
    """Makes records of a run that times nothing, and says when it is closed."""

    def execute(self, case: Case, replicate: int) -> Record:
        """Leave out latencies."""
        return msgspec.structs.replace(super().execute(case, replicate), measurements=())

    def close(self) -> None:
        """Remove what it has made, as the local executor does."""
        print("closed", file=sys.stderr)


def _at_the_second(action: object) -> FakeExecutor:
    """Let something happen while the second model is being run."""
    made = Checking(experiments=("accuracy",))

    def before(case: Case, replicate: int) -> None:
        if made.executed:
            action()  # type: ignore[operator]  # untyped

    made.before = before
    return made


def passing(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Let all pass."""
    return Checking(experiments=("accuracy",))


def terminated(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Be sent what `timeout`, Slurm and docker send; later ones don't disturb the end."""
    return _at_the_second(lambda: send_itself(signal.SIGTERM))


def hung_up(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Be sent what a terminal sends that is closed."""
    return _at_the_second(lambda: send_itself(signal.SIGHUP))


class EndedInClosing(Checking):
    """Is sent what Slurm sends while it removes what it has made."""

    def close(self) -> None:
        """Take no note of it."""
        send_itself(signal.SIGTERM)
        super().close()


def terminated_in_closing(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Make records, and be ended after that."""
    return EndedInClosing(experiments=("accuracy",))


def unheard(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Go on when nobody reads standard error any more."""
    left = select.poll()
    left.register(2, 0)
    return _at_the_second(left.poll)


def left(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Write to nobody."""
    return _at_the_second(lambda: raised(BrokenPipeError(errno.EPIPE, "Broken pipe")))


def full(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Have no room."""
    return _at_the_second(lambda: raised(OSError(errno.ENOSPC, "No space left on device", "x.csv")))


def mistaken(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Hold a mistake of ours."""
    return _at_the_second(lambda: raised(ZeroDivisionError("0 / 0")))


def removed(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Find its run removed when a worker's log is to be opened."""

    def remove() -> None:
        shutil.rmtree(directory)
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", f"{directory}/logs")

    return _at_the_second(remove)


def lacking(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Need what is not installed."""
    return _at_the_second(lambda: importlib.import_module("nope_pkg"))


def lacking_ours(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Need what a package that all of us needs has lost."""
    return _at_the_second(lambda: importlib.import_module("scipy.nope"))


def mistaken_at_once(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Hold a mistake of ours at the beginning."""
    raise ZeroDivisionError


def terminated_at_once(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Be ended before anything is measured."""
    send_itself(signal.SIGTERM)
    return Checking()


def unstarted(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Say where it is written why there are no workers."""
    (directory / "logs").mkdir()
    log = directory / "logs" / "server.log"
    log.touch()
    msg = f"the fork server did not start; see {log}"
    raise DynamometerError(msg)


def full_at_once(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Have no room from the beginning."""
    raise OSError(errno.ENOSPC, "No space left on device", str(directory / "logs"))


def raised(error: BaseException) -> None:
    """Raise it."""
    raise error


@pytest.fixture(autouse=True)
def nobody_handles_signals() -> Iterator[None]:
    """As it is unless `nohup` started the tests, or another test left something behind."""
    numbers = (signal.SIGHUP, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put runs where nothing else is."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def they_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the executors above beside the local one, of whose faults we are to be told."""
    ours = registry._BUILT_IN["executors"]
    for each in (passing, terminated, hung_up, terminated_in_closing, left, full, mistaken, removed,
                 lacking, lacking_ours, mistaken_at_once, terminated_at_once, unstarted,
                 full_at_once):  # fmt: skip
        monkeypatch.setitem(ours, each.__name__, f"{__name__}:{each.__name__}")


def run(executor: str, *words: str) -> int:
    """Run two models with an executor of those above."""
    return cli.main("torchbench", [*WORDS, "--executor", executor, *words])


def program(
    *words: str, stdout: int | None = subprocess.PIPE, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the program by itself."""
    code = "import sys; from dynamometer.__main__ import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, "-c", code, *words], stdout=stdout, stderr=subprocess.PIPE,
        env=environment, check=False, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(("executor", "code"), [("terminated", 143), ("hung_up", 129)])
def test_a_signal_ends_a_run_in_order(
    executor: str, code: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What was measured stays, everything is closed, and the command that goes on is said."""
    assert run(executor) == code
    said = capsys.readouterr().err
    assert "closed" in said
    assert re.search(r"interrupted; to finish: .*resume runs/\S+", said)
    (directory,) = (tmp_path / "runs").iterdir()
    assert len(store.read_records(directory)) == 1
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


LATE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from dynamometer import __main__
from dynamometer.common.command_line import cli

def interrupted(suite):
    signal.raise_signal(signal.SIGINT)

cli.main = interrupted
code = __main__.main()
signal.raise_signal(signal.SIGINT)  # as Python ends
sys.exit(code)
"""


def test_an_interrupt_when_all_is_said_is_no_other_end() -> None:
    """Whether it comes on the way out, or later."""
    words = [sys.executable, "-c", LATE]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 130


def test_each_signal_interrupts() -> None:
    """Python may have swallowed what the first one raised; its number is the exit code's."""
    with ending.StopSignals() as signals:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
            with pytest.raises(KeyboardInterrupt):
                send_itself(number)
    assert signals.received == signal.SIGTERM


def test_a_signal_waits_until_something_is_closed() -> None:
    """It would leave half of it."""
    closed: list[int] = []

    def close(number: int) -> None:
        with ending.Held():
            send_itself(number)
            closed.append(number)

    def fail() -> None:
        try:
            raised(ZeroDivisionError())
        finally:
            close(signal.SIGHUP)

    with ending.StopSignals() as signals:
        with pytest.raises(KeyboardInterrupt):
            close(signal.SIGTERM)
        with pytest.raises(ZeroDivisionError):  # which ends the program anyway
            fail()
    assert closed == [signal.SIGTERM, signal.SIGHUP]
    assert signals.received == signal.SIGTERM


def test_the_command_line_in_a_thread(capsys: pytest.CaptureFixture[str]) -> None:
    """Python lets none but the main one handle signals."""
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(run("passing")))
    thread.start()
    thread.join()
    assert codes == [0], capsys.readouterr().err


def test_a_signal_that_is_ignored_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """`nohup` ignores SIGHUP for what it starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending.StopSignals() as signals:
            send_itself(signal.SIGHUP)
        assert signals.received == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_leaves_nothing_half_closed(capsys: pytest.CaptureFixture[str]) -> None:
    """It takes effect afterwards."""
    assert run("terminated_in_closing") == 143
    said = capsys.readouterr().err
    assert "closed" in said
    assert "interrupted; to finish: " in said


@pytest.mark.parametrize(
    ("executor", "says"),
    [
        ("full", "error: x.csv: No space left on device"),
        ("left", "error: Broken pipe"),  # not of standard output, so nobody has left
        ("mistaken", "error: Dynamometer itself failed with ZeroDivisionError"),
        ("lacking", "ModuleNotFoundError: No module named 'nope_pkg'"),
        ("lacking_ours", "ModuleNotFoundError: No module named 'scipy.nope'"),
    ],
)
def test_a_fault_of_ours_ends_with_3_and_the_way_on(
    executor: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a line, after the command that goes on; 1 would mean that results have changed."""
    assert run(executor) == 3
    said = capsys.readouterr().err
    assert says in said
    assert re.search(r"to go on later: .*resume runs/\S+", said)
    assert ("Traceback" in said) == (executor not in {"full", "left"})


def test_records_of_a_run_that_is_removed_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside where it was; the run, which is no more, can't be gone on with."""
    assert run("removed") == 3
    said = capsys.readouterr().err
    assert "or removed while the run was writing to it" in said
    assert "nothing was measured" not in said
    assert said.count("resume") == 1
    (rescued,) = (tmp_path / "runs").iterdir()
    assert len(store.read_records(rescued)) == 1


@pytest.mark.parametrize(
    ("executor", "code", "says"),
    [
        ("full_at_once", 3, "logs: No space left on device"),
        ("mistaken_at_once", 3, "ZeroDivisionError"),
        ("terminated_at_once", 143, "nothing was measured"),
    ],
)
def test_a_run_without_a_record_leaves_nothing(
    executor: str, code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a full disk, where each attempt would leave one more; nothing can be gone on with."""
    assert run(executor) == code
    said = capsys.readouterr().err
    assert says in said
    assert "resume" not in said
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_calibration_without_a_record_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As any other run."""
    monkeypatch.setattr(Session, "run", lambda _: raised(ZeroDivisionError()))
    assert cli.main(None, ["calibrate", "--only", "alexnet"]) == 3
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_calibration_that_is_stopped_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Is interrupted, no matter that nothing of it is kept that could be evaluated."""
    monkeypatch.setattr(Session, "run", lambda *_: ending.ExitCode.INTERRUPTED)
    assert cli.main(None, ["calibrate", "--only", "alexnet"]) == ending.ExitCode.INTERRUPTED
    said = capsys.readouterr().err
    assert "nothing was measured" in said
    assert "error" not in said
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.slow
def test_a_module_that_is_missing_at_once(tmp_path: Path) -> None:
    """It is none that is to be installed for us: a fault, and nothing was measured."""
    (tmp_path / "lacking_plugin.py").write_text("def make(*_):\n    import nope_pkg\n")
    path = os.pathsep.join((str(ROOT), str(tmp_path)))
    words = ("run", "torchbench", *WORDS, "--executor", "lacking_plugin:make")
    ended = program(*words, PYTHONPATH=path)
    assert ended.returncode == 3, ended.stderr
    assert "No module named 'nope_pkg'" in ended.stderr
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_directory_stays_where_the_error_quotes_a_log_in_it(tmp_path: Path) -> None:
    """Its end is quoted; the rest can be read."""
    assert run("unstarted") == 3
    (directory,) = (tmp_path / "runs").iterdir()
    assert (directory / "logs" / "server.log").exists()


def test_a_half_made_directory_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may be full when the manifest is written."""
    monkeypatch.setattr(store.os, "fsync", lambda _: raised(OSError(errno.ENOSPC, "No space")))
    with pytest.raises(StoreError, match="a can't be made: No space"):
        store.create(tmp_path / "a", factories.manifest())
    assert not (tmp_path / "a").exists()


def test_a_csv_file_on_a_full_disk_is_named(tmp_path: Path) -> None:
    """What can't be written says which file it is."""
    study = registry.study("speedup")
    records = [factories.measured_record(replicate=0)]
    name = study.rows(records, compatible=False)[0].file
    (tmp_path / name).symlink_to("/dev/full")
    files = CsvFiles(study, Destination(tmp_path, sys.stdout))
    with pytest.raises(StoreError, match=rf"{name} can't be written: No space left"):
        files.write(records)


@pytest.mark.parametrize("words", [("ls", "models"), ("run", "--help"), ("--version",)])
def test_who_stops_reading_is_told_nothing(words: Sequence[str]) -> None:
    """As after `| head -1`: 141, as a program that SIGPIPE ends."""
    reading, writing = os.pipe()
    os.close(reading)
    ended = program(*words, stdout=writing, OTHER_COMPLETE="1")  # not what a shell asks with
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.slow
def test_who_stops_reading_standard_error_ends_a_run(tmp_path: Path) -> None:
    """As after `2>&1 | grep -m1 alexnet`: what was measured is kept, and no gate has failed."""
    code = "import sys; from dynamometer.__main__ import main; sys.exit(main())"
    words = ("run", "torchbench", *WORDS, "--executor", f"{Path(__file__).stem}:unheard")
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests", HERE)))
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path}, text=True,
    ) as ran:  # fmt: skip
        assert ran.stderr
        assert any("alexnet" in line for line in ran.stderr)
        ran.stderr.close()
        assert ran.wait() == ending.ExitCode.READER_LEFT
    (directory,) = (tmp_path / "runs").iterdir()
    assert len(store.read_records(directory)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("words", ["run torchbench --only alexnet --accuracy", "ls suites"])
def test_standard_descriptors_that_are_closed(words: str) -> None:
    """Nothing of ours gets their numbers, and there is nothing to be said where nobody hears."""
    code = "import sys; from dynamometer.__main__ import main; sys.exit(main())"
    executor = f"--executor {Path(__file__).stem}:passing" if words.startswith("run") else ""
    script = f'exec "$0" -c "$1" {words} {executor} <&- >&- 2>&-'
    ended = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable, code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests", HERE)))},
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0


def test_a_full_disk_behind_standard_output() -> None:
    """The error says so, and Python itself adds nothing."""
    with Path("/dev/full").open("w") as full_device:
        ended = program("ls", "models", stdout=full_device.fileno())
    expected = "error: standard output: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (3, expected)


def test_a_name_that_the_terminal_has_no_letters_for(tmp_path: Path) -> None:
    """It is written with escapes."""
    with (tmp_path / "said").open("w", encoding="ascii") as stream, redirect_stdout(stream):
        assert ending.exit_code_of(lambda: print("ünï")) == 0
    assert (tmp_path / "said").read_text() == "\\xfcn\\xef\n"


@pytest.mark.parametrize("name", ["a\\nb", "\\x1b[2J", "nul\\0", "x" * 252, " "])
def test_a_name_that_nothing_can_hold_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is run: a file, a line and a cell are named after it."""
    (tmp_path / "mine.py").write_text(f"def f(): ...\nMODELS = {{'{name}': f}}\n")
    assert cli.main(None, ["run", "mine.py", "--list"]) == 2
    said = capsys.readouterr().err
    assert "can't be run under this name" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("text", ["raise RuntimeError('no')", "import sys; sys.exit(0)"])
def test_a_plugin_that_ends_as_it_is_imported(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it raises, the command line is told which it is."""
    (tmp_path / "ending_plugin.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run("passing", "--sink", "ending_plugin:SINK") == 2
    assert "sink 'ending_plugin:SINK' can't be loaded: importing it" in capsys.readouterr().err


def test_the_exit_codes_are_those_that_are_documented() -> None:
    """Each that the code knows is in the table, and no other."""
    from dynamometer.common import errors

    table = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    documented = {int(found) for found in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    known = {each.exit_code for each in kinds if hasattr(each, "exit_code")}
    signals = {128 + signal.SIGTERM, 128 + signal.SIGHUP}
    assert documented == {*known, *signals, *ending.ExitCode}


def test_ends_of_processes_are_seen_though_the_program_was_told_to_ignore_them() -> None:
    """By who started it: a failed build seemed a good one, a crash that of a fork server."""
    code = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "import subprocess\n"
        "from dynamometer.common.ending import exit_code_of\n"
        "raise SystemExit(exit_code_of(lambda: subprocess.run(['sh', '-c', 'exit 7']).returncode))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 7
