#!/usr/bin/env python3
"""Simulate pairs of runs, compare them, and count what is wrongly said and what is missed.

    python bench/simulated_comparisons.py --output docs/simulated-comparisons.md

Everything that judges is the project's own; only the noise is made up (tests/simulated_runs.py). It
takes some minutes and measures nothing, so it may run beside anything.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from simulated import Machine
from simulated_runs import CALIBRATED, KNOWN, Made, side

from dynamometer.results.comparison.compare import compare
from dynamometer.results.statistics.significance import wilson
from dynamometer.results.values.comparison import REGRESSIONS, Change
from dynamometer.results.values.records import ASSUMED_SD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.results.values.comparison import Comparison

PLANTED = Made(
    slower={3: 1.05, 11: 1.05, 19: 1.05}, failing=frozenset({5, 23}), missing=frozenset({28})
)
TRUTH = Counter(
    [
        *(("slower", f"model_{each:02}") for each in PLANTED.slower),
        *(("newly failing", f"model_{each:02}") for each in PLANTED.failing),
        *(("gone", f"model_{each:02}") for each in PLANTED.missing),
    ]
)
NOISY = Machine(between=0.006, within=0.03, correlation=0.5)
STEADY = Machine(between=0.003, within=0.003)
UNKNOWN = Machine(between=0.012, within=0.0087, correlation=0.5)
MACHINES = {
    "known": (CALIBRATED, KNOWN, 0.0),
    "first runs": (CALIBRATED, ASSUMED_SD, 0.0),
    "steady, known": (STEADY, KNOWN, 0.0),
    "noisy, known": (NOISY, KNOWN, 0.0),
    "processes differ by 1.2 %, known as 0.6 %": (UNKNOWN, KNOWN, 0.0),
    "known; runs differ by a further 0.5 %": (CALIBRATED, KNOWN, 0.005),
    "known; runs differ by a further 1 %": (CALIBRATED, KNOWN, 0.01),
}
"""Of each its noise, what is known of it, and how far runs differ beyond what they show."""


def named(found: Comparison) -> Counter[tuple[str, str]]:
    """Return what a comparison names, but for what is unclear."""
    return Counter(
        (str(each.change), each.model)
        for each in found.findings
        if each.change not in {Change.UNCLEAR, Change.NOT_COMPARED}
    )


def row(name: str, seeds: int) -> list[str]:
    """Compare pairs of runs on one machine, which share no noise."""
    machine, known, run_sd = MACHINES[name]
    unchanged, planted = [], []
    for seed in range(seeds):
        before, same, other = (
            side(replace(made, run_sd=run_sd), 3 * seed + offset, machine=machine, known=known)
            for offset, made in enumerate((Made(), Made(), PLANTED))
        )
        unchanged.append(compare(before, same))
        planted.append(named(compare(before, other)))
    regressions = [{each.change for each in found.findings} & REGRESSIONS for found in unchanged]
    slowdowns = {each for each in TRUTH if each[0] == "slower"}
    return [
        name,
        share(bool(each) for each in regressions),
        share(Change.SLOWER in each for each in regressions),
        share(bool(named(found)) for found in unchanged),
        share(found == TRUTH for found in planted),
        f"{sum(found == TRUTH for found in planted[:20])} of {len(planted[:20])}",
        share(each in found for found in planted for each in slowdowns),
        f"{sum((found - TRUTH).total() for found in planted)} in {seeds} pairs",
    ]


def main() -> int:
    """Simulate, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    text = _page(options.seeds)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _page(seeds: int) -> str:
    rows = [row(name, seeds) for name in MACHINES]
    head = [
        "machine", "something called a regression", "of these, slower", "something named at all",
        "exactly what was planted", "the same, first 20", "planted slowdowns found",
        "named that was not planted",
    ]  # fmt: skip
    return "\n".join(
        [
            "# Comparing simulated runs",
            "",
            f"Pairs of runs of 30 models, {seeds} for each figure; 3 to 5 processes of 24 blocks",
            "each, until the interval is within 1 %. The noise is made up, as wide as that of the",
            "calibration unless it says otherwise (between processes 0.6 %, within 0.87 %, blocks",
            "that resemble their neighbours); compile times differ by 5 % from run to run, memory",
            "of calls by 1 %. What judges is the code itself. Made by",
            "`bench/simulated_comparisons.py`; a shorter form is among the tests.",
            "",
            "In the first three columns of figures nothing was changed. In the others three models",
            "are slower by 5 %, two fail, one is missing. *First runs* assume what is assumed of a",
            "machine nobody knows.",
            "",
            *(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)),
            "",
        ]
    )


def share(hits: Iterable[bool]) -> str:
    """Write a share with its interval."""
    found = list(hits)
    estimate = wilson(sum(found), len(found))
    interval = f"[{estimate.low:.1%}, {estimate.high:.1%}]"
    return f"{sum(found)} of {len(found)}: {estimate.value:.1%} {interval}"


if __name__ == "__main__":
    raise SystemExit(main())
