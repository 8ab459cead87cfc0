from __future__ import annotations

import io
import re

import factories
import pytest

from dynamometer.results.console import Console
from dynamometer.results.records import Status


@pytest.mark.parametrize("reason", ["one", "two\nlines", "three\r\nof\nthem", None])
def test_a_case_is_one_line(reason: str | None) -> None:
    """A reason of several lines, or none, doesn't break the list."""
    stream = io.StringIO()
    failed = factories.failure(Status.SKIP, reason=reason)
    Console(stream).write([factories.record(outcome=failed)])
    assert len(stream.getvalue().splitlines()) == 1


def test_nothing_is_printed_of_nothing() -> None:
    """A run that was interrupted at once has no table."""
    stream = io.StringIO()
    Console(stream).close()
    assert stream.getvalue() == ""


def test_a_line_says_when_compiling_has_paid() -> None:
    """From empty caches and from filled ones: 12.5 s and 0.5 s, of which a call saves 2 ms."""
    stream = io.StringIO()
    Console(stream).write(factories.cold_and_warm(warm_s=0.5))
    assert re.search(
        r", pays after 6,250 calls \[[\d,]+, [\d,]+\] \(caches filled: 250 \[\d+, \d+\]\)$",
        stream.getvalue().rstrip(),
    )
