"""Files that are none, or not what they should be."""

from __future__ import annotations

import os
import re
from pathlib import Path

import factories
import msgspec
import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.planning.batch_size_file import read_batch_sizes
from dynamometer.common.planning.between_processes import known_between_sds
from dynamometer.common.planning.estimate import estimate
from dynamometer.results.comparison.dashboard_files import read_files
from dynamometer.results.statistics.summary import by_case, summarize_case
from dynamometer.results.store import expected, overview, store
from dynamometer.results.store.decisions import exported
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.reading import csv_table, file_bytes, file_text
from dynamometer.results.values.records import BetweenProcessSd

BAD_LINE = b'{"reason": "\xff"}\n'


def run_directory(runs: Path, name: str) -> Path:
    """Make a run without records."""
    directory = runs / name
    store.create(directory, factories.manifest(run_id=name))
    return directory


@pytest.mark.parametrize("name", [store.EVENTS, store.MANIFEST])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    """Nobody writes to it; whoever opened it to read would wait for ever."""
    directory = run_directory(tmp_path, "a")
    (directory / name).unlink()
    os.mkfifo(directory / name)
    for read in (store.read_records, store.read_manifest, overview.read_overview):
        if name == store.EVENTS and read is store.read_manifest:
            continue
        with pytest.raises(StoreError, match="Is a pipe or device, not a file"):
            read(directory)
    assert not overview.is_locked(directory)
    if name == store.EVENTS:
        with pytest.raises(StoreError, match=f"{name} can't be written"):
            store.RunStore(directory)


def piped(text: str) -> Path:
    """Return the name of a pipe that a text comes from, as a shell's `<(...)` is."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    return Path(f"/dev/fd/{reading}")


def test_a_pipe_that_a_user_names_is_read(tmp_path: Path) -> None:
    """A file of batch sizes, decisions, or one side of a comparison; not a table read twice."""
    assert read_batch_sizes(piped("resnet18,64\n")) == {"resnet18": 64}
    assert read_files(piped("dev,name,batch_size,speedup\ncpu,resnet18,4,1.5\n"))
    text = exported([factories.decision()])
    words = ["decisions", "import", str(piped(text)), "--decisions", str(tmp_path / "some")]
    assert cli.main(None, words) == 0
    with pytest.raises(StoreError, match="Is a pipe or device, not a file"):
        expected.read_table(piped(""))


def test_what_is_no_file_is_no_text(tmp_path: Path) -> None:
    """A folder, a device that never ends, and a name that no file can have."""
    for path, why in (
        (tmp_path, "Is a directory"),
        (Path("/dev/zero"), "Is a pipe or device"),
        (tmp_path / "a\0b", "no name of a file"),
        (tmp_path / "none", "No such file"),
    ):
        with pytest.raises(OSError, match=why):
            file_bytes(path)
        with pytest.raises(StoreError, match=f"can't be read: .*{why}"):
            file_text(path)


def test_text_that_is_not_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    """So that an editor finds it."""
    path = tmp_path / "text"
    path.write_bytes(b"one\ntwo\xff\n")
    with pytest.raises(StoreError, match=r"text, line 2 can't be read: byte 0xff is not UTF-8"):
        file_text(path)


def test_a_cell_that_is_too_large_is_named_with_its_line(tmp_path: Path) -> None:
    """As in every other table that can't be read."""
    path = tmp_path / "table.csv"
    path.write_text(f"case,arm\na,b\n{'x' * 200_000},c\n")
    _, rows = csv_table(path)
    with pytest.raises(StoreError, match=r"table\.csv, line 3 can't be read: field larger"):
        list(rows)


def test_an_expected_table_says_each_result_once(tmp_path: Path) -> None:
    """Of two that contradict each other neither is right."""
    path = tmp_path / "table.csv"
    rows = "a,inductor,pass,,\na,inductor,fail,,\n"
    path.write_text(",".join(expected.COLUMNS) + "\n" + rows)
    with pytest.raises(StoreError, match="line 3: inductor of a is there already"):
        expected.read_table(path)


@pytest.mark.parametrize("name", [store.EVENTS, store.MANIFEST])
def test_a_bad_byte_is_an_error_that_names_the_file(tmp_path: Path, name: str) -> None:
    """Msgspec raises it beside its own errors."""
    directory = run_directory(tmp_path, "a")
    (directory / name).write_bytes(BAD_LINE)
    with pytest.raises(StoreError, match=f"{name}.* is damaged .*utf-8"):
        store.read_records(directory)
    with pytest.raises(StoreError, match=f"{name}.* is damaged"):
        overview.read_overview(directory)


def test_a_bad_byte_is_seen_wherever_it_stands(tmp_path: Path) -> None:
    """In what a list of runs doesn't read as well, so that all commands say the same."""
    directory = run_directory(tmp_path, "a")
    line = msgspec.json.encode(factories.record(run_id="a", command="COMMAND"))
    (directory / store.EVENTS).write_bytes(line.replace(b"COMMAND", b"\xff") + b"\n")
    for read in (store.read_records, overview.read_overview):
        with pytest.raises(StoreError, match=r"events\.jsonl:1 is damaged"):
            read(directory)


@pytest.mark.parametrize("name", [store.EVENTS, store.MANIFEST])
def test_a_damaged_run_hinders_no_other(tmp_path: Path, name: str) -> None:
    """Later runs below the same folder learn nothing from it, and are planned and begun."""
    directory = run_directory(tmp_path, "20260101")
    (directory / name).write_bytes(BAD_LINE)
    (tmp_path / "no run").mkdir()
    (tmp_path / "no run" / name).write_bytes(BAD_LINE)
    plan = factories.plan()
    assert not known_between_sds(plan, factories.environment(), tmp_path)
    assert estimate(plan, plan.cases, tmp_path).known_cases == 0


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"cases": ()}, "it plans no case"),
        ({"models": ()}, "it doesn't describe the model"),
        ({"experiments": ()}, "it asks nothing"),
    ],
)
def test_a_plan_that_nothing_can_be_run_of_is_damaged(
    tmp_path: Path, fields: dict[str, object], fault: str
) -> None:
    """What is read later relies on each of these."""
    directory = tmp_path / "a"
    store.create(directory, factories.manifest())
    manifest = factories.manifest(factories.plan(**fields))
    (directory / store.MANIFEST).write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(StoreError, match=f"{store.MANIFEST} is damaged: {fault}"):
        store.read_manifest(directory)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("2026-11-29T18:00:00-12:00", "2026-11-30T06:00:00+00:00"),
        ("2026-11-29T18:00:00Z", "2026-11-29T18:00:00+00:00"),
        ("2026-11-29T18:00:00", "2026-11-29T18:00:00+00:00"),
        ("2026-11-29T18:00:00+00:00", "2026-11-29T18:00:00+00:00"),
        ("2026-11-29", "2026-11-29T00:00:00+00:00"),
    ],
)
def test_a_run_was_made_at_a_time_of_utc(tmp_path: Path, said: str, read: str) -> None:
    """By which runs are sorted, whoever made them."""
    store.create(tmp_path / "a", factories.manifest(created_at=said))
    assert store.read_manifest(tmp_path / "a").created_at == read


@pytest.mark.parametrize("said", ["yesterday", "", "2026-11-29T25:00", "0001-01-01T00:00+14:00"])
def test_a_run_that_was_made_at_no_time_is_damaged(tmp_path: Path, said: str) -> None:
    """What exports it would fail."""
    store.create(tmp_path / "a", factories.manifest(created_at=said))
    fault = f"is damaged: it says that it was made at {said!r}, which is no time"
    with pytest.raises(StoreError, match=re.escape(fault)):
        store.read_manifest(tmp_path / "a")


def latencies(**fields: object) -> dict[str, object]:
    """Return what replaces the measurements of a record."""
    return {"measurements": (factories.measurement(**fields), factories.latency("inductor", 0.01))}  # type: ignore[arg-type]  # untyped


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (latencies(samples=(0.0,) * 4, blocks=(0, 1, 2, 3)), "latency of baseline holds a sample"),
        (latencies(samples=(-1.0,) * 4, metric="latency_at_size/0"), "not between 1e-09 and"),
        (latencies(samples=(1e10,), metric="latency_alone"), "not between 1e-09 and 1e.09 s"),
        (latencies(samples=(), metric="calls_memory"), "calls_memory of baseline holds no sample"),
        (latencies(samples=(1e200,), metric="calls_memory"), "holds a sample beyond 1e.18"),
        (latencies(), "latency of baseline doesn't say which blocks"),
        ({"target": -1.0}, "target is not positive"),
        ({"between_sd": BetweenProcessSd(sd_log=0.01, df=0.0)}, "no standard deviation"),
        ({"between_sds": {"a": BetweenProcessSd(sd_log=-0.01, df=1.0)}}, "no standard deviation"),
    ],
)
def test_what_cannot_have_been_measured_is_damaged(
    tmp_path: Path, fields: dict[str, object], says: str
) -> None:
    """It can be decoded, but no figure can be computed of it: file and line are named."""
    directory = run_directory(tmp_path, "a")
    record = factories.record(run_id="a")
    lines = [record, msgspec.structs.replace(record, replicate=1, **fields)]
    (directory / store.EVENTS).write_bytes(b"".join(msgspec.json.encode(x) + b"\n" for x in lines))
    with pytest.raises(StoreError, match=rf"{store.EVENTS}:2 is damaged .*{says}"):
        store.read_records(directory)


def test_latencies_of_no_block_are_read(tmp_path: Path) -> None:
    """As where batch sizes are searched: what isn't compared by block needs none."""
    directory = run_directory(tmp_path, "a")
    found = tuple(factories.measurement(arm=each) for each in factories.ARMS)
    record = factories.record(run_id="a", measurements=found)
    (directory / store.EVENTS).write_bytes(msgspec.json.encode(record) + b"\n")
    (case,) = by_case(store.read_records(directory))
    assert summarize_case(case).arms[0].speedup is None
