"""The page of a year of 500 models in a browser: what became worse, sorting, filtering, links."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from browser import MODELS, PROGRAM, press_chip
from simulated_year import (
    BETTER,
    HOSTILE,
    MADE_AT,
    MENDED,
    RUNS,
    WORSE,
    name,
    worse_since,
    year,
)

from dynamometer.results.reports.page.document import page
from dynamometer.results.reports.page.history import shown_history

if TYPE_CHECKING:
    from browser import Browser

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (apt install chromium)")

TITLE = "document.querySelector('h1').textContent"
WEEKS = {"1 week": 7, "4 weeks": 28, "12 weeks": 84, "ever": RUNS}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the page is."""
    path = tmp_path_factory.mktemp("year") / "history.html"
    path.write_text(page([], history=shown_history(year(), MADE_AT)))
    return path.as_uri()


def column(browser: Browser, number: int) -> list[str]:
    """Return what a column of the table shows, from top to bottom."""
    cells = "[...document.querySelectorAll('table.data tbody tr')]"
    return list(browser.evaluate(f"{cells}.map(each => each.cells[{number}].textContent)"))


def press_head(browser: Browser, text: str) -> None:
    """Press the head of a column."""
    found = "[...document.querySelectorAll('thead button')].find(each => each.textContent"
    browser.evaluate(f"{found} === {text!r}).click()")


def test_what_became_worse_is_one_click_away(browser: Browser, address: str) -> None:
    """Exactly what did, and still is, within as many weeks as are chosen; four at first."""
    browser.open(address)
    assert set(browser.evaluate(MODELS)) == worse_since(RUNS - 28)
    for chip, days in WEEKS.items():
        press_chip(browser, chip)
        assert set(browser.evaluate(MODELS)) == worse_since(RUNS - days), chip
    assert len(worse_since(0)) == 7
    press_chip(browser, "is better")
    assert name(next(iter(BETTER))) in browser.evaluate(MODELS)
    press_chip(browser, "changed")
    assert name(next(iter(MENDED))) in browser.evaluate(MODELS)


def test_a_change_says_what_came_with_it(browser: Browser, address: str) -> None:
    """By how much, when, and what of the environment is other since."""
    browser.open(f"{address}#/history?q=model_003")
    (row,) = browser.evaluate(
        "[...document.querySelectorAll('tbody tr')].map(each => each.textContent)"
    )
    assert "\u22126." in row or "\u22125." in row
    assert "2026-12-2" in row
    assert "torch 2.11 \u2192 2.12" in row


def test_all_of_them_are_sorted(browser: Browser, address: str) -> None:
    """Two hundred rows at once, and all at a click; by any column, both ways."""
    browser.open(f"{address}#/history?show=all&sort=model")
    assert len(browser.evaluate(MODELS)) == 200
    browser.evaluate("document.querySelector('.scroll > button.chip').click()")
    names = browser.evaluate(MODELS)
    assert len(names) == 1000
    plain = [each for each in names if each != HOSTILE]
    assert plain == sorted(plain)
    press_head(browser, "model")
    names = browser.evaluate(MODELS)
    plain = [each for each in names if each != HOSTILE]
    assert plain == sorted(plain, reverse=True)
    browser.open(f"{address}#/history?show=changed&weeks=ever&q=speedup")
    press_head(browser, "change")
    assert "sort=-size" in browser.evaluate("location.hash")
    first = browser.evaluate(MODELS)[0]
    press_head(browser, "change")
    assert "sort=size" in browser.evaluate("location.hash")
    assert first in {name(each) for each in (*BETTER, *MENDED)}
    assert browser.evaluate(MODELS)[0] in {name(each) for each in (*WORSE, *MENDED)}


def test_they_are_filtered_as_one_types(browser: Browser, address: str) -> None:
    """Words, and words that leave out; the address says which."""
    browser.open(f"{address}#/history?show=all")
    browser.press("/")
    for key in "model_12 speedup -model_129":
        browser.press(key)
    names = [f"model_{each}" for each in range(120, 129)]
    assert sorted(browser.evaluate(MODELS)) == names
    assert "9 of 1000 series" in browser.evaluate("document.querySelector('.count').textContent")
    assert "q=model_12+speedup+-model_129" in browser.evaluate("location.hash")
    assert column(browser, 3) == ["speedup"] * 9


def test_a_link_shows_what_it_was_made_of(browser: Browser, address: str) -> None:
    """Choice, filter and order; a model from there, and back to where one was."""
    link = f"{address}#/history?q=model_&show=worse&weeks=ever&sort=model"
    browser.open(link)
    names = sorted(each for each in worse_since(0) if each != HOSTILE)
    assert browser.evaluate(MODELS) == names
    browser.evaluate("document.querySelector('tbody th a').click()")
    browser.wait(f"{TITLE} === {names[0]!r}")
    browser.press("n")
    browser.wait(f"{TITLE} === 'model_004'")
    browser.press("p")
    browser.wait(f"{TITLE} === {names[0]!r}")
    for title in ("model_004", names[0], "History"):
        browser.evaluate("history.back()")
        browser.wait(f"{TITLE} === {title!r}")
    assert browser.evaluate("location.href") == link
    assert browser.evaluate(MODELS) == names
    browser.evaluate("history.forward()")
    browser.wait(f"{TITLE} === {names[0]!r}")


def test_a_model_has_its_year(browser: Browser, address: str) -> None:
    """Every run is a mark and a row; a model whose name is markup is shown by its name."""
    browser.open(f"{address}#/past/{quote(f'torchbench/{HOSTILE}', safe='')}")
    assert browser.evaluate(TITLE) == HOSTILE
    assert browser.evaluate("document.querySelectorAll('main img').length") == 0
    assert browser.evaluate("document.querySelectorAll('circle.run').length") == RUNS
    assert browser.evaluate("document.querySelectorAll('rect.ending').length") == RUNS
    assert browser.evaluate("document.querySelectorAll('.band').length") == 1
    rows = "document.querySelectorAll('details tbody tr').length"
    assert browser.evaluate(rows) == 2 * RUNS
    browser.press("u")
    browser.wait(f"{TITLE} === 'History'")
    browser.open(f"{address}#/past/{quote('torchbench/model_400', safe='')}")
    assert browser.evaluate("document.querySelectorAll('.ending.is-failed').length") == 15
    text = browser.evaluate("document.querySelector('main').textContent")
    assert "worse 2026-12-17: pass \u2192 crash" in text
