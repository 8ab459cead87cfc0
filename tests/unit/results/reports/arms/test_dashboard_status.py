from __future__ import annotations

import re
from pathlib import Path

import pytest

from dynamometer.results.reports.arms.dashboard_status import accuracy_string
from dynamometer.results.values.records import Outcome, Stage, Status

PAGE = Path(__file__).resolve().parents[5] / "docs" / "statuses.md"
ROWS = re.findall(r"^\| (`[^|]*) \| ([^|]*)\| `(\w+)` \|$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("ours", "stage", "theirs"), ROWS)
def test_the_page_tells_the_truth(ours: str, stage: str, theirs: str) -> None:
    """Each row of the documentation is what is written."""
    stages = {"load": [Stage.LOAD], "eager": [Stage.EAGER], "compare": [Stage.COMPARE]}
    other = [Stage.COMPILE, Stage.RUN, Stage.MEASURE, Stage.WORKER]
    for status in re.findall(r"`(\w+)`", ours):
        for at in stages.get(stage.strip(), other):
            assert accuracy_string(Outcome(status=Status(status), stage=at)) == theirs


def test_the_page_names_every_status() -> None:
    """No status is left unexplained."""
    named = {status for ours, _, _ in ROWS for status in re.findall(r"`(\w+)`", ours)}
    assert named == {str(status) for status in Status}
