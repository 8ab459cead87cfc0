from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from fakes import unread_standard_error

from dynamometer.common.command_line import progress as progress_module
from dynamometer.common.command_line.progress import ProgressLine, duration
from dynamometer.results.values.records import Outcome, Status, StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.records import Record


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (150, "2 min"), (3599, "60 min"), (5400, "1.5 h")],
)
def test_durations(seconds: float, text: str) -> None:
    """Durations are rounded to what one wants to know."""
    assert duration(seconds) == text


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Give a clock that stands until a test sets it forward."""
    stopped = SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: stopped.now))
    return stopped


def lines(capsys: pytest.CaptureFixture[str], records: Sequence[Record], estimate_s: float) -> str:
    """Watch records go by, and give what was printed on standard error."""
    with ProgressLine(len(records), 1, estimate_s, "replicate {}".format) as progress:
        for record in records:
            progress.case_started(record.case)
            progress.record_made(msgspec.structs.replace(record, stopped=StopReason.REPLICATES))
            progress.case_ended(record.case)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_one_plain_line_for_each_replicate(capsys: pytest.CaptureFixture[str]) -> None:
    """Away from a terminal, progress is lines on standard error: which, how, how long, and left."""
    failed = factories.failure(Status.OOM)
    records = [
        factories.record(factories.case("a"), seconds={"load": 1.0, "measure": 2.25}),
        factories.record(factories.case("b"), replicate=1, outcome=failed),
    ]
    first, second = lines(capsys, records, 100.0).splitlines()
    assert first == "[0/2 done] a replicate 0: pass in 3.2 s, about 25 s left"
    assert second.startswith("[1/2 done] b replicate 1: oom in 3.0 s, about ")
    assert "\x1b" not in first + second


def test_names_are_not_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """A name in brackets is printed as it is, and a long line is not broken."""
    name = "[bold]model[/bold]" + "x" * 200
    (line,) = lines(capsys, [factories.record(factories.case(name))], 1.0).splitlines()
    assert name in line


def test_what_is_left_shrinks_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The estimate counts as one case; here each takes no time."""
    records = [factories.record(factories.case(str(index))) for index in range(10)]
    text = lines(capsys, records, 40.0)
    left = [int(found) for found in re.findall(r"about (\d+) s left", text)]
    assert len(left) == 10
    assert left == sorted(left, reverse=True)
    assert (left[0], left[-1]) == (18, 0)


def test_a_run_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """No case needs no line."""
    assert lines(capsys, [], 0.0) == ""


@pytest.mark.parametrize(("made", "left"), [(5, "50 s"), (9, "10 s"), (10, "0 s")])
def test_replicates_count(
    made: int, left: str, capsys: pytest.CaptureFixture[str], clock: SimpleNamespace
) -> None:
    """Of a case that has had nine of its ten replicates a tenth is left, of one that ended nothing.

    The first takes twice as long as a later one.
    """
    with ProgressLine(1, 10, 110.0, "replicate {}".format) as progress:
        for index in range(made):
            clock.now += 10.0 if index else 20.0
            stopped = StopReason.REPLICATES if index == 9 else None
            progress.record_made(
                factories.record(factories.case("a"), replicate=index, stopped=stopped)
            )
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"about {left} left")


def test_cases_that_had_ended_before_take_no_time(
    capsys: pytest.CaptureFixture[str], clock: SimpleNamespace
) -> None:
    """After `resume` nine tenths seemed done when one of ten that were left was."""
    cases = [factories.case(f"m{number}") for number in range(100)]
    with ProgressLine(100, 1, 600.0, "replicate {}".format, earlier=90) as progress:
        for case in cases[:90]:
            progress.case_ended(case)
        record = factories.record(cases[90], seconds={"measure": 60.0})
        clock.now += 60.0
        progress.record_made(msgspec.structs.replace(record, stopped=StopReason.REPLICATES))
    assert "about 9 min left" in capsys.readouterr().err
    assert progress.seconds == {"measure": 60.0}


@pytest.mark.parametrize(("ended", "left"), [(1, "1.0 h"), (3, "1.4 h"), (30, "58 min")])
def test_an_estimate_that_is_far_off_is_soon_given_up(
    ended: int, left: str, capsys: pytest.CaptureFixture[str], clock: SimpleNamespace
) -> None:
    """Of 60 cases of two minutes, said to take 5 minutes in all, 5 seemed left after each."""
    with ProgressLine(60, 1, 300.0, "replicate {}".format) as progress:
        for index in range(ended):
            clock.now += 120.0
            record = factories.record(factories.case(f"m{index}"), stopped=StopReason.REPLICATES)
            progress.record_made(record)
            progress.case_ended(record.case)
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"about {left} left")


def test_cases_that_are_skipped_at_once_take_no_share(
    capsys: pytest.CaptureFixture[str], clock: SimpleNamespace
) -> None:
    """An hour was estimated for the others alone: it is left when twenty were skipped."""
    skipped = Outcome(status=Status.SKIP, reason="not on this device")
    with ProgressLine(60, 1, 3600.0, "replicate {}".format) as progress:
        for index in range(20):
            case = factories.case(f"m{index}")
            record = factories.record(
                case, outcome=skipped, seconds={}, stopped=StopReason.REPLICATES
            )
            progress.record_made(record)
            progress.case_ended(case)
    assert capsys.readouterr().err.splitlines()[-1].endswith("about 1.0 h left")


def test_a_reader_that_leaves_is_a_broken_pipe() -> None:
    """Which the program ends with in its own way; rich would exit, as if a gate had failed."""
    with ProgressLine(1, 1, 1.0, "replicate {}".format) as progress, unread_standard_error():
        with pytest.raises(BrokenPipeError):
            progress.say("nobody reads this")
        assert sys.stdout.writable()
