"""The page as a browser shows it: sorting, filtering, links, keys, hostile names, no request."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import axe_core_python
import factories
import msgspec
import pytest
import stored
from browser import MODELS, PROGRAM, press_chip
from earlier_runs import FAILS, FELL, ROSE, STEADY, earlier
from simulated_histories import Noise, indexed, series
from simulated_histories import stored as series_of

from dynamometer.common.command_line.stored.report import compared
from dynamometer.results.history.changes import history
from dynamometer.results.reports.page.document import page
from dynamometer.results.reports.page.history import shown_history
from dynamometer.results.reports.page.run import RunToShow
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.history import STATUS
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from browser import Browser

    from dynamometer.results.values.history import History

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (apt install chromium)")

MADE_AT = "2026-02-12T00:00:00+00:00"
HOSTILE = "<script>alert(1)</script>"
SPEEDUPS = {"alexnet": 1.25, "resnet18": 0.8, "dcgan": 1.0, HOSTILE: 2.0}
STEPS: tuple[tuple[tuple[int, float], ...], ...] = ((), ((30, -0.06),))
"""Of a model that stays as it is, and of one that becomes slower."""
AXE = Path(axe_core_python.__file__).with_name("axe.min.js")
FINDINGS = """
window.found = null;
axe.run({resultTypes: ["violations"]}).then(({violations}) => {
  window.found = violations.map(each => `${each.impact} ${each.id}: ${each.nodes[0].html}`);
});
"""


def run_to_show(folder: Path, *, slower: float = 1.0) -> RunToShow:
    """Make a run of models that passed, one that failed, and one that was not run."""
    cases = [
        [
            factories.measured_record(
                factories.case(model),
                replicate=each,
                seconds={BASELINE: 0.010, "inductor": 0.010 / speedup * slower},
            )
            for each in range(3)
        ]
        for model, speedup in SPEEDUPS.items()
    ]
    outcome = factories.failure(Status.OOM, reason="took too much")
    cases.append([factories.record(factories.case("big"), outcome=outcome)])
    found = stored.run_of(cases, factories.case("late"))
    return RunToShow(found.manifest, found.cases, found.reporter, folder)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a page of one run is."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "one.html").write_text(page([run_to_show(folder)]))
    return (folder / "one.html").as_uri()


@pytest.fixture(scope="module")
def address_of_two(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a page of two runs is, of which the second is slower."""
    folder = tmp_path_factory.mktemp("pages")
    runs = run_to_show(folder), run_to_show(folder, slower=1.2)
    (folder / "two.html").write_text(page(runs, compared(*runs)))
    return (folder / "two.html").as_uri()


def found_history() -> History:
    """Return that of forty runs: of one model that is slower since run 30, and of others."""
    steady, worse = ([math.exp(each) for each in series(Noise(), 1, steps, 40)] for steps in STEPS)
    given = [
        series_of(HOSTILE, worse),
        series_of("alexnet", [*steady[:10], None, *steady[11:15]], setting={"cpu": "A"}),
        series_of("alexnet", steady[15:], setting={"cpu": "B"}, first=15),
        series_of("alexnet", ["pass"] * 10 + ["crash"] + ["pass"] * 29, metric=STATUS),
    ]
    return history(indexed(40), given)


@pytest.fixture(scope="module")
def address_among_earlier(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a page of a run is whose models earlier runs had: one fell, one rose, one fails."""
    folder = tmp_path_factory.mktemp("earlier")
    values = {HOSTILE: FELL, "dcgan": ROSE, "alexnet": STEADY, "big": FAILS}
    among = earlier({factories.case(model): each for model, each in values.items()})
    run = replace(run_to_show(folder), earlier=among)
    (folder / "run.html").write_text(page([run]))
    return (folder / "run.html").as_uri()


@pytest.fixture(scope="module")
def address_of_history(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a page of these is."""
    folder = tmp_path_factory.mktemp("history")
    shown = shown_history(found_history(), MADE_AT)
    (folder / "history.html").write_text(page([], history=shown))
    return (folder / "history.html").as_uri()


def test_what_has_become_worse_comes_first(browser: Browser, address_of_history: str) -> None:
    """Within four weeks; earlier and later are a click away, and in the address."""
    browser.open(address_of_history)
    assert browser.evaluate(MODELS) == [HOSTILE]
    press_chip(browser, "1 week")
    assert browser.evaluate(MODELS) == []
    assert "Nothing" in browser.evaluate("document.querySelector('main').textContent")
    press_chip(browser, "ever")
    press_chip(browser, "all")
    assert len(browser.evaluate(MODELS)) == 4
    hash_ = browser.evaluate("location.hash")
    assert ("weeks=ever" in hash_, "show=all" in hash_) == (True, True)
    browser.open(f"{address_of_history}#/history?show=changed&weeks=ever&q=status")
    assert browser.evaluate(MODELS) == ["alexnet"]


@pytest.mark.parametrize("words", ["weeks=foo", "weeks=1e9", "show=toString&weeks=ever", "sort=-x"])
def test_an_address_may_have_been_typed(
    browser: Browser, address_of_history: str, words: str
) -> None:
    """What is none of the choices is the usual one."""
    browser.open(f"{address_of_history}#/history?{words}")
    assert browser.evaluate("document.querySelector('h1').textContent") == "History"
    assert browser.evaluate(MODELS) == [HOSTILE]


def test_a_series_with_its_changes(browser: Browser, address_of_history: str) -> None:
    """Every run is a mark, with a table; a link leads there, and back to where one was."""
    browser.open(address_of_history)
    browser.evaluate("document.querySelector('tbody th a').click()")
    browser.wait(f"document.querySelector('h1').textContent === {HOSTILE!r}")
    assert browser.evaluate("document.querySelectorAll('circle.run').length") == 40
    assert browser.evaluate("document.querySelectorAll('.band').length") == 1
    assert browser.evaluate("document.querySelectorAll('.level').length") == 2
    assert browser.evaluate("document.querySelectorAll('details tbody tr').length") == 40
    text = browser.evaluate("document.querySelector('main').textContent")
    assert "worse 2026-01-31" in text
    own = browser.evaluate("location.href")
    browser.evaluate("history.back()")
    browser.wait("document.querySelector('h1').textContent === 'History'")
    browser.open(own)
    assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE


def test_what_a_file_brought_is_no_link(browser: Browser, tmp_path: Path) -> None:
    """A server has a page of each of the other runs; a history that is a file links to none."""
    runs = "[...document.querySelectorAll('details tbody th')]"
    links = "[...document.querySelectorAll('main a[href*=\"/run/\"]')].map(each => each.text)"
    there = {f"run-{each}" for each in range(40)} - {"run-12"}
    shown = shown_history(found_history(), MADE_AT, there)
    for home, linked in (("/", 39), (None, 0)):
        path = tmp_path / "history.html"
        path.write_text(page([], history=shown, home=home))
        browser.open(f"{path.as_uri()}#/past/torchbench%2F{quote(HOSTILE, safe='')}")
        found = browser.evaluate(f"{runs}.map(each => each.textContent)")
        assert len(found) == 40
        assert ("run-12 (from a file: no page)" in found) == bool(home)
        assert len(set(browser.evaluate(links))) == linked


def test_a_run_among_earlier_ones(browser: Browser, address_among_earlier: str) -> None:
    """What became worse and still is comes first; each model has its line, and its runs."""
    browser.open(address_among_earlier)
    items = "[...document.querySelectorAll('ul.looks > li')].map(each => each.textContent)"
    fails, fell, rose = browser.evaluate(items)
    assert "big inductor: pass \u2192 fail since 2026-01-18" in fails
    assert f"{HOSTILE} inductor: 1.500x \u2192 1.350x (\u221210.0 %) since 2026-01-13" in fell
    assert "torch 2.11 \u2192 2.12" in fell
    assert "dcgan inductor: 1.500x \u2192 1.650x" in rose
    assert browser.evaluate("document.querySelectorAll('.sparkline .spread').length") == 3
    browser.open(f"{address_among_earlier}#/run/0?sort=earlier")
    assert browser.evaluate(MODELS) == ["big", HOSTILE, "dcgan", "alexnet", "resnet18", "late"]
    browser.evaluate("document.querySelector('tbody th a[href*=script]').click()")
    browser.wait(f"document.querySelector('h1').textContent === {HOSTILE!r}")
    assert browser.evaluate("document.querySelectorAll('circle.run').length") == 20
    assert browser.evaluate("document.querySelectorAll('.band').length") == 1
    browser.open(f"{address_among_earlier}#/overview")
    text = browser.evaluate("document.querySelector('ul.looks').textContent")
    assert "worse than in earlier runs (2)" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["#/overview", "#/run/0", "model"])
def test_everybody_can_read_of_earlier_runs(
    browser: Browser, address_among_earlier: str, view: str, scheme: str
) -> None:
    """Axe finds nothing, and it fits a telephone."""
    browser.prefer(scheme)
    show(browser, address_among_earlier, view)
    assert_accessible(browser)
    browser.resize(390, 800)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    browser.resize(1280, 800)


def test_other_machines_are_drawn_apart(browser: Browser, address_of_history: str) -> None:
    """On one axis, with a line between them, and said in what they differ."""
    browser.open(f"{address_of_history}#/past/torchbench%2Falexnet")
    assert browser.evaluate("document.querySelectorAll('svg.chart').length") == 2
    assert browser.evaluate("document.querySelectorAll('line.apart').length") == 1
    text = browser.evaluate("document.querySelector('main').textContent")
    assert ("cpu A" in text, "cpu B" in text) == (True, True)
    assert browser.evaluate("document.querySelectorAll('.ending.is-failed').length") == 1
    assert browser.evaluate("document.querySelectorAll('.absent').length") == 1


def test_failures_are_drawn_on_the_chart_of_their_batch_size(
    browser: Browser, tmp_path: Path
) -> None:
    """One that begins another is another; compile times from caches are of the same cases."""
    given = [
        msgspec.structs.replace(
            each, identity={**each.identity, "batch_size": size}, condition=caches
        )
        for size, ending in (("1", "fail"), ("16", "pass"))
        for each, caches in (
            (series_of("alexnet", ["pass", "pass", ending], metric=STATUS), None),
            (series_of("alexnet", [1.5, 1.5, 1.5]), None),
            (series_of("alexnet", [9.0, 9.0, 9.0], metric="compile_time"), "cold"),
        )
    ]
    path = tmp_path / "history.html"
    path.write_text(page([], history=shown_history(history(indexed(3), given), MADE_AT)))
    browser.open(f"{path.as_uri()}#/past/torchbench%2Falexnet")
    found = browser.evaluate(
        "[...document.querySelectorAll('main section')]"
        ".filter(each => each.querySelector('circle')).map("
        "each => [each.querySelector('h2').textContent, each.querySelectorAll('.absent').length])"
    )
    assert {title.partition(": ")[2]: failures for title, failures in found} == {
        "speedup, 1": 1,
        "compile time, 1, caches cold": 1,
        "speedup, 16": 0,
        "compile time, 16, caches cold": 0,
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "view",
    [
        "#/history?show=all", "#/past/torchbench%2Falexnet",
        "#/past/torchbench%2F%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    ],
)  # fmt: skip
def test_everybody_can_read_a_history(
    browser: Browser, address_of_history: str, view: str, scheme: str
) -> None:
    """Axe finds nothing, and it fits a telephone."""
    browser.prefer(scheme)
    browser.open(f"{address_of_history}{view}")
    assert_accessible(browser)
    browser.resize(390, 800)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    browser.resize(1280, 800)


def assert_accessible(browser: Browser) -> None:
    """Ask axe about what is shown."""
    browser.evaluate(AXE.read_text())
    browser.evaluate(FINDINGS)
    browser.wait("window.found !== null")
    assert browser.evaluate("window.found") == []


def show(browser: Browser, address: str, view: str) -> None:
    """Open a view of a page; `model` is that of some model."""
    browser.open(address + ("#/run/0" if view == "model" else view))
    if view == "model":
        browser.evaluate("document.querySelector('tbody th a').click()")
        browser.wait("document.querySelectorAll('.strip').length > 0")


def test_what_follows_a_long_table_is_reached(browser: Browser, tmp_path: Path) -> None:
    """Of hundreds of models the first are shown, in their order, and all at a click."""
    cases = [[factories.measured_record(factories.case(f"m{each:03}"))] for each in range(205)]
    found = stored.run_of(cases)
    shown = RunToShow(found.manifest, found.cases, found.reporter, tmp_path)
    (tmp_path / "long.html").write_text(page([shown]))
    browser.open((tmp_path / "long.html").as_uri())
    assert len(browser.evaluate(MODELS)) == 200
    browser.evaluate("document.querySelector('.scroll > button.chip').click()")
    assert len(browser.evaluate(MODELS)) == 205
    assert browser.evaluate("document.querySelector('.scroll > button.chip')") is None


def test_models_are_sorted(browser: Browser, address: str) -> None:
    """By speedup first, the fastest on top; by name on a click; what is missing is last."""
    browser.open(address)
    fastest = [HOSTILE, "alexnet", "dcgan", "resnet18", "big", "late"]
    assert browser.evaluate(MODELS) == fastest
    head = "[...document.querySelectorAll('th button')].find(each => each.textContent === {!r})"
    browser.evaluate(head.format("model") + ".click()")
    assert browser.evaluate(MODELS) == sorted(fastest, key=str.lower)
    browser.evaluate(head.format("speedup") + ".click()")
    browser.evaluate(head.format("speedup") + ".click()")
    assert browser.evaluate(MODELS) == ["resnet18", "dcgan", "alexnet", HOSTILE, "big", "late"]
    assert "sort=speedup" in browser.evaluate("location.hash")


def test_models_are_filtered(browser: Browser, address: str) -> None:
    """By words that are typed, after the key for that; the address says which."""
    browser.open(address)
    browser.press("/")
    assert browser.evaluate("document.activeElement.id") == "filter"
    for key in "net -alex":
        browser.press(key)
    assert browser.evaluate(MODELS) == ["resnet18"]
    assert "q=net" in browser.evaluate("location.hash")


def test_a_link_leads_where_it_did(browser: Browser, address: str) -> None:
    """Filters and order are those of the address; so is the model."""
    browser.open(f"{address}#/run/0?q=net&sort=model&show=FASTER")
    assert browser.evaluate(MODELS) == ["alexnet"]
    browser.evaluate("document.querySelector('tbody th a').click()")
    browser.wait("document.querySelector('h1').textContent === 'alexnet'")
    own = browser.evaluate("location.href")
    browser.open(own)
    assert browser.evaluate("document.querySelector('h1').textContent") == "alexnet"
    assert browser.evaluate("document.querySelectorAll('.strip path.samples').length") == 6
    browser.press("n")
    browser.wait("document.querySelector('h1').textContent === 'resnet18'")
    browser.evaluate("history.back()")
    browser.wait("document.querySelector('h1').textContent === 'alexnet'")


def test_no_name_is_obeyed(browser: Browser, address: str) -> None:
    """A model whose name is a script is shown by that name, and opens like any other."""
    browser.open(address)
    browser.evaluate("document.querySelector('tbody th a[href*=script]').click()")
    browser.wait(f"document.querySelector('h1').textContent === {HOSTILE!r}")
    assert browser.evaluate("document.querySelectorAll('main script').length") == 0


def test_what_is_missing_says_why(browser: Browser, address: str) -> None:
    """A model that failed, with its reason, and one that was not run."""
    browser.open(f"{address}#/overview")
    text = browser.evaluate("document.querySelector('main').textContent")
    assert "took too much" in text
    assert "no result yet" in text


def test_two_runs(browser: Browser, address_of_two: str) -> None:
    """What changed comes first, model by model; each run is a link away."""
    browser.open(address_of_two)
    text = browser.evaluate("document.querySelector('main').textContent")
    assert "slower (4)" in text
    assert "There is nothing newly failing" in text
    browser.open(f"{address_of_two}#/run/1")
    assert len(browser.evaluate(MODELS)) == 6


def test_the_way_past_the_head_keeps_the_view(browser: Browser, address: str) -> None:
    """The first stop of whoever uses the keyboard alone."""
    browser.open(f"{address}#/run/0")
    browser.evaluate("document.querySelector('.skip').click()")
    assert browser.evaluate("document.activeElement.id") == "main"
    assert browser.evaluate(MODELS)
    assert browser.evaluate("location.hash") == "#/run/0"


@pytest.mark.parametrize("view", ["#/overview", "#/run/0", "#/compare", "model", "#/x"])
def test_it_fits_a_telephone(browser: Browser, address_of_two: str, view: str) -> None:
    """Nothing is wider than the screen but what scrolls by itself."""
    browser.resize(390, 800)
    show(browser, address_of_two, view)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    browser.resize(1280, 800)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["#/overview", "#/run/0", "#/compare", "model", "#/x"])
def test_everybody_can_read_it(
    browser: Browser, address_of_two: str, view: str, scheme: str
) -> None:
    """Axe finds nothing: names, contrast, order of headings, what a keyboard reaches."""
    browser.prefer(scheme)
    show(browser, address_of_two, view)
    assert_accessible(browser)
