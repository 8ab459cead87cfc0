from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.results.store import store
from dynamometer.results.store.atomic_file import replacing
from dynamometer.results.store.errors import FormatError
from dynamometer.results.store.store import EVENTS, MANIFEST, RunStore, StoreError
from dynamometer.results.values.records import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

LATER = f"is of format {SCHEMA_VERSION + 1}; .* reads format {SCHEMA_VERSION}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A run directory without records."""
    path = tmp_path / "runs" / "one"
    store.create(path, factories.manifest())
    return path


def append(directory: Path, *replicates: int) -> None:
    """Add records."""
    with RunStore(directory) as events:
        for each in replicates:
            events.append(factories.record(replicate=each))


def replicates(directory: Path) -> list[int]:
    """Read the replicates of the records back."""
    return [record.replicate for record in store.read_records(directory)]


def test_a_new_run_has_its_manifest_and_no_record(directory: Path) -> None:
    """What was planned can be read back before anything ran."""
    assert store.read_manifest(directory) == factories.manifest()
    assert store.read_records(directory) == []
    assert sorted(path.name for path in directory.iterdir()) == [EVENTS, MANIFEST]


def test_records_come_back_in_order(directory: Path) -> None:
    """What one sitting appends and the next goes on with is read as one run."""
    append(directory, 2, 0)
    append(directory, 1)
    assert replicates(directory) == [2, 0, 1]


def test_a_record_is_there_as_soon_as_it_is_appended(directory: Path) -> None:
    """Others read it while the writer is still at it."""
    with RunStore(directory) as events:
        events.append(factories.record())
        assert replicates(directory) == [0]


def test_each_record_is_one_line_of_json(directory: Path) -> None:
    """Text with newlines in it stays on its line."""
    record = factories.record(outcome=factories.failure(reason="a\nb\r\nc\u2028d"))
    with RunStore(directory) as events:
        events.append(record)
    (line,) = (directory / EVENTS).read_bytes().split(b"\n")[:-1]
    assert json.loads(line)["outcome"]["reason"] == "a\nb\r\nc\u2028d"
    assert store.read_records(directory) == [record]


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_half_written_line_is_dropped(directory: Path, cut: int) -> None:
    """A process killed while writing costs its last record, and appending goes on after it."""
    append(directory, 0, 1)
    line = msgspec.json.encode(factories.record(replicate=2))
    with (directory / EVENTS).open("ab") as file:
        file.write(line[:cut])
    assert replicates(directory) == [0, 1]
    append(directory, 2)
    assert replicates(directory) == [0, 1, 2]
    assert (directory / EVENTS).read_bytes().count(b"\n") == 3


def test_a_file_that_is_one_half_written_line_is_empty(directory: Path) -> None:
    """The very first record may be the one that was lost."""
    (directory / EVENTS).write_bytes(b'{"schema":')
    assert replicates(directory) == []
    append(directory, 0)
    assert replicates(directory) == [0]


@pytest.mark.parametrize(
    "damage", [b"{}", b"not json", b'{"schema":1,"surprise":2}', b"", b"\xff\xfe"], ids=repr
)
def test_a_damaged_line_is_named(directory: Path, damage: bytes) -> None:
    """Damage amid whole lines is an error that names file and line, never a lost record."""
    append(directory, 0)
    with (directory / EVENTS).open("ab") as file:
        file.write(damage + b"\n")
    append(directory, 1)
    with pytest.raises(StoreError, match=rf"{directory / EVENTS}:2 is damaged"):
        store.read_records(directory)


def test_one_writer_at_a_time(directory: Path) -> None:
    """A second writer is refused by name while the first is open, and let in after it."""
    with RunStore(directory), pytest.raises(StoreError, match=f"{directory} is being written by"):
        RunStore(directory)
    append(directory, 0)
    assert replicates(directory) == [0]


def test_a_refused_writer_leaves_the_line_in_progress_alone(directory: Path) -> None:
    """The second writer must not cut what the first is just writing."""
    with RunStore(directory):
        with (directory / EVENTS).open("ab") as file:
            file.write(b"half a li")
        with pytest.raises(StoreError):
            RunStore(directory)
        assert (directory / EVENTS).read_bytes() == b"half a li"


def test_what_a_killed_writer_left_is_removed(directory: Path) -> None:
    """By the next one that has the directory for itself, and nothing else is."""
    others = [directory / ".mine.part", directory / "page.0123456789abcdef.part"]
    for each in others:
        each.touch()
    (directory / "logs").mkdir()
    for name in ("report.html", "logs/a.log.gz"):
        with replacing(directory / name) as unfinished:
            unfinished.touch()
            left = unfinished
        left.touch()  # as if it had been killed before the end
        others.append(directory / name)
        with RunStore(directory):
            assert not left.exists()
            left.touch()
            with pytest.raises(StoreError):
                RunStore(directory)
            assert left.exists()
    append(directory, 0)
    assert not left.exists()
    assert all(each.exists() for each in others)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """The error names the directory and the option that chooses another."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"file/run can't be made: .*--output-dir"):
        store.create(tmp_path / "file" / "run", factories.manifest())


def test_a_home_for_runs(tmp_path: Path) -> None:
    """It is made where it isn't there; the error names it and the option that chooses another."""
    for _ in range(2):
        store.make_home(tmp_path / "deep" / "runs")
    assert (tmp_path / "deep" / "runs").is_dir()
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"file can't be made: File exists.*--output-dir"):
        store.make_home(tmp_path / "file")


def test_a_run_directory_is_never_made_twice(directory: Path) -> None:
    """An earlier run is not written over."""
    append(directory, 0)
    with pytest.raises(StoreError, match="can't be made: File exists"):
        store.create(directory, factories.manifest())
    assert replicates(directory) == [0]


def test_events_that_cannot_be_written(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / EVENTS).mkdir()
    with pytest.raises(StoreError, match=f"{tmp_path / EVENTS} can't be written: Is a directory"):
        RunStore(tmp_path)


@pytest.mark.parametrize(
    "happens",
    [
        shutil.rmtree,
        lambda run: run.rename(run.parent / "moved"),
        lambda run: ((run.parent / "link").hardlink_to(run / EVENTS), shutil.rmtree(run)),
        lambda run: (
            (run / EVENTS).rename(run / "saved"),
            (run / EVENTS).write_bytes((run / "saved").read_bytes()),
        ),
    ],
    ids=["removed", "moved", "removed, with a link elsewhere", "replaced by a copy"],
)
def test_a_run_that_is_lost_while_it_is_written_loses_nothing(
    directory: Path, happens: Callable[[Path], object]
) -> None:
    """Its records are a run beside where it was, which can be resumed, and the error says where."""
    append(directory, 0)
    with RunStore(directory) as events:
        happens(directory)
        with pytest.raises(StoreError, match="moved, replaced, shortened or removed") as error:
            events.append(factories.record(replicate=1))
    rescued = Path(str(error.value).rpartition(" ")[2])
    assert rescued == directory.with_name(f"{directory.name}-rescued-1")
    assert replicates(rescued) == [0, 1]
    assert store.read_manifest(rescued) == factories.manifest()


def test_a_run_whose_folder_is_gone_as_well_loses_nothing(tmp_path: Path) -> None:
    """The stages of a run with `ensemble` lie in a folder of it."""
    home = tmp_path / "run" / "ensemble"
    store.create(home / "tuned-1", factories.manifest())
    with RunStore(home / "tuned-1") as events:
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(StoreError, match="moved, replaced, shortened or removed") as error:
            events.append(factories.record())
    assert replicates(Path(str(error.value).rpartition(" ")[2])) == [0]


def test_a_run_that_can_be_kept_nowhere_says_so(tmp_path: Path) -> None:
    """A file is where its folder was."""
    store.create(tmp_path / "runs" / "run", factories.manifest())
    with RunStore(tmp_path / "runs" / "run") as events:
        shutil.rmtree(tmp_path / "runs")
        (tmp_path / "runs").touch()
        with pytest.raises(StoreError, match=r"can't be kept: .*Not a directory"):
            events.append(factories.record())


def test_a_run_that_is_shortened_is_noticed(directory: Path) -> None:
    """What somebody has cut off is gone, but not without a word."""
    append(directory, 0)
    with RunStore(directory) as events:
        (directory / EVENTS).write_bytes(b"")
        with pytest.raises(StoreError, match="shortened"):
            events.append(factories.record(replicate=1))


def test_what_is_no_run_directory(tmp_path: Path) -> None:
    """Resuming something else says what is missing."""
    with pytest.raises(StoreError, match=f"{tmp_path} is not a run directory: {MANIFEST}"):
        store.read_manifest(tmp_path)
    with pytest.raises(StoreError, match=f"{tmp_path} is not a run directory: {EVENTS}"):
        store.read_records(tmp_path)


def test_a_damaged_manifest_is_named(directory: Path) -> None:
    """A manifest cut short is an error that names it."""
    path = directory / MANIFEST
    path.write_bytes(path.read_bytes()[:100])
    expected = f"{path} is damaged or not of format {SCHEMA_VERSION}: .*: put a copy of it back"
    with pytest.raises(StoreError, match=expected):
        store.read_manifest(directory)


def test_a_manifest_of_a_later_format_is_refused(directory: Path) -> None:
    """A number is not read by rules it wasn't written by, even if the fields look the same."""
    path = directory / MANIFEST
    path.write_bytes(msgspec.json.encode(factories.manifest(schema=SCHEMA_VERSION + 1)))
    with pytest.raises(StoreError, match=f"{MANIFEST} {LATER}"):
        store.read_manifest(directory)


def test_records_of_a_later_format_are_refused(directory: Path) -> None:
    """Likewise for the records."""
    with RunStore(directory) as events:
        events.append(factories.record(schema=SCHEMA_VERSION + 1))
    with pytest.raises(StoreError, match=f"{EVENTS}:1 {LATER}"):
        store.read_records(directory)


@pytest.mark.parametrize(
    ("name", "read", "where"),
    [(MANIFEST, "read_manifest", MANIFEST), (EVENTS, "read_records", f"{EVENTS}:1")],
)
def test_a_later_format_with_other_fields_is_not_called_damaged(
    name: str, read: str, where: str, directory: Path
) -> None:
    """Nobody may delete its lines, or put a copy of it back."""
    with RunStore(directory) as events:
        events.append(factories.record())
    path = directory / name
    stored = {**json.loads(path.read_text()), "schema": SCHEMA_VERSION + 1, "new": 1}
    path.write_text(json.dumps(stored) + "\n")
    with pytest.raises(FormatError, match=f"{where} {LATER}: use the version that made it"):
        getattr(store, read)(directory)


def test_a_manifest_with_a_field_that_is_gone_is_read(directory: Path) -> None:
    """Runs that were made when models could ask for cosine similarity are read as they were."""
    path = directory / "manifest.json"
    stored = json.loads(path.read_bytes())
    stored["schema"] = 2
    for model in stored["plan"]["models"]:
        model["cosine"] = False
    path.write_text(json.dumps(stored))
    assert stored["plan"]["models"]
    assert store.read_manifest(directory).plan.models


def test_a_run_in_which_nothing_could_be_run_is_discarded(tmp_path: Path) -> None:
    """One that holds a record stays, be it of a stage before the run itself."""
    for name, stage in (("empty", None), ("run", ""), ("tuned", "ensemble/tuned-1")):
        store.create(tmp_path / name, factories.manifest())
        if stage:
            store.create(tmp_path / name / stage, factories.manifest())
        if stage is not None:
            with store.RunStore(tmp_path / name / stage) as events:
                events.append(factories.record())
        assert store.discard(tmp_path / name) == (stage is None)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run", "tuned"]
