"""What the stages before a run do with executors, without a worker."""

from __future__ import annotations

import shlex
import signal
from typing import TYPE_CHECKING, cast

import factories
import msgspec
import pytest
from fakes import FakeExecutor, RecordingSink, send_itself

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
    from dynamometer.results.values.cases import Case
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


def interrupted_in_its_last(manifest: Manifest, directory: Path) -> FakeExecutor:
    """Be sent what Ctrl-C is while the last replicate of a plan is made."""
    made = FakeExecutor()
    count = len(manifest.plan.cases) * manifest.plan.protocol.replicates

    def before(case: Case, replicate: int) -> None:
        if len(made.executed) == count - 1:
            send_itself(signal.SIGINT)

    made.before = before
    return made


def test_an_interrupt_in_the_last_replicate_of_a_stage_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As is said, though the stage itself is complete; its records are kept."""
    executor = f"{__name__}:{interrupted_in_its_last.__name__}"
    plan = msgspec.structs.replace(factories.plan(), executor=executor)
    stages = _Stages(factories.manifest(plan), tmp_path, cast("DecisionSink", RecordingSink()))
    assert stages.run("a", "something is done", plan) is None
    assert "stopping after this replicate" in capsys.readouterr().err
    count = len(plan.cases) * plan.protocol.replicates
    assert len(store.read_records(tmp_path / "ensemble" / "a-1")) == count


def test_a_stage_of_another_suite_is_repeated_by_another_program(tmp_path: Path) -> None:
    """Graphs are run from their corpus, not by the script of the suite they were found in."""
    program = f"dynamometer run {shlex.quote(str(tmp_path / 'graphs'))}"
    plan = msgspec.structs.replace(factories.plan(), executor=f"{__name__}:{Noted.__name__}")
    stages = _Stages(factories.manifest(plan), tmp_path, cast("DecisionSink", RecordingSink()))
    stages.run("a", "something is done", plan, program)
    assert store.read_manifest(tmp_path / "ensemble" / "a-1").program == program


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
