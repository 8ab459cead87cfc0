"""Runs of earlier formats, as the versions of that time made them, are read for ever.

What is expected of them is what those versions printed, in the words of today.
"""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import pytest
from fakes import FakeExecutor, RecordingObserver, RecordingSink

from dynamometer.common import registry
from dynamometer.common.execution.runner import Interrupt, Remaining, RunInProgress, run
from dynamometer.common.planning.between_processes import known_between_sds
from dynamometer.results.reports.console import Console
from dynamometer.results.statistics.summary import by_case
from dynamometer.results.store import store
from dynamometer.results.values.records import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
RUNS = sorted(path.parent for path in HERE.glob("format_*/*/manifest.json"))
SPEEDUP = HERE / "format_2" / "speedup"


@pytest.mark.parametrize("directory", RUNS, ids=lambda path: f"{path.parent.name}_{path.name}")
def test_they_are_shown(golden: Callable[[str, str], None], directory: Path) -> None:
    """Every study prints of its records what it printed then."""
    manifest, records = store.read_manifest(directory), store.read_records(directory)
    assert {each.schema for each in (manifest, *records)} == {SCHEMA_VERSION}
    stream = io.StringIO()
    console = Console(registry.study(manifest.plan.study), factories.destination(stream=stream))
    for case in by_case(records):
        console.write(case)
    console.close()
    golden(f"{directory.parent.name}_{directory.name}.txt", stream.getvalue())


def test_one_that_was_interrupted_is_resumed(tmp_path: Path) -> None:
    """Its records stay as they are, and only what is left is run."""
    directory = shutil.copytree(SPEEDUP, tmp_path / "speedup")
    manifest, before = store.read_manifest(directory), store.read_records(directory)
    executor = FakeExecutor()
    with store.RunStore(directory) as events:
        rest = Remaining(manifest, before)
        ongoing = RunInProgress(rest, events, [RecordingSink()], RecordingObserver())
        assert run(ongoing, executor, Interrupt())
    assert executor.executed == [("lennard_jones", 1)]
    after = store.read_records(directory)
    assert (after[:-1], after[-1].case, after[-1].replicate) == (before, before[0].case, 1)


def test_they_are_learnt_from(tmp_path: Path) -> None:
    """A later run knows how far processes differ; not of records that were disturbed."""
    manifest = store.read_manifest(SPEEDUP)
    for name in ("one", "two", "three"):
        directory = shutil.copytree(SPEEDUP, tmp_path / name)
        events = directory / store.EVENTS
        if name == "one":
            assert not known_between_sds(manifest.plan, manifest.environment, tmp_path)
        calm = [json.loads(line) for line in events.read_bytes().splitlines()]
        for each in calm:
            each["disturbed_blocks"] = []
        events.write_text("".join(f"{json.dumps(each)}\n" for each in calm))
    assert known_between_sds(manifest.plan, manifest.environment, tmp_path)
