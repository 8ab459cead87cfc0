"""Which lines of a run's file are its records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.results.store import store
from dynamometer.results.store.overview import read_overview
from dynamometer.results.values.cases import Scale

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.values.records import Record


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A run of three replicates, of which two are recorded."""
    store.create(tmp_path / "run", factories.manifest(factories.plan(replicates=3)))
    append(tmp_path / "run", *(factories.record(replicate=each) for each in (0, 1)))
    return tmp_path / "run"


def append(directory: Path, *records: Record) -> None:
    """Add lines."""
    with store.RunStore(directory) as events:
        for each in records:
            events.append(each)


def test_each_replicate_counts_once(directory: Path) -> None:
    """Lines that stand three times are no more replicates than were measured."""
    events = directory / store.EVENTS
    events.write_bytes(3 * events.read_bytes())
    found = store.read_run(directory)
    assert [each.replicate for each in found.records] == [0, 1]
    assert found.warning is not None
    assert "4 line(s) of events.jsonl are not counted: line 3 is replicate 0" in found.warning
    assert read_overview(directory).progress == "interrupted, 0 of 1"


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (factories.record(replicate=2, run_id="other"), "line 3 is of the run 'other'"),
        (factories.record(replicate=-1), "line 3 is replicate -1, of at most 3"),
        (factories.record(replicate=3), "line 3 is replicate 3, of at most 3"),
        (
            factories.record(factories.case("another", scale=Scale.TINY)),
            "line 3 is of 'torchbench/another/.*', which the run doesn't plan",
        ),
    ],
)
def test_what_is_not_of_the_run_is_left_out(directory: Path, record: Record, why: str) -> None:
    """It is said which line and why, and it stands where it stood."""
    append(directory, record, factories.record(replicate=2))
    found = store.read_run(directory)
    assert [each.replicate for each in found.records] == [0, 1, 2]
    assert len(found.strays) == 1
    assert re.fullmatch(why, found.strays[0])
    assert len((directory / store.EVENTS).read_bytes().splitlines()) == 4
    assert read_overview(directory).progress == "done"


def test_a_clock_that_jumps_changes_no_result(directory: Path) -> None:
    """Records are in the order of their lines, whatever the wall clock said when they were made."""
    earlier = msgspec.structs.replace(
        factories.record(replicate=2), started_at="1970-01-01T00:00:00.000+00:00"
    )
    append(directory, earlier)
    found = store.read_run(directory)
    assert [each.replicate for each in found.records] == [0, 1, 2]
    assert found.strays == ()
    assert read_overview(directory).progress == "done"


def test_strays_dont_end_a_case(directory: Path) -> None:
    """One that says its case needs no more is believed only if it is the run's."""
    stray = msgspec.structs.replace(factories.record(replicate=2, run_id="x"), stopped="replicates")
    append(directory, stray)
    assert read_overview(directory).progress == "interrupted, 0 of 1"
