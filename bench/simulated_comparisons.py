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
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from simulated import Machine
from simulated_runs import CALIBRATED, KNOWN, Made, side

from dynamometer.results.comparison.compare import compare
from dynamometer.results.statistics.significance import wilson
from dynamometer.results.values.comparison import REGRESSIONS, Change
from dynamometer.results.values.records import ASSUMED_SD, BetweenProcessSd

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
MACHINES = {
    "known": (CALIBRATED, KNOWN),
    "first runs": (CALIBRATED, ASSUMED_SD),
    "steady, known": (Machine(between=0.003, within=0.003), KNOWN),
    "noisy, known": (Machine(between=0.006, within=0.03, correlation=0.5), KNOWN),
    "processes differ by more than is known": (Machine(between=0.012, within=0.0087), KNOWN),
}


def named(found: Comparison) -> Counter[tuple[str, str]]:
    """Return what a comparison names, but for what is unclear."""
    return Counter(
        (str(each.change), each.model)
        for each in found.findings
        if each.change not in {Change.UNCLEAR, Change.NOT_COMPARED}
    )


def compared(
    after: Made, seed: int, machine: Machine, known: BetweenProcessSd, before: Made | None = None
) -> Comparison:
    """Compare two made-up runs, of which no noise is shared."""
    sides = (
        side(made, 2 * seed + offset, machine=machine, known=known)
        for offset, made in enumerate((before or Made(), after))
    )
    return compare(*sides)


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
    rows = [_row(name, seeds) for name in MACHINES]
    head = [
        "machine", "something called a regression", "of these, slower", "something named at all",
        "exactly what was planted", "planted slowdowns found", "named that was not planted",
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


def _row(name: str, seeds: int) -> list[str]:
    machine, known = MACHINES[name]
    unchanged = [compared(Made(), seed, machine, known) for seed in range(seeds)]
    planted = [named(compared(PLANTED, seed, machine, known)) for seed in range(seeds)]
    regressions = [{each.change for each in found.findings} & REGRESSIONS for found in unchanged]
    slowdowns = {each for each in TRUTH if each[0] == "slower"}
    return [
        name,
        _share(bool(each) for each in regressions),
        _share(Change.SLOWER in each for each in regressions),
        _share(bool(named(found)) for found in unchanged),
        _share(found == TRUTH for found in planted),
        _share(each in found for found in planted for each in slowdowns),
        f"{sum((found - TRUTH).total() for found in planted)} in {seeds} pairs",
    ]


def _share(hits: Iterable[bool]) -> str:
    found = list(hits)
    share = wilson(sum(found), len(found))
    return f"{sum(found)} of {len(found)}: {share.value:.1%} [{share.low:.1%}, {share.high:.1%}]"


if __name__ == "__main__":
    raise SystemExit(main())
