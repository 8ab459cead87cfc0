from __future__ import annotations

import io
import re

import factories
import msgspec
import pytest

from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.results.reports.console import Console
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import BetweenProcessSd, Status


@pytest.mark.parametrize("reason", ["one", "two\nlines", "three\r\nof\nthem", None])
def test_a_case_is_one_line(reason: str | None) -> None:
    """A reason of several lines, or none, doesn't break the list."""
    stream = io.StringIO()
    failed = factories.failure(Status.SKIP, reason=reason)
    Console(STUDY, factories.destination(stream=stream)).write([factories.record(outcome=failed)])
    assert len(stream.getvalue().splitlines()) == 1


def test_a_terminal_obeys_nothing_that_a_model_says() -> None:
    """Colours, titles of windows and the like are taken out of names and reasons."""
    stream = io.StringIO()
    failed = factories.failure(reason="\x1b]0;hit\x07 it failed")
    Console(STUDY, factories.destination(stream=stream)).write([factories.record(outcome=failed)])
    assert "it failed" in stream.getvalue()
    assert not {"\x1b", "\x07"}.intersection(stream.getvalue())


def test_what_did_not_pass_is_counted_by_arm() -> None:
    """One arm's end hides no other's; a case that failed after its arms had passed counts once."""
    case = factories.case(arms=(BASELINE, "inductor", "ts", "ofi"))
    record = factories.measured_record(case)
    eager, one, two, good = record.arms
    wrong, crash = (factories.failure(each) for each in (Status.FAIL_ACCURACY, Status.CRASH))
    arms = (
        eager, msgspec.structs.replace(one, outcome=wrong),
        msgspec.structs.replace(two, outcome=crash), good,
    )  # fmt: skip
    other = factories.measured_record(factories.case("dcgan"))
    timeout = factories.failure(Status.TIMEOUT)
    stream = io.StringIO()
    console = Console(STUDY, factories.destination(stream=stream))
    console.write([msgspec.structs.replace(record, arms=arms, outcome=crash)])
    console.write([msgspec.structs.replace(other, outcome=timeout)])
    console.close()
    assert "\nnot passed, by arm: 1 fail_accuracy, 1 crash, 1 timeout\n" in stream.getvalue()


def test_nothing_is_printed_of_nothing() -> None:
    """A run that was interrupted at once has no table."""
    stream = io.StringIO()
    Console(STUDY, factories.destination(stream=stream)).close()
    assert stream.getvalue() == ""


def test_a_line_says_when_compiling_has_paid() -> None:
    """From empty caches and from filled ones: 12.5 s and 0.5 s, of which a call saves 2 ms."""
    stream = io.StringIO()
    Console(STUDY, factories.destination(stream=stream)).write(factories.cold_and_warm(warm_s=0.5))
    paid = r", pays after 6,250 calls \[[\d,]+, [\d,]+\] \(caches filled: 250 \[\d+, \d+\]\)"
    assert re.search(rf"{paid} PROVISIONAL$", stream.getvalue().rstrip())


def test_a_step_of_several_sizes_is_no_call() -> None:
    """A call of each size: what one of them saves is not known."""
    stream = io.StringIO()
    records = [
        msgspec.structs.replace(each, case=factories.case(dynamic=True))
        for each in factories.cold_and_warm(warm_s=0.5)
    ]
    Console(STUDY, factories.destination(stream=stream)).write(records)
    assert ", pays after 6,250 steps of several sizes [" in stream.getvalue()


def test_what_filled_caches_save_is_not_said_of_empty_ones() -> None:
    """In a run with `--warm` no process found them empty: compiling takes longer there."""
    stream = io.StringIO()
    _, warm = factories.cold_and_warm(warm_s=0.5)
    Console(STUDY, factories.destination(stream=stream)).write([warm])
    assert re.search(r", pays after 250 calls \[\d+, \d+\] \(caches filled\)", stream.getvalue())
    case = summarize_case([warm])
    assert case.breakeven(case.arms[0]) is None


def test_speedups_that_are_not_known_well_enough_are_named() -> None:
    """With how many replicates would do, the fewest first; the CSV has them all."""
    stream = io.StringIO()
    console = Console(STUDY, factories.destination(stream=stream))
    for index in range(10):
        between_sd = BetweenProcessSd(sd_log=0.02 + 0.001 * index, df=8.0)
        record = factories.measured_record(factories.case(f"m{index}"))
        console.write([msgspec.structs.replace(record, between_sd=between_sd, target=0.01)])
    console.close()
    assert "less precise than --target: 10 of 10 speedups; " in stream.getvalue()
    assert re.search(
        r"enough replicates \(-r\) would be: m0 inductor \d\d, m1 .*, and 2 more\n",
        stream.getvalue(),
    )


def test_nothing_is_said_of_speedups_that_are_known() -> None:
    """Nor where nobody asked how well."""
    stream = io.StringIO()
    console = Console(STUDY, factories.destination(stream=stream))
    record = factories.measured_record()
    known = msgspec.structs.replace(
        record, between_sd=BetweenProcessSd(sd_log=0.001, df=8.0), target=0.01
    )
    console.write([known])
    console.close()
    assert "not known" not in stream.getvalue()


def test_a_case_that_passed_once_is_called_flaky() -> None:
    """Whatever the study prints of it; attempts that all end alike are no news."""
    stream = io.StringIO()
    console = Console(STUDY, factories.destination(stream=stream))
    failed = factories.failure(Status.TIMEOUT)
    record = factories.record()
    console.write([msgspec.structs.replace(record, earlier=(failed,))])
    assert stream.getvalue().splitlines()[-1].endswith(" flaky 1/2")
    stream.truncate(0)
    console.write([factories.record(outcome=failed, earlier=(failed, failed))])
    assert "flaky" not in stream.getvalue()
