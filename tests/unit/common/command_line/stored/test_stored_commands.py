"""Commands on stored runs, from their words to their exit codes."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from pathlib import Path

import factories
import msgspec
import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.command_line.stored import removal, show
from dynamometer.results.exports import junit
from dynamometer.results.exports.export import Document
from dynamometer.results.store import store
from dynamometer.results.values.records import Absence, StopReason

OLD = Path(__file__).resolve().parents[4] / "golden" / "format_2"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with a run of one model, with a log, and one of another model that is to come."""
    plan = factories.plan(factories.model_spec("alexnet"), factories.model_spec("dcgan"))
    program = f"{sys.executable} -c pass"
    directory = tmp_path / "runs" / "one"
    store.create(directory, factories.manifest(plan, program=program, command="./x.py -k y"))
    (directory / "logs").mkdir()
    (directory / "logs" / "alexnet.log").write_text(
        "".join(f"line {each}\n" for each in range(100)) + "\x1b[31mred\n"
    )
    with store.RunStore(directory) as events:
        for replicate in range(3):
            record = factories.measured_record(plan.cases[0], replicate=replicate)
            stopped = StopReason.REPLICATES if replicate == 2 else None
            events.append(msgspec.structs.replace(record, stopped=stopped, log="logs/alexnet.log"))
    return tmp_path / "runs"


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run a command, and return what it prints."""
    assert cli.main(None, list(words)) == code
    found = capsys.readouterr()
    return found.out + found.err


def test_ls_runs(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each, with its state; a damaged one is named and stops nothing."""
    broken = shutil.copytree(runs / "one", runs / "broken")
    (broken / store.MANIFEST).write_text("{")
    head, _, damaged, one = said(capsys, "ls", "runs", str(runs)).splitlines()
    assert head.split()[0] == "run"
    assert "damaged" in damaged
    assert "is damaged or not of format" in damaged
    for word in ("one", "2026-01-01 00:00", "interrupted, 1 of 2", "testbed", "2.13.0", "./x.py"):
        assert word in one


def test_ls_runs_without_any(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder holds none; one that isn't there is an error."""
    assert said(capsys, "ls", "runs", str(tmp_path)) == f"no runs in {tmp_path}\n"
    assert "can't be read" in said(capsys, "ls", "runs", str(tmp_path / "none"), code=2)


def test_show_a_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lines and tables of the run, and what it did not come to."""
    found = said(capsys, "show", str(runs / "one"))
    assert "interrupted, 1 of 2" in found
    assert "cpu  alexnet" in found
    assert "cpu  dcgan                          not run" in found
    assert "GEOMEAN SPEEDUP" in found


def test_show_a_model(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Samples block by block, environment, the end of the log without its colours, the command."""
    found = said(capsys, "show", str(runs / "one"), "alexnet")
    assert "samples of replicate 2, ms:" in found
    assert "       3: " in found
    assert "Made-up CPU" in found
    assert "  line 99\n" in found
    assert "line 80\n" not in found
    assert "\x1b" not in found
    assert found.endswith("to repeat it: ./torchbench.py --only alexnet\n")


def test_show_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reason and detail are there in full, for each arm that has them."""
    plan = factories.plan(factories.model_spec("alexnet"))
    store.create(tmp_path / "run", factories.manifest(plan))
    outcome = msgspec.structs.replace(
        factories.failure(reason="x" * 300), detail="Traceback:\n  at last"
    )
    absent = (Absence(metric="latency", arm="inductor", reason="one\ntwo"),)
    with store.RunStore(tmp_path / "run") as events:
        events.append(factories.record(plan.cases[0], outcome=outcome, absent=absent))
    found = said(capsys, "show", str(tmp_path / "run"), "alexnet")
    assert "x" * 300 in found
    assert "        at last\n" in found
    assert "    no latency of inductor: one\n      two\n" in found


def test_where_runs_are_is_said(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a folder that is no run, but holds some, their names are told."""
    assert "dynamometer ls runs" in said(capsys, "show", "nope", code=2)
    assert "dynamometer ls runs" in said(capsys, "resume", "nope", code=2)
    found = said(capsys, "show", str(runs), code=2)
    assert f"such as {runs / 'one'}: see `dynamometer ls runs {runs}`" in found


def test_a_log_outside_is_not_read(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link in a run that came from elsewhere leads nowhere."""
    (runs / "secret").write_text("a secret")
    log = runs / "one" / "logs" / "alexnet.log"
    log.unlink()
    log.symlink_to(runs / "secret")
    found = said(capsys, "show", str(runs / "one"), "alexnet")
    assert "a secret" not in found
    assert "is not in the run's directory" in found


def test_a_long_log_is_read_compressed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its end is shown with the name of the file that holds it, unless a link leads outside."""
    log = runs / "one" / "logs" / "alexnet.log"
    long = log.with_name("alexnet.log.gz")
    long.write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    found = said(capsys, "show", str(runs / "one"), "alexnet")
    assert "alexnet.log.gz" in found
    assert "line 99" in found
    long.rename(runs / "elsewhere.gz")
    long.symlink_to(runs / "elsewhere.gz")
    assert "line 99" not in said(capsys, "show", str(runs / "one"), "alexnet")
    long.unlink()
    long.write_text("no gzip")
    assert "can't be read" in said(capsys, "show", str(runs / "one"), "alexnet")


def test_show_a_model_that_was_not_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so; a name that is none is an error with what comes near."""
    assert "not run: the run was interrupted" in said(capsys, "show", str(runs / "one"), "dcgan")
    assert "did you mean alexnet" in said(capsys, "show", str(runs / "one"), "alexnte", code=2)


def test_an_error_is_shown_and_not_obeyed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names what a run of somebody else holds, such as a model that comes near."""
    manifest = runs / "one" / store.MANIFEST
    manifest.write_text(manifest.read_text().replace('"alexnet"', '"alexnet\\u001b[31m"'))
    found = said(capsys, "show", str(runs / "one"), "alexnet", code=2)
    assert "did you mean alexnet [31m" in found
    assert "\x1b" not in found


def test_lines_end_where_the_terminal_does(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line of either command is longer; what is cut shows it."""
    monkeypatch.setattr(show, "terminal_width", lambda: 60)
    for words in (["ls", "runs", str(runs)], ["show", str(runs / "one")]):
        lines = said(capsys, *words).splitlines()
        assert max(map(len, lines)) <= 60
        assert any(line.endswith("…") for line in lines)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["one"], "command: ./x.py -k y"),
        (["one", "alexnet"], "to repeat it: ./torchbench.py --only alexnet"),
    ],
)
def test_commands_are_whole_on_a_terminal(
    runs: Path,
    words: list[str],
    line: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are there to be copied."""
    monkeypatch.setattr(show, "terminal_width", lambda: 12)
    assert line in said(capsys, "show", "--output-dir", str(runs), *words).splitlines()


def test_report_of_one_and_of_two(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page is written, and where; of two runs it holds what changed."""
    one, page = str(runs / "one"), tmp_path / "pages" / "page.html"
    assert said(capsys, "report", one, "-o", str(page)) == f"{page}\n"
    assert '"comparison":null' in page.read_text()
    assert "line 99" in page.read_text()
    said(capsys, "report", one, str(OLD / "speedup"), "-o", str(page))
    assert '"refused":"scale was full, is tiny' in page.read_text()
    said(capsys, "report", one, one, "-o", str(page))
    assert '"refused":null' in page.read_text()


def test_report_of_a_run_without_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is a page of it, too, and nothing to compare it with."""
    store.create(tmp_path / "run", factories.manifest())
    words = ["report", str(tmp_path / "run"), str(tmp_path / "run")]
    said(capsys, *words, "-o", str(tmp_path / "page.html"))
    assert "holds no record" in (tmp_path / "page.html").read_text()


def test_export_to_output_file_and_folder(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One document goes to standard output or a file; several need a folder, and are named."""
    one = str(runs / "one")
    text = said(capsys, "export", one, "--format", "junit")
    assert text.startswith("<?xml")
    file = tmp_path / "deep" / "junit.xml"
    assert said(capsys, "export", one, "--format", "junit", "-o", str(file)) == ""
    assert file.read_text() == text
    assert "name a folder" in said(capsys, "export", one, code=2)
    assert "name a folder" in said(capsys, "export", one, "-o", str(file), code=2)
    written = said(capsys, "export", one, "-o", str(tmp_path / "csv")).splitlines()
    assert sorted(map(str, (tmp_path / "csv").iterdir())) == sorted(written)
    assert len(written) == 2


def test_export_writes_nothing_beside_its_folder(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the run of somebody else says that it is called."""
    (tmp_path / "csv").mkdir()
    manifest = runs / "one" / store.MANIFEST
    text = manifest.read_text().replace('"run_id": "', '"run_id": "../')
    assert text != manifest.read_text()
    manifest.write_text(text)
    before = sorted(tmp_path.rglob("*"))
    words = ("export", str(runs / "one"), "--format", "benchmark-database")
    assert "leads elsewhere" in said(capsys, *words, "-o", str(tmp_path / "csv"), code=2)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("a.xml", "b.xml", "a.xml"), "2 files of this run would be named 'a.xml'"),
        (("a.xml", ".."), "would be named '..', which leads elsewhere"),
        (("a.xml", "."), "would be named '.', which leads elsewhere"),
        (("a.xml", ""), "would be named '', which leads elsewhere"),
        (("a.xml", "b\0"), "which leads elsewhere"),
    ],
)
def test_export_writes_each_file_or_none(
    runs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, ...],
    why: str,
) -> None:
    """Whatever a format names them: no file takes the place of another, or of a folder."""
    monkeypatch.setattr(junit, "export", lambda _: [Document(each, "x") for each in names])
    words = ("export", str(runs / "one"), "--format", "junit", "-o", f"{tmp_path / 'out'}/")
    assert why in said(capsys, *words, code=2)
    assert not (tmp_path / "out").exists()


def test_rm_counts_a_run_once(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """However often and by whatever words it is named."""
    other = runs / "one" / ".." / "one"
    found = said(capsys, "rm", str(runs / "one"), str(other), "--yes")
    assert "removed 1 run(s)" in found
    assert not (runs / "one").exists()


def test_export_refuses_what_it_has_not(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A format that isn't there, with what comes near; a folder that is no run."""
    found = said(capsys, "export", str(runs / "one"), "--format", "junti", code=2)
    assert "unknown export 'junti'; did you mean junit" in found
    assert "not a run directory" in said(capsys, "export", str(runs), "--format", "junit", code=2)
    file = said(
        capsys, "export", str(runs / "one"), "--format", "junit", "-o", "/dev/null/x", code=2
    )
    assert "/dev/null/x can't be written: Not a directory; name another file" in file


def test_a_run_that_has_nothing_to_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A format for which a study has nothing says that, and writes no file."""
    found = said(
        capsys, "export", str(OLD / "coverage"), "--format", "expected-accuracy",
        "-o", str(tmp_path / "x"),
    )  # fmt: skip
    assert "has nothing to say in expected-accuracy" in found
    assert not (tmp_path / "x").exists()


def test_repro_prints_and_runs(runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The command of the case alone; its exit code is handed on."""
    assert cli.main(None, ["repro", str(runs / "one"), "dcgan"]) == 0
    assert f"{sys.executable} -c pass --only dcgan" in capfd.readouterr().out
    assert cli.main(None, ["repro", str(runs / "one"), "dcgan", "--run"]) == 0
    with_program(runs / "one", f"{sys.executable} -c 'raise SystemExit(7)'")
    assert cli.main(None, ["repro", str(runs / "one"), "dcgan", "--run"]) == 7


def test_repro_says_which_modules_are_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of backends that nobody registered: the command alone doesn't say where these are."""
    arms = ("baseline", "inductor:freezing", "mine:compile")
    spec = factories.model_spec("dcgan")
    plan = factories.plan(spec, cases=(factories.case("dcgan", arms),))
    store.create(tmp_path / "run", factories.manifest(plan))
    assert cli.main(None, ["repro", str(tmp_path / "run"), "dcgan"]) == 0
    found = capsys.readouterr()
    assert found.err == "needs mine:compile where Python looks, as in the run (PYTHONPATH)\n"
    assert "mine:compile" in found.out


def test_repro_of_what_a_signal_ended(runs: Path) -> None:
    """Is an exit code as of a shell: one command that ends well doesn't hide it."""
    with_program(runs / "one", f"{sys.executable} -c 'import os; os.kill(os.getpid(), 9)'")
    assert cli.main(None, ["repro", str(runs / "one"), "dcgan", "--run"]) == 128 + 9


def with_program(directory: Path, program: str) -> str:
    """Have a run begun by another program."""
    manifest = msgspec.structs.replace(store.read_manifest(directory), program=program)
    (directory / store.MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return str(directory)


def test_repro_needs_no_installed_command(
    runs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where `dynamometer` isn't on the path, this Python's is started."""
    monkeypatch.setenv("PATH", str(runs))
    one = with_program(runs / "one", "dynamometer ls nothing")
    assert cli.main(None, ["repro", one, "dcgan", "--run"]) == 2
    assert "No such option" in capfd.readouterr().err


def test_repro_of_a_program_that_is_elsewhere(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says that it can't be started from here."""
    with_program(runs / "one", "/no/where/x.py")
    found = said(capsys, "repro", str(runs / "one"), "alexnet", "--run", code=2)
    assert "/no/where/x.py can't be started from here" in found


def test_rm_says_what_it_frees(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --yes nothing is asked."""
    shutil.copytree(runs / "one", runs / "two")
    found = said(capsys, "rm", "--yes", str(runs / "one"), str(runs / "two"))
    assert "removed 2 run(s): 0.0 MB freed" in found
    assert list(runs.iterdir()) == []


@pytest.mark.parametrize(("answer", "is_gone"), [("y\n", True), ("n\n", False)])
def test_rm_asks(
    runs: Path, monkeypatch: pytest.MonkeyPatch, answer: str, *, is_gone: bool
) -> None:
    """On a terminal; whoever says no keeps everything."""
    reading, writing = os.pipe()
    os.write(writing, answer.encode())
    os.close(writing)
    with os.fdopen(reading) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        assert cli.main(None, ["rm", str(runs / "one")]) == (0 if is_gone else 130)
    assert (runs / "one").exists() != is_gone


def refused(capsys: pytest.CaptureFixture[str], directory: Path, *others: Path) -> str:
    """Try to remove a directory, and return why that is refused."""
    before = sorted(directory.rglob("*"))
    found = said(capsys, "rm", "--yes", *map(str, (*others, directory)), code=2)
    assert sorted(directory.rglob("*")) == before
    return found


def test_rm_refuses_what_is_no_run(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And then removes nothing else either."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    assert "is not a run directory" in refused(capsys, tmp_path / "mine", runs / "one")
    assert (runs / "one").exists()
    assert "is not a run directory" in refused(capsys, runs)


def test_rm_refuses_a_run_that_goes_on(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its process holds a lock."""
    with store.RunStore(runs / "one"):
        assert "is being written by another process" in refused(capsys, runs / "one")


def test_rm_names_what_can_not_be_removed(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And keeps nothing of a run that somebody wanted gone."""

    def stopped(directory: Path) -> None:
        (directory.parent / store.EVENTS).unlink()
        raise PermissionError(1, "Operation not permitted", str(directory / "x"))

    monkeypatch.setattr(removal.shutil, "rmtree", stopped)
    found = said(capsys, "rm", "--yes", str(runs / "one"), code=2)
    assert f"{runs / 'one' / 'logs' / 'x'} can't be removed: Operation not permitted" in found
    assert found.rstrip().endswith("; removed before: nothing")
    assert [each.name for each in runs.iterdir()] == ["one"]


def test_rm_that_fails_names_what_is_gone(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several runs those before."""
    shutil.copytree(runs / "one", runs / "two")
    (runs / "two" / "logs").rename(runs / "two" / "stuck")
    remove = shutil.rmtree

    def some(directory: Path) -> None:
        if directory.name == "stuck":
            raise PermissionError(1, "Operation not permitted", str(directory))
        remove(directory)

    monkeypatch.setattr(removal.shutil, "rmtree", some)
    found = said(capsys, "rm", "--yes", str(runs / "one"), str(runs / "two"), code=2)
    assert f"; removed before: {runs / 'one'}" in found
    assert [each.name for each in runs.iterdir()] == ["two"]


def test_rm_refuses_links(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link to a run, and a run whose events are elsewhere."""
    (tmp_path / "link").symlink_to(runs / "one")
    assert "is a link" in refused(capsys, tmp_path / "link")
    events = runs / "one" / store.EVENTS
    kept = events.rename(tmp_path / "events.jsonl")
    events.symlink_to(kept)
    assert "is no file of its own" in refused(capsys, runs / "one")


def test_rm_leaves_what_links_lead_to(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link within a run goes, and nothing beyond it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").write_text("x")
    (runs / "one" / "logs" / "out").symlink_to(tmp_path / "data")
    said(capsys, "rm", "--yes", str(runs / "one"))
    assert not (runs / "one").exists()
    assert (tmp_path / "data" / "precious").read_text() == "x"


def test_rm_refuses_where_one_is(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell would be left nowhere."""
    monkeypatch.chdir(runs / "one" / "logs")
    assert "is where you are" in refused(capsys, runs / "one")


def test_rm_does_not_ask_nobody(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that forgets --yes is told so."""
    monkeypatch.setattr(removal.sys.stdin, "isatty", lambda: False, raising=False)
    assert "say --yes" in said(capsys, "rm", str(runs / "one"), code=2)
    assert (runs / "one").exists()
