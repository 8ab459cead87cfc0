"""The line of a case: what was captured, and what a reader must know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.results.reports.arms.lines import case_line, suite_lines
from dynamometer.results.reports.arms.rows import rows
from dynamometer.results.reports.page.arms import part_of_arms
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from dynamometer.results.statistics.summary import CaseSummary


def given_up(hits: int | None) -> CaseSummary:
    """Make a case in which Dynamo gave up so many frames."""
    record = factories.measured_record()
    arms = tuple(
        msgspec.structs.replace(
            arm, capture=msgspec.structs.replace(arm.capture, recompile_limit_hits=hits)
        )
        if arm.capture
        else arm
        for arm in record.arms
    )
    return summarize_case([msgspec.structs.replace(record, arms=arms)])


@pytest.mark.parametrize(("hits", "is_marked"), [(2, True), (0, False), (None, False)])
def test_an_arm_that_dynamo_gave_up_is_marked(hits: int | None, *, is_marked: bool) -> None:
    """On its line, with the meaning below, on the page, and counted in the CSV."""
    case = given_up(hits)
    assert ("RECOMPILE_LIMIT" in case_line(case)) is is_marked
    meaning = "RECOMPILE_LIMIT: Dynamo gave up compiling a frame again;"
    assert any(each.startswith(meaning) for each in suite_lines([case])) is is_marked
    (arm,) = part_of_arms([case]).arms
    assert ("recompile limit" in arm.marks) is is_marked
    (found,) = rows(case, compatible=False)
    (row,) = found.by_column()
    assert row["recompile_limit_hits"] == hits


def test_frames_that_are_not_known_are_no_0() -> None:
    """Of a case that ended before Dynamo looked at any."""
    outcome = factories.failure(Status.OOM, factories.Stage.LOAD, "too large")
    line = case_line(summarize_case([factories.record(outcome=outcome)]))
    assert "   -/  - frames, OOM (load) too large" in line
