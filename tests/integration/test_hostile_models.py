"""Whatever a model does to its process, there is one record with the right status."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import hostile_manifest, run_manifest
from leaping_clock import leaping

from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.store import logs
from dynamometer.results.values.records import Record, Stage, Status
from dynamometer.results.values.workers import StartMethod

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPECTED = {
    "behaves": (Status.PASS, None, None),
    "closes_descriptors": (Status.CRASH, None, "exited with code 1 and no result"),
    "deletes_its_folder": (Status.PASS, None, None),
    "deletes_logs": (Status.PASS, None, None),
    "forks_and_exits": (Status.PASS, None, None),
    "garbles_descriptors": (Status.CRASH, None, "exited with code"),
    "kills_itself": (Status.CRASH, Stage.EAGER, "killed by SIGKILL"),
    "leaves_many": (Status.PASS, None, None),
    "lowers_limits": (Status.FAIL, Stage.EAGER, "Too many open files"),
    "starts_threads": (Status.FAIL, Stage.EAGER, "can't start new thread"),
    "stops_the_clock": (Status.PASS, None, None),
    "exits": (Status.CRASH, Stage.EAGER, "exited with code 3 and no result"),
    "exits_as_if_well": (Status.CRASH, Stage.EAGER, "exited with code 0 and no result"),
    "exits_while_loading": (Status.CRASH, Stage.LOAD, "exited with code 7 and no result"),
    "fails_to_load": (Status.FAIL, Stage.LOAD, "ValueError: no such layer"),
    "leaves_a_daemon": (Status.PASS, None, None),
    "leaves_a_process": (Status.PASS, None, None),
    "not_supported": (Status.SKIP, Stage.LOAD, "not on this device"),
    "prints_megabytes": (Status.PASS, None, None),
    "raises": (Status.FAIL, Stage.EAGER, "RuntimeError: this model raises"),
    "raises_system_exit": (Status.FAIL, Stage.EAGER, "SystemExit: 0"),
    "segfaults": (Status.CRASH, Stage.EAGER, "killed by SIGSEGV"),
    "takes_memory": (Status.OOM, Stage.EAGER, "can't allocate memory"),
    "takes_shared_memory": (Status.OOM, Stage.EAGER, "killed over its memory limit"),
    "uncapturable": (Status.FAIL, Stage.COMPILE, "captured no graph"),
    "undecided": (Status.NONDETERMINISTIC, Stage.EAGER, "two eager runs from one seed differ"),
    "writes_everywhere": (Status.PASS, None, None),
    "wrong_when_compiled": (
        Status.FAIL_ACCURACY,
        Stage.COMPARE,
        "output: 512 of 512 elements are wrong",
    ),
}
TIMEOUT_S = 9000.0
MEMORY_LIMIT_BYTES = 3 * 2**30
LOG_LIMIT_BYTES = 2 * 2**20 + 100


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run directory of the sweep below."""
    return tmp_path_factory.mktemp("hostile") / "run"


@pytest.fixture(scope="module")
def records(directory: Path) -> Mapping[str, Record]:
    """Run every hostile model but those that hang, in one sweep from one template."""
    manifest = hostile_manifest(list(EXPECTED), memory_limit_bytes=MEMORY_LIMIT_BYTES)
    return run_manifest(manifest, directory)


@pytest.mark.parametrize("name", EXPECTED)
def test_each_misdeed_has_its_status(name: str, records: Mapping[str, Record]) -> None:
    """A sweep over hostile models goes on to the end and says what each of them did."""
    status, stage, reason = EXPECTED[name]
    outcome = records[name].outcome
    assert outcome.status is status, outcome
    if stage is not None:
        assert outcome.stage is stage
    if reason is not None:
        assert reason in (outcome.reason or "")


def test_crash_leaves_its_stack(records: Mapping[str, Record]) -> None:
    """The record of a segfault quotes the stack that was written to the log."""
    assert "Fatal Python error: Segmentation fault" in (records["segfaults"].outcome.detail or "")


def test_a_further_attempt_does_not_quote_the_one_before(tmp_path: Path) -> None:
    """They share a log; what each wrote is its own."""
    manifest = hostile_manifest(["crashes_then_ends"], retries_for=(Status.CRASH,))
    record = run_manifest(manifest, tmp_path / "run")["crashes_then_ends"]
    first, second = record.earlier
    assert "Fatal Python error: Segmentation fault" in (first.detail or "")
    assert "SIGKILL" in (second.reason or "")
    assert "SIGKILL" in (record.outcome.reason or "")
    assert second.detail is record.outcome.detail is None


def test_what_ends_its_process_later_has_one_status(tmp_path: Path) -> None:
    """Whether eager or the other arm is built first, which is drawn, and so is at work then."""
    at_work = set()
    for seed in range(2):
        manifest = hostile_manifest(["segfaults_later"], seed=seed)
        record = run_manifest(manifest, tmp_path / str(seed))["segfaults_later"]
        at_work.add((record.outcome.reason or "").rsplit(maxsplit=1)[-1])
        (arm,) = summarize_case([record]).arms
        assert arm.outcome.status is Status.CRASH
    assert at_work == {"baseline", "eager"}


def test_foreign_bytes_are_noted(records: Mapping[str, Record]) -> None:
    """Writing to the result channel forges nothing, and is told."""
    record = records["writes_everywhere"]
    assert any("to the result channel" in note for note in record.notes)
    assert {each.metric for each in record.measurements} >= {"latency", "calls_memory"}


def test_a_stopped_clock_stops_no_stopwatch(records: Mapping[str, Record]) -> None:
    """What is measured, and the seconds of stages, are those of a clock that goes on."""
    record = records["stops_the_clock"]
    times = [each for each in record.measurements if each.metric == "latency"]
    assert times
    assert all(min(each.samples) > 0 for each in times)
    assert all(seconds >= 0 for seconds in record.seconds.values())


def test_flooded_log_is_cut(records: Mapping[str, Record], directory: Path) -> None:
    """Megabytes of output neither block the model nor fill the disk."""
    log = directory / str(records["prints_megabytes"].log)
    text = logs.read(log)
    assert len(text) <= LOG_LIMIT_BYTES
    assert b"[... cut ...]" in text
    assert not log.exists()
    assert logs.compressed(log).stat().st_size < LOG_LIMIT_BYTES / 20


@pytest.mark.parametrize("name", ["leaves_a_process", "leaves_a_daemon", "leaves_many"])
def test_no_process_is_left(name: str, records: Mapping[str, Record], directory: Path) -> None:
    """What a model started dies with its worker, even where it began a session of its own."""
    log = (directory / str(records[name].log)).read_text()
    left = [int(number) for number in re.findall(r"left behind: (\d+)", log)]
    assert left
    assert not [pid for pid in left if Path(f"/proc/{pid}/cwd").exists() and _is_ours(pid)]


def test_failing_arm_spares_the_other(records: Mapping[str, Record]) -> None:
    """Where only the compiled arm is wrong, the baseline is said to have passed."""
    statuses = {arm.arm: arm.outcome.status for arm in records["wrong_when_compiled"].arms}
    assert statuses == {"baseline": Status.PASS, "eager": Status.FAIL_ACCURACY}


def test_absence_has_a_reason(records: Mapping[str, Record]) -> None:
    """A latency that could not be measured is absent with the reason, never a number."""
    record = records["uncapturable"]
    assert not [each for each in record.measurements if each.metric == "latency"]
    assert {each.arm: each.reason for each in record.absent}["eager"].startswith("Dynamo captured")


@pytest.mark.parametrize("name", ["hangs", "hangs_in_c", "ignores_termination", "stops_itself"])
def test_hang_is_a_timeout(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that hangs is killed, even one deaf to SIGTERM, and its stack is in the record.

    The time runs out once it says that it hangs, however long it took to get there.
    """
    hangs = tmp_path / "hangs"
    hangs.touch()
    monkeypatch.setenv("HANGS", str(hangs))
    monkeypatch.setattr(time, "monotonic", leaping(time.monotonic, hangs, TIMEOUT_S + 1))
    outcome = run_manifest(hostile_manifest([name], timeout_s=TIMEOUT_S), tmp_path / "run")[
        name
    ].outcome
    assert outcome.status is Status.TIMEOUT
    assert outcome.stage is Stage.EAGER
    assert outcome.reason == f"killed after {TIMEOUT_S:.0f} s at stage eager"
    if name == "hangs":
        assert "hostile_suite.py" in (outcome.detail or "")


@pytest.mark.usefixtures("own_fork_servers")
def test_spawned_workers_do_as_forked_ones(tmp_path: Path) -> None:
    """A fresh process per worker gives the same outcomes as forks of a template."""
    manifest = hostile_manifest(["behaves", "exits"], start_method=StartMethod.SPAWN)
    records = run_manifest(manifest, tmp_path / "run")
    assert records["behaves"].outcome.status is Status.PASS
    assert records["exits"].outcome.status is Status.CRASH
    assert {each.metric for each in records["behaves"].measurements} >= {"latency", "calls_memory"}


def _is_ours(pid: int) -> bool:
    """Return whether a process still runs the sleeper that was left behind."""
    try:
        return b"sleep\0600" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
