"""How things are written wherever results are shown."""

from __future__ import annotations

import pytest

from dynamometer.results.reports.texts import cell, count_text, share, share_text
from dynamometer.results.store.reading import unquoted


@pytest.mark.parametrize(
    ("part", "whole", "decimals", "text"),
    [
        (3, 3, 0, "100%"),
        (0, 7, 0, "0%"),
        (1, 3, 0, "33%"),
        (1761, 1764, 0, "99.8%"),
        (99_999, 100_000, 0, "99.9%"),
        (1, 100_000, 0, "0.1%"),
        (14_990, 14_991, 1, "99.9%"),
        (14_991, 14_991, 1, "100.0%"),
        (1703, 1764, 1, "96.5%"),
        (1, 14_991, 1, "0.1%"),
    ],
)
def test_all_is_all_and_none_is_none(part: int, whole: int, decimals: int, text: str) -> None:
    """However many there are: 1761 of 1764 are no 100 %."""
    assert share(part, whole, decimals) == text


@pytest.mark.parametrize(
    ("part", "decimals", "text"),
    [(0.9997, 0, "99.9%"), (0.9997, 1, "99.9%"), (0.0003, 0, "0.1%"), (0.0003, 1, "0.1%"),
     (0.996, 0, "99.6%"), (1.0, 0, "100%"), (0.0, 1, "0.0%"), (1.0003, 0, "100%"), (None, 0, "-")],
)  # fmt: skip
def test_shares_of_one(part: float | None, decimals: int, text: str) -> None:
    """Nearly all is not all; what is more than all, as of two times, is that."""
    assert share_text(part, decimals) == text


def test_one_is_one() -> None:
    """And none are several."""
    assert [count_text(each, "graph") for each in (0, 1, 2)] == ["0 graphs", "1 graph", "2 graphs"]


@pytest.mark.parametrize(
    "text", ["=x", "+1", "-1", "@x", "'=x", "''=x", "'x", "''x", "x", "x=1", "'", "'x'", ""]
)
def test_a_cell_is_read_as_it_was(text: str) -> None:
    """Also where it begins with what is put before a formula."""
    assert not cell(text).startswith(("=", "+", "-", "@"))
    assert unquoted(cell(text)) == text
