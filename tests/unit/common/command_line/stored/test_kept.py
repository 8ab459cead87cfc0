"""Pages are kept while what they show is as it was."""

from __future__ import annotations

from dynamometer.common.command_line.stored.kept import MOST, KeptPages


class Maker:
    """Makes pages, and counts them."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> str:
        """Return another page each time."""
        self.made += 1
        return f"page {self.made}"


def test_each_is_made_once_of_a_state() -> None:
    """In another state all are made again, also once it is as it was before."""
    pages, make = KeptPages(), Maker()
    assert [pages.page("a", 1, make) for _ in range(3)] == ["page 1"] * 3
    assert pages.page("b", 1, make) == "page 2"
    assert pages.page("a", 2, make) == "page 3"
    assert pages.page("a", 1, make) == "page 4"


def test_what_is_not_there_is_not_kept() -> None:
    """Anybody may ask for anything."""
    pages, make = KeptPages(), Maker()
    assert pages.page("a", 1, lambda: None) is None
    assert pages.page("a", 1, make) == "page 1"


def test_the_last_ones_are_kept() -> None:
    """As many as are meant to be; the oldest is made again."""
    pages, make = KeptPages(), Maker()
    for number in range(MOST + 1):
        pages.page(str(number), 1, make)
    assert pages.page(str(MOST), 1, make) == f"page {MOST + 1}"
    assert pages.page("0", 1, make) == f"page {MOST + 2}"


def test_what_was_made_meanwhile_of_another_state_is_not_kept() -> None:
    """A page that took long is given to who asked for it, and to nobody later."""
    pages, make = KeptPages(), Maker()

    def slow() -> str:
        pages.page("b", 2, make)
        return "of state 1"

    assert pages.page("a", 1, slow) == "of state 1"
    assert pages.page("a", 2, make) == "page 2"
    assert pages.page("b", 2, make) == "page 1"
