from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import factories
import msgspec
import pytest

from dynamometer.results.store import decisions as decisions_module
from dynamometer.results.store.decisions import Decisions, exported, imported
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.choices import Subject, Tuning
from dynamometer.results.values.decisions import Evidence
from dynamometer.results.values.records import PASSED, Ratio, Status

if TYPE_CHECKING:
    from dynamometer.results.values.decisions import Decision

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def decisions(tmp_path: Path) -> Decisions:
    """A file that isn't there yet."""
    return Decisions(tmp_path / "below" / "decisions.sqlite")


def found(decisions: Decisions, decision: Decision) -> Decision | None:
    """Look up what a decision is about."""
    return decisions.find(decision.subject, decision.key, decision.setting)


def test_what_is_put_is_found(decisions: Decisions) -> None:
    """All of it, with its evidence; before, there is nothing, and no file."""
    decision = factories.decision()
    assert found(decisions, decision) is None
    assert decisions.all() == []
    assert not decisions.path.exists()
    assert decisions.put(decision) == 1
    assert found(decisions, decision) == decision
    assert decisions.all() == [decision]


def test_a_file_that_may_only_be_read_is_not_ready(
    decisions: Decisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is said before anything is measured; SQLite locks it for writing all the same."""
    decisions.put(factories.decision())
    decisions.make_ready()
    connect = sqlite3.connect

    def reading(path: Path, **options: Any) -> sqlite3.Connection:
        return connect(f"file:{path}?mode=ro", uri=True, **options)

    monkeypatch.setattr(sqlite3, "connect", reading)
    with pytest.raises(StoreError, match="readonly database; move the file away, or name another"):
        decisions.make_ready()


@pytest.mark.parametrize(
    "changed",
    [
        {"threads": 4},
        {"matmul_precision": "high"},
        {"allocator": "jemalloc"},
        {"device_name": "another"},
        {"processor": "another"},
        {"versions": {"torch": "2.15.0"}},
        {"versions": {"torch": "2.13.0", "onnxruntime": "1.2"}},
    ],
)
def test_another_setting_has_decisions_of_its_own(
    decisions: Decisions, changed: dict[str, object]
) -> None:
    """Whatever of a setting differs."""
    decision = factories.decision()
    decisions.put(decision)
    setting = msgspec.structs.replace(decision.setting, **changed)
    assert setting.key != decision.setting.key
    assert decisions.find(decision.subject, decision.key, setting) is None
    other = msgspec.structs.replace(decision, setting=setting, arm="eager")
    decisions.put(other)
    assert found(decisions, decision) == decision
    assert found(decisions, other) == other


def test_a_setting_is_one_in_whatever_order_versions_come(decisions: Decisions) -> None:
    """The order of a dictionary says nothing."""
    setting = factories.decision().setting
    one = msgspec.structs.replace(setting, versions={"torch": "2", "triton": "3"})
    other = msgspec.structs.replace(setting, versions={"triton": "3", "torch": "2"})
    assert one.key == other.key
    assert decisions.path.name


def test_a_model_is_no_graph(decisions: Decisions) -> None:
    """A key of one is not found as the other."""
    decision = factories.decision()
    decisions.put(decision)
    assert decisions.find(Subject.MODEL, decision.key, decision.setting) is None


@pytest.mark.parametrize(
    "there", ["2025-01-01T00:00:00.000+00:00", "2999-01-01T00:00:00.000+00:00", "no date"]
)
def test_what_was_decided_here_replaces_what_is_there(decisions: Decisions, there: str) -> None:
    """Whenever that was: it was measured, and a clock may have been wrong."""
    decisions.put(factories.decision(decided_at=there, arm="eager"))
    here = factories.decision()
    assert decisions.put(here) == 1
    assert decisions.all() == [here]


def test_the_later_of_two_that_are_merged_stays(decisions: Decisions) -> None:
    """In whichever order they come, by when that was and not by how it is written."""
    early = factories.decision(decided_at="2026-02-01T08:00:00.000+09:00", arm="eager")
    late = factories.decision(decided_at="2026-02-01T00:00:00.000+00:00")
    assert decisions.merge(late) == 1
    assert decisions.merge(early) == 0
    assert decisions.merge(late) == 0
    assert decisions.all() == [late]
    latest = factories.decision(decided_at="2026-03-01T00:00:00.000+00:00", arm="eager")
    assert decisions.merge(early, latest, late) == 1
    assert decisions.all() == [latest]


def test_what_is_dated_ahead_is_decided_anew_where_that_is_asked() -> None:
    """Nobody has decided it since; otherwise it stands."""
    now, since = "2026-11-27T12:05:00.000+00:00", "2026-11-27T12:00:00.000+00:00"
    anew = Tuning(decisions="f.sqlite", since=since)
    at = datetime.fromisoformat(now)
    assert anew.counts("2026-11-27T12:03:00.000+00:00", at)
    for each in ("2999-01-01T00:00:00.000+00:00", "2026-11-27T11:59:00.000+00:00", "no date"):
        assert not anew.counts(each, at)
        assert Tuning(decisions="f.sqlite").counts(each, at)


def test_a_file_is_made_ready(decisions: Decisions) -> None:
    """It is there then, and what is in it stays."""
    decisions.make_ready()
    assert decisions.path.exists()
    decisions.put(factories.decision())
    decisions.make_ready()
    assert decisions.all() == [factories.decision()]


def test_what_can_not_be_written_is_known_before(tmp_path: Path) -> None:
    """With what to do: where a folder or another file is, below one, and where a row is damaged."""
    (tmp_path / "text").write_text("not a database, and long enough to be seen as none " * 20)
    rows = Decisions(tmp_path / "rows")
    rows.put(factories.decision())
    database = sqlite3.connect(rows.path)
    database.execute("UPDATE decisions SET value = '{'")
    database.commit()
    database.close()
    for path in (tmp_path, tmp_path / "text", tmp_path / "text" / "below", rows.path):
        with pytest.raises(StoreError, match="another with --decisions"):
            Decisions(path).make_ready()


def test_keys_are_found_by_how_they_begin(decisions: Decisions) -> None:
    """Not by what is in them, nor by patterns."""
    one, other = factories.decision(key="abcd"), factories.decision(key="abef")
    decisions.put(one, other)
    assert decisions.starting_with("abc") == [one]
    assert decisions.starting_with("ab") == [one, other]
    assert decisions.starting_with("bc") == []
    assert decisions.starting_with("%") == []


def test_what_is_exported_is_imported_elsewhere(decisions: Decisions, tmp_path: Path) -> None:
    """The union of both, once each."""
    one, other = factories.decision(key="1" * 64), factories.decision(key="2" * 64)
    decisions.put(one)
    elsewhere = Decisions(tmp_path / "elsewhere.sqlite")
    elsewhere.put(other)
    text = exported(decisions.all())
    assert elsewhere.merge(*imported(text, "it", NOW)) == 1
    assert elsewhere.merge(*imported(text, "it", NOW)) == 0
    assert elsewhere.all() == [one, other]


@pytest.mark.parametrize("line", ["{", "{}", "[]", '{"format": 1}', "\x00"])
def test_what_is_no_decision_is_refused_with_its_line(line: str) -> None:
    """Nothing of the file is taken."""
    text = exported([factories.decision()]) + "\n" + line + "\n"
    with pytest.raises(StoreError, match=r"some\.jsonl:3 is damaged"):
        imported(text, "some.jsonl", NOW)


def test_a_later_format_is_refused() -> None:
    """What it means is not known."""
    text = exported([msgspec.structs.replace(factories.decision(), format=2)])
    with pytest.raises(StoreError, match="of format 2"):
        imported(text, "it", NOW)


def sped_up(value: float, low: float | None = None) -> Evidence:
    """Make evidence of a speedup."""
    low = value if low is None else low
    ratio = Ratio(value=value, low=low, high=value, n=3, p_value=0.0)
    return Evidence(arm="inductor", outcome=PASSED, speedup=ratio)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"key": "one"}, "its key 'one' is not of 64 hexadecimal digits"),
        ({"key": "A" * 64}, "hexadecimal"),
        ({"decided_at": "yesterday"}, "'yesterday' is no date"),
        ({"decided_at": "2999-01-01T00:00:00.000+00:00"}, "more than a day ahead"),
        ({"tuning_s": -1.0}, "a number of seconds below zero"),
        ({"eager_s": -0.5}, "a number of seconds below zero"),
        ({"evidence": (sped_up(0.0),)}, "a speedup that is none"),
        ({"evidence": (sped_up(-2.0),)}, "a speedup that is none"),
        ({"evidence": (sped_up(2.0, low=3.0),)}, "or beside its interval"),
        ({"evidence": (sped_up(1.1, low=0.9),)}, "nothing in it shows that 'inductor' is faster"),
        (
            {
                "evidence": (
                    msgspec.structs.replace(
                        sped_up(2.0), outcome=factories.failure(Status.FAIL, reason="no")
                    ),
                )
            },
            "nothing in it shows that 'inductor' is faster",
        ),
        ({"evidence": ()}, "nothing in it shows that 'inductor' is faster than eager"),
    ],
)
def test_what_no_decision_can_hold_is_refused(changed: dict[str, object], says: str) -> None:
    """With its line."""
    text = exported([factories.decision(), factories.decision(**changed)])
    with pytest.raises(StoreError, match=rf"some\.jsonl:2 is no decision: .*{says}"):
        imported(text, "some.jsonl", NOW)


def test_clocks_may_differ_a_little() -> None:
    """Less than a day."""
    ahead = factories.decision(decided_at="2026-01-02T20:00:00+00:00")
    assert imported(exported([ahead]), "it", NOW) == [ahead]


def test_another_file_is_refused(tmp_path: Path) -> None:
    """It is left as it is."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and long enough to be seen as none " * 20)
    before = path.read_bytes()
    decisions = Decisions(path)
    for action in (decisions.all, partial(decisions.put, factories.decision())):
        with pytest.raises(StoreError, match="can't be used as a file of decisions"):
            action()
    assert path.read_bytes() == before


def test_a_file_that_another_process_holds_is_no_broken_one(
    decisions: Decisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who moves it away loses decisions."""
    decisions.put(factories.decision())
    monkeypatch.setattr(decisions_module, "_WAIT_S", 0.0)
    holder = sqlite3.connect(decisions.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="is being written by another process; wait for it"):
        decisions.all()
    holder.close()


WRITER = """
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
import factories
from dynamometer.results.store.decisions import Decisions
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    Decisions(Path(sys.argv[1])).put(factories.decision(key=f"{number:06}"))
    print(f"{number:06}", flush=True)
"""


def writer(path: Path, first: int, end: int) -> subprocess.Popen[str]:
    """Start a process that decides one after the other, and says so after each."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(end)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize("lines", [1, 7, 20])
def test_what_was_decided_survives_a_kill(tmp_path: Path, lines: int) -> None:
    """At whatever moment: all that was acknowledged is there, and the file is sound."""
    path = tmp_path / "decisions.sqlite"
    process = writer(path, 0, 1_000_000)
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().strip() for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    acknowledged += process.stdout.read().split()
    process.wait()
    process.stdout.close()
    keys = [each.key for each in Decisions(path).all()]
    assert keys[: len(acknowledged)] == acknowledged
    assert len(keys) - len(acknowledged) in {0, 1}
    assert Decisions(path).put(factories.decision(key="zzz")) == 1


def test_two_processes_write_at_a_time(tmp_path: Path) -> None:
    """Neither loses anything."""
    path = tmp_path / "decisions.sqlite"
    both = [writer(path, 0, 20), writer(path, 100, 120)]
    for process in both:
        process.communicate()
        assert process.returncode == 0
    numbers = [*range(20), *range(100, 120)]
    assert [each.key for each in Decisions(path).all()] == [f"{each:06}" for each in numbers]
