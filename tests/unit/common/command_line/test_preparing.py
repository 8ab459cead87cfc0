"""What the stages before a run do with executors, without a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import factories
import msgspec
import pytest
from fakes import FakeExecutor, RecordingSink

from dynamometer.common.command_line import begin
from dynamometer.common.command_line.decisions import preparing
from dynamometer.common.command_line.decisions.preparing import _Stages
from dynamometer.common.ending import ExitCode
from dynamometer.common.interfaces.option import defaults
from dynamometer.common.interfaces.run_options import REPORT_OPTIONS
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.overview import is_locked
from dynamometer.results.values.cases import Tuning

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.common.command_line.decisions.sink import DecisionSink
    from dynamometer.results.values.records import Manifest


class Noted(FakeExecutor):
    """Notes in a file beside its directory when it is made and closed."""

    def __init__(self, manifest: Manifest, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self.note("made")

    def note(self, what: str) -> None:
        """Write it down."""
        with (self.directory.parent / "notes").open("a") as file:
            file.write(f"{self.directory.name} {what}\n")

    def close(self) -> None:
        """Note it."""
        self.note("closed")


class HandedOver(Noted):
    """Leaves what it has started to the next."""

    def hand_over(self, manifest: Manifest, directory: Path) -> HandedOver:
        """Make that."""
        return HandedOver(manifest, directory)


@pytest.mark.parametrize(
    ("kind", "noted"),
    [
        (Noted, ["a-1 made", "a-1 closed", "b-1 made", "b-1 closed"]),
        (HandedOver, ["a-1 made", "b-1 made", "b-1 closed"]),
    ],
)
def test_one_executor_at_a_time(kind: type[Noted], noted: list[str], tmp_path: Path) -> None:
    """The next goes on with what the one before has started, where that offers it."""
    plan = msgspec.structs.replace(factories.plan(), executor=f"{__name__}:{kind.__name__}")
    sink = cast("DecisionSink", RecordingSink())
    stages = _Stages(factories.manifest(plan), tmp_path, sink, ["noted"])
    for name in ("a", "b"):
        records = stages.run(name, "something is done", plan)
        assert records
        assert {each.notes[-1:] for each in records} == {("noted",)}
    stages.close()
    assert (tmp_path / "ensemble" / "notes").read_text().splitlines() == noted


def test_nobody_else_works_on_a_run_that_is_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first stage on: it can't be removed, or resumed by another process."""
    tuning = Tuning(decisions=str(tmp_path / "decisions.sqlite"))
    manifest = factories.manifest(msgspec.structs.replace(factories.plan(), tuning=tuning))
    store.create(tmp_path / "run", manifest)
    seen: list[bool] = []

    def prepare(_: Manifest, directory: Path, __: object) -> bool:
        seen.append(is_locked(directory))
        return False

    monkeypatch.setattr(preparing, "prepare", prepare)
    asked = defaults(REPORT_OPTIONS)
    assert begin.execute(manifest, tmp_path / "run", asked) == ExitCode.INTERRUPTED
    with store.RunStore(tmp_path / "run"), pytest.raises(StoreError, match="by another process"):
        begin.execute(manifest, tmp_path / "run", asked)
    assert seen == [True]
