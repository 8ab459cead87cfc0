from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import factories
import pytest

from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.overview import (
    RunState,
    read_overview,
    run_directories,
    size_on_disk,
)
from dynamometer.results.values.records import Status, StopReason

OLD = Path(__file__).resolve().parents[3] / "golden" / "format_2"


def stored(folder: Path, *, stopped: bool = True) -> Path:
    """Store a run of two models, the second of which may not have ended."""
    plan = factories.plan(factories.model_spec("alexnet"), factories.model_spec("dcgan"))
    store.create(folder, factories.manifest(plan))
    with store.RunStore(folder) as events:
        for case, is_over in zip(plan.cases, (True, stopped), strict=True):
            events.append(
                factories.record(case, stopped=StopReason.REPLICATES if is_over else None)
            )
    return folder


def test_a_run_is_done_when_every_case_has_ended(tmp_path: Path) -> None:
    """Otherwise it says how many have."""
    assert read_overview(stored(tmp_path / "a")).progress == "done"
    found = read_overview(stored(tmp_path / "b", stopped=False))
    assert (found.state, found.progress) == (RunState.INTERRUPTED, "interrupted, 1 of 2")


@pytest.mark.parametrize(
    ("name", "progress"), [("sizes", "done"), ("speedup", "interrupted, 1 of 2")]
)
def test_runs_of_earlier_formats_are_read(name: str, progress: str) -> None:
    """Whether a case had ended was not always said there."""
    assert read_overview(OLD / name).progress == progress


def test_a_replicate_that_is_attempted_again_has_not_ended_its_case(tmp_path: Path) -> None:
    """Its first attempt would have; the one that counts is the first of three that are to come."""
    plan = factories.plan(factories.model_spec("alexnet"))
    store.create(tmp_path / "a", factories.manifest(plan))
    failed = factories.failure(Status.INFRA)
    with store.RunStore(tmp_path / "a") as events:
        events.append(factories.record(plan.cases[0], outcome=failed, stopped=StopReason.FAILED))
        assert read_overview(tmp_path / "a").finished == 1
        events.append(factories.record(plan.cases[0], earlier=(failed,)))
    assert read_overview(tmp_path / "a").progress == "interrupted, 0 of 1"


def test_a_fault_of_the_harness_is_said(tmp_path: Path) -> None:
    """Until a further attempt at the replicate ends otherwise."""
    plan = factories.plan(factories.model_spec("alexnet"), factories.model_spec("dcgan"))
    store.create(tmp_path / "a", factories.manifest(plan))
    failed = factories.failure(Status.INFRA)
    with store.RunStore(tmp_path / "a") as events:
        for case in plan.cases:
            lost = factories.record(case, outcome=failed, stopped=StopReason.FAILED)
            events.append(lost)
    assert read_overview(tmp_path / "a").progress == "done, 2 infra"
    again = factories.record(plan.cases[0], earlier=(failed,), stopped=StopReason.REPLICATES)
    with store.RunStore(tmp_path / "a") as events:
        events.append(again)
    found = read_overview(tmp_path / "a")
    assert (found.state, found.progress) == (RunState.DONE, "done, 1 infra")


def test_a_run_that_is_being_written_is_running(tmp_path: Path) -> None:
    """Looking at it doesn't disturb the one who writes."""
    directory = stored(tmp_path / "a")
    with store.RunStore(directory):
        assert read_overview(directory).progress == "running, 2 of 2"
    assert read_overview(directory).state is RunState.DONE


def test_a_line_that_was_not_finished_does_not_count(tmp_path: Path) -> None:
    """A process died while writing it."""
    directory = stored(tmp_path / "a")
    with (directory / store.EVENTS).open("ab") as file:
        file.write(b'{"case": {"mod')
    assert read_overview(directory).finished == 2


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    """By its number."""
    directory = stored(tmp_path / "a")
    with (directory / store.EVENTS).open("ab") as file:
        file.write(b"nonsense\n")
    with pytest.raises(StoreError, match=r"events\.jsonl:3 is damaged"):
        read_overview(directory)


def test_a_run_without_events_is_named(tmp_path: Path) -> None:
    """A run directory has a file of events from the first."""
    directory = stored(tmp_path / "a")
    (directory / store.EVENTS).unlink()
    with pytest.raises(StoreError, match=r"events\.jsonl can't be read"):
        read_overview(directory)


def test_the_size_is_that_of_its_own_files(tmp_path: Path) -> None:
    """Of a link that of the link itself, however much it leads to."""
    (tmp_path / "big").write_bytes(b"x" * 100_000)
    directory = tmp_path / "run"
    (directory / "logs").mkdir(parents=True)
    (directory / "logs" / "a.log").write_bytes(b"x" * 1000)
    (directory / "link").symlink_to(tmp_path / "big")
    assert 1000 < size_on_disk(directory) < 2000


def test_run_directories_are_found(tmp_path: Path) -> None:
    """Those in a folder, sorted; or the folder itself; nothing else."""
    stored(tmp_path / "b")
    shutil.copytree(tmp_path / "b", tmp_path / "a")
    (tmp_path / "other").mkdir()
    assert run_directories(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert run_directories(tmp_path / "a") == [tmp_path / "a"]
    with pytest.raises(StoreError, match="can't be read"):
        run_directories(tmp_path / "none")


def test_a_reader_does_not_keep_a_lock(tmp_path: Path) -> None:
    """Who looks leaves the file free for who writes."""
    directory = stored(tmp_path / "a")
    read_overview(directory)
    with (directory / store.EVENTS).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
