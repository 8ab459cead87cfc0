#!/usr/bin/env python3
"""Time the page of a year of 500 models in Chromium.

    python bench/page_of_a_year.py --output docs/page-of-a-year.md

The runs are made up (tests/simulated_year.py). The page is opened from a file, each time anew. What
happens after a click is timed from the click until the page has been laid out again.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "integration"))
from browser import PROGRAM, Browser
from simulated_year import MADE_AT, MODELS, RUNS, year

from dynamometer.results.reports.page.document import page
from dynamometer.results.reports.page.history import shown_history

REPEATS = 5
DRAWN = "document.body.getBoundingClientRect().height"
"""Asking for it makes the browser lay the page out."""
CLICKS = {
    "what became worse within 12 weeks, ms": "12 weeks",
    "what ever changed, ms": "changed",
    "all series, ms": "all",
    "all rows of these, ms": "show all",
}


def clicked(browser: Browser, text: str) -> float:
    """Press a button, and return how many milliseconds it took until all was laid out."""
    return float(
        browser.evaluate(
            f"(() => {{ const found = [...document.querySelectorAll('button.chip')]"
            f".find(each => each.textContent.startsWith({text!r}));"
            f" const start = performance.now(); found.click(); {DRAWN};"
            " return performance.now() - start; })()"
        )
    )


def measured(browser: Browser, address: str) -> dict[str, float]:
    """Open the page and use it once."""
    started = time.perf_counter()
    browser.open(address)
    browser.evaluate(DRAWN)
    found = {"opened, until it can be used, ms": 1e3 * (time.perf_counter() - started)}
    return {**found, **{title: clicked(browser, text) for title, text in CLICKS.items()}}


def main() -> int:
    """Make the page, open it a few times, and write what that took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if PROGRAM is None:
        parser.error("there is no Chromium here (apt install chromium)")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "history.html"
        path.write_text(page([], history=shown_history(year(), MADE_AT)))
        with Browser(Path(place) / "profile", PROGRAM) as browser:
            found = [measured(browser, path.as_uri()) for _ in range(REPEATS)]
        size = path.stat().st_size
    medians = {title: statistics.median(each[title] for each in found) for title in found[0]}
    text = "\n".join(
        [
            "# The page of a year", "",
            f"{RUNS} made-up runs of {MODELS} models: {size / 1e6:.1f} MB of speedups and endings.",
            f"Medians of {REPEATS} in Chromium without a window, until the page is laid out.",
            f"{os.cpu_count()} processors; processes that wanted one: {os.getloadavg()[1]:.1f}.",
            "Made by `bench/page_of_a_year.py`.", "",
            "| | |", "|---|---|",
            *(f"| {title} | {value:,.0f} |" for title, value in medians.items()), "",
        ]
    )  # fmt: skip
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
