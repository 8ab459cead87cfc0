"""`dynamometer decisions`: what was decided, why, and how it gets to another machine."""

from __future__ import annotations

import io
import json
import sqlite3
from pathlib import Path

import factories
import msgspec
import pytest

from dynamometer.common.command_line.cli import main
from dynamometer.results.store.decisions import Decisions, exported
from dynamometer.results.values.cases import NO_BACKEND
from dynamometer.results.values.choices import Subject
from dynamometer.results.values.decisions import Evidence
from dynamometer.results.values.records import Outcome, Status

ABCD = "abcd" * 16
USUAL = Path("runs", "decisions.sqlite")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in a folder with two decisions."""
    monkeypatch.chdir(tmp_path)
    eager = factories.decision(key=ABCD, arm=NO_BACKEND)
    Decisions(USUAL).put(factories.decision(), eager)


def ran(monkeypatch: pytest.MonkeyPatch, *words: str, typed: str = "") -> int:
    """Run a command; give its exit code."""
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    return main(argv=["decisions", *words])


def test_all_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each, as text and as JSON."""
    assert ran(monkeypatch, "list") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "inductor" in first
    assert "2.000x [1.900, 2.100]" in first
    assert "no candidate is faster" in second
    assert ran(monkeypatch, "list", "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert {json.loads(each)["key"] for each in lines} == {ABCD, factories.decision().key}


def test_a_decision_is_explained_by_its_candidates(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the beginning of its key; of eager, too, though that is no candidate."""
    assert ran(monkeypatch, "explain", "ab") == 0
    said = capsys.readouterr().out
    assert "no candidate is faster, eager takes 10 ms" in said
    assert "compiled in 3.0 s, 24 samples" in said
    assert ran(monkeypatch, "explain", "zz") == 2
    assert "begins with 'zz'" in capsys.readouterr().err


def test_a_file_that_is_none_of_decisions_is_a_mistake_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no fault of the harness: whatever reads it says so."""
    Path("text").write_text("no decisions, " * 99)
    for words in (["list"], ["explain", "ab"], ["export"]):
        assert ran(monkeypatch, *words, "--decisions", "text") == 2
        assert "text can't be used as a file of decisions" in capsys.readouterr().err


def test_an_import_into_what_is_no_file_of_decisions_is_one_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Writing is no other than reading: neither a damaged file nor one that can't be made."""
    Path("text").write_text("no decisions, " * 99)
    typed = exported([factories.decision()])
    for name, said in (("text", "can't be used"), ("text/new.sqlite", "can't be made")):
        assert ran(monkeypatch, "import", "--decisions", name, typed=typed) == 2
        assert f"{name} {said}" in capsys.readouterr().err


def test_decisions_are_not_exported_over_themselves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whatever name: the file stays as it is."""
    Path("link").symlink_to(USUAL)
    before = USUAL.read_bytes()
    for name in (str(USUAL), "link"):
        assert ran(monkeypatch, "export", name) == 2
        assert f"{name} is the file that the decisions are in" in capsys.readouterr().err
    assert USUAL.read_bytes() == before


def test_where_nothing_was_timed_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not that no candidate is faster."""
    failed = Evidence(arm="inductor", outcome=Outcome(status=Status.FAIL, reason="not today"))
    untimed = factories.decision(key="ef", arm=NO_BACKEND, evidence=(failed,))
    Decisions(USUAL).put(untimed)
    assert ran(monkeypatch, "explain", "ef") == 0
    said = capsys.readouterr().out
    assert "no candidate could be timed" in said
    assert "no candidate is faster" not in said


def test_a_compile_time_that_is_not_known_is_not_said_to_be_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As that of a candidate that found in the caches what another had compiled."""
    (evidence,) = factories.decision().evidence
    unknown, short = (
        msgspec.structs.replace(evidence, arm=arm, compile_s=compile_s)
        for arm, compile_s in (("a", None), ("b", 0.0))
    )
    Decisions(USUAL).put(factories.decision(key="ef", evidence=(unknown, short)))
    assert ran(monkeypatch, "explain", "ef") == 0
    said = capsys.readouterr().out
    assert "2.000x [1.900, 2.100], compile time not known, 24 samples" in said
    assert "2.000x [1.900, 2.100], compiled in 0.0 s, 24 samples" in said


def test_what_goes_out_by_standard_output_comes_in_by_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a file's name, and all of it."""
    assert ran(monkeypatch, "export") == 0
    text = capsys.readouterr().out
    assert ran(monkeypatch, "import", "--decisions", "new.sqlite", typed=text) == 0
    assert "2 of 2 decisions put into new.sqlite" in capsys.readouterr().out
    assert Decisions(Path("new.sqlite")).all() == Decisions(USUAL).all()


def test_and_by_a_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is known already changes nothing."""
    assert ran(monkeypatch, "export", "all.jsonl") == 0
    assert ran(monkeypatch, "import", "all.jsonl") == 0
    assert "0 of 2 decisions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["list", "--decisions", "none.sqlite"], "there is no file of decisions none.sqlite"),
        (["list", "--decisions", "text"], "text can't be used as a file of decisions"),
        (["list", "--decisions", "others"], "others is no file of decisions; choose another"),
        (["import", "empty", "--decisions", "others"], "others is no file of decisions"),
        (["import", "text"], "text:1 is damaged"),
        (["import", "bytes"], "bytes, line 1 can't be read"),
        (["import", "none"], "none can't be read"),
        (["export", "/dev/null/decisions"], "can't be written: Not a directory; name another"),
    ],
)
def test_what_is_no_file_of_decisions_is_named(
    words: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a sentence."""
    Path("text").write_text("no decision, and long enough to be no empty file of SQLite" * 20)
    Path("bytes").write_bytes(b"\xff")
    Path("empty").touch()
    others = sqlite3.connect("others")
    others.execute("CREATE TABLE IF NOT EXISTS mine (a)")
    assert ran(monkeypatch, *words) != 0
    assert others.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    others.close()
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"arm": "os:getcwd"}, "--trust takes it"),
        ({"arm": "inductor:config.cpp.march=native -fplugin=/tmp/e.so"}, "--trust takes it"),
        ({"arm": "inductor:config.cpp.cxx=(None,'/tmp/evil')"}, "cpp.cxx may name a program"),
        ({"arm": "inductor:nonsense"}, "nonsense"),
        ({"arm": "ensemble"}, "ensemble is nothing that can be chosen"),
        ({"arm": "baseline"}, "baseline is nothing that can be chosen"),
        ({"arm": "assembled"}, "assembled is nothing that can be chosen"),
        ({"decided_at": "soon"}, "'soon' is no date"),
    ],
)
def test_what_is_not_to_be_trusted_is_not_imported(
    fields: dict[str, object],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A decision names what is imported and called; nothing else of the file is taken either."""
    text = exported([factories.decision(), factories.decision(key=ABCD, **fields)])
    assert ran(monkeypatch, "import", "--decisions", "new.sqlite", typed=text) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "nothing was imported" in said
    assert not Path("new.sqlite").exists()


def test_what_is_on_a_backend_that_is_not_here_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is counted and named, and the others are taken."""
    text = exported([factories.decision(), factories.decision(key=ABCD, arm="nobody")])
    assert ran(monkeypatch, "import", "--decisions", "new.sqlite", typed=text) == 0
    said = capsys.readouterr()
    assert "1 of 2 decisions put into new.sqlite" in said.out
    assert "1 left out, on what is no backend here: nobody" in said.err
    assert [each.arm for each in Decisions(Path("new.sqlite")).all()] == ["inductor"]


def test_code_of_ones_own_is_imported_where_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a model that is assembled needs no such word."""
    model = factories.decision(subject=Subject.MODEL, arm="assembled")
    others = [
        factories.decision(key=ABCD, arm="inductor:config.cpp.march=native"),
        factories.decision(key=ABCD[::-1], arm="inductor:config.cpp.simdlen=1,max-autotune"),
    ]
    text = exported([factories.decision(arm="os:getcwd"), model, *others])
    assert ran(monkeypatch, "import", "--trust", "--decisions", "new.sqlite", typed=text) == 0
    assert "4 of 4 decisions" in capsys.readouterr().out
    text = exported([model, others[1]])
    assert ran(monkeypatch, "import", "--decisions", "another.sqlite", typed=text) == 0


@pytest.mark.parametrize("words", [["list"], ["explain", "ef"]])
def test_a_terminal_obeys_no_label(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It comes from whoever exported it."""
    Decisions(USUAL).put(factories.decision(key="ef", label="\x1b[31mevil\rgood"))
    assert ran(monkeypatch, *words) == 0
    said = capsys.readouterr().out
    assert "evil good" in said
    assert "\x1b" not in said
    assert "\r" not in said


def test_who_reads_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not into somebody else's database either."""
    database = sqlite3.connect("other.sqlite")
    database.execute("CREATE TABLE other (value)")
    database.commit()
    assert ran(monkeypatch, "list", "--decisions", "other.sqlite") == 2
    assert "is no file of decisions" in capsys.readouterr().err
    assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("other",)]
    database.close()
