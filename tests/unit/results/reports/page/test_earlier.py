"""What a run's models were in earlier runs, as its page has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import factories
import msgspec
import stored
from earlier_runs import FAILS, FELL, RUNS, STEADY, earlier
from test_document import json_of

from dynamometer.results.reports.page.document import page
from dynamometer.results.reports.page.earlier import Earlier, shown_earlier
from dynamometer.results.reports.page.run import RunToShow

if TYPE_CHECKING:
    from dynamometer.results.values.records import Record

MADE_AT = "2026-02-01T00:00:00+00:00"
ALEXNET, VGG16, DCGAN = (factories.case(each) for each in ("alexnet", "vgg16", "dcgan"))


def records(*cases: factories.Case) -> list[list[Record]]:
    """Make the records of a run."""
    return [[factories.measured_record(each)] for each in cases]


def test_each_series_is_of_a_case() -> None:
    """By all a case is known by; what the run did not measure is left out."""
    found = shown_earlier(
        earlier({VGG16: FELL, ALEXNET: STEADY, DCGAN: STEADY}), records(ALEXNET, VGG16), MADE_AT
    )
    assert found is not None
    told = [(each.model, each.metric) for each in found.history.series]
    assert told == [("alexnet", "speedup"), ("vgg16", "speedup")]
    assert found.cases == (0, 1)
    [change] = found.history.series[1].changes
    assert (change.direction, change.is_lasting) == ("worse", True)
    assert len(found.history.runs) == RUNS


def test_another_size_is_another_case() -> None:
    """Of which nothing is said."""
    small = msgspec.structs.replace(ALEXNET, batch_size=1)
    assert shown_earlier(earlier({small: FELL}), records(ALEXNET), MADE_AT) is None


def test_how_it_ended_is_told_where_it_tells_something() -> None:
    """Of what did not always pass, and of what has no speedup."""
    found = shown_earlier(earlier({ALEXNET: FAILS}), records(ALEXNET), MADE_AT)
    assert found is not None
    [ended] = found.history.series
    assert [each.before for each in ended.changes] == ["pass"]
    always = shown_earlier(earlier({ALEXNET: ["pass"] * 4}), records(ALEXNET), MADE_AT)
    assert always is not None


def test_changes_before_what_is_shown() -> None:
    """Are not told, as their runs aren't."""
    whole = earlier({ALEXNET: FELL}).found
    cut = [msgspec.structs.replace(each, points=each.points[-4:]) for each in whole.series]
    found = shown_earlier(
        Earlier(msgspec.structs.replace(whole, series=tuple(cut))), records(ALEXNET), MADE_AT
    )
    assert found is not None
    assert [each.changes for each in found.history.series] == [()]
    assert len(found.history.runs) == 4


def test_it_stands_beside_the_run_on_the_page() -> None:
    """And nothing of the page is another where there are no earlier runs."""
    run = stored.run_of(records(ALEXNET))
    shown = RunToShow(run.manifest, run.cases, run.reporter, Path("/no/where"))
    among = RunToShow(
        run.manifest,
        run.cases,
        run.reporter,
        Path("/no/where"),
        earlier({ALEXNET: FELL}, {"run-1"}),
    )
    text = page([shown, among])
    assert "earlier-0" not in text.replace("`earlier-${", "")
    held = json_of(text, "earlier-1")
    assert held["cases"] == [0]
    assert held["history"]["without_page"] == [each for each in range(RUNS) if each != 1]
    nothing = RunToShow(
        run.manifest, run.cases, run.reporter, Path("/no/where"), earlier({DCGAN: FELL})
    )
    assert page([nothing]) == page([shown])
