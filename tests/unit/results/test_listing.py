from __future__ import annotations

import pytest

from dynamometer.results.listing import first_of


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c"], "a, b, c"),
        (["a", "b", "c", "d"], "a, b, c, and 1 more"),
    ],
)
def test_more_names_than_are_told_are_counted(names: list[str], text: str) -> None:
    """None is left out without a word."""
    assert first_of(names) == text


def test_one_name_and_how_many_there_are() -> None:
    """As a sentence has them."""
    assert first_of(["a", "b", "c"], 1, " ") == "a and 2 more"
