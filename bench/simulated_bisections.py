#!/usr/bin/env python3
"""Search for the first slower of 64 made-up commits, and count how often it is the right one.

    python bench/simulated_bisections.py --output docs/simulated-bisections.md

Runs are made up with noise as wide as that of the calibration; the search is that of
`dynamometer bisect`. Beside it: what `git bisect run` does with one process of each commit and a
threshold in the middle.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import numpy as np
import simulated_runs
from tabulate import tabulate

from dynamometer.common.command_line.bisect.measuring import FURTHER
from dynamometer.common.command_line.bisect.points import Point
from dynamometer.common.command_line.bisect.searching import Search
from dynamometer.common.errors import UsageError
from dynamometer.results.statistics.significance import wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.comparison.sides import Side

COMMITS = 64
HEADERS = (
    "slower by", "runs differ by", "allowed for", "right", "several named", "wrong", "ends alike",
    "replicates", "at most", "one process each: right",
)  # fmt: skip

PAGE = """# Searches for the first slower commit

{searches} searches over {commits} made-up commits each, by `bench/simulated_bisections.py`. Noise
is that of the calibration: processes differ by 0.6 %, and 0.87 % is seen within them. In some rows
*runs differ* besides, which their processes don't show, and which `--run-sd` has *allowed for* or
not. *Several named*: the right commit is one of several that could not be told apart. *Ends alike*:
they were not found to differ, so nothing was searched. *Replicates*: of all commits of a search
together. *One process each* is what `git bisect run` finds with a single process of each commit and
a threshold in the middle.

{table}
"""


@dataclass
class Made:
    """Commits of which those from `first` on are slower; measured by making runs up.

    Attributes:
        first: the first slower one.
        slower: by which factor.
        run_sd: how far runs differ beyond what their processes show.
        seed: of all noise.
        replicates: made so far.
    """

    first: int
    slower: float
    run_sd: float
    seed: int
    replicates: int = 0
    found: Sequence[Point] = tuple(Point(str(each), str(each)) for each in range(COMMITS + 1))
    _runs: dict[int, list[Side]] = field(default_factory=dict)

    def switch(self, point: Point) -> str | None:
        """Do nothing: any of them can be measured."""
        del point

    def restore(self) -> str | None:
        """Do nothing."""
        return None

    def kept(self, point: int) -> list[Side]:
        """Return the runs of a commit."""
        return list(self._runs.get(point, ()))

    def measure(self, point: int, number: int) -> Side:
        """Make a run up; further ones have more replicates."""
        slower = {0: self.slower} if point >= self.first else {}
        made = simulated_runs.Made(models=1, slower=slower, run_sd=self.run_sd)
        seed = int(np.random.SeedSequence([self.seed, point, number]).generate_state(1)[0])
        found = simulated_runs.side(made, seed, FURTHER[number - 1] if number else None)
        self.replicates += sum(len(each.records) for each in found.entries[:1])
        self._runs.setdefault(point, []).append(found)
        return found


def by_one_number(made: Made) -> int:
    """Return what a search finds that looks at one replicate of each commit."""

    def value(point: int) -> float:
        (entry,) = (each for each in made.measure(point, 0).entries if each.quantities)
        return entry.quantities["speedup"].replicates[0].value

    middle = (value(0) + value(COMMITS)) / 2
    good, bad = 0, COMMITS
    while bad - good > 1:
        point = (good + bad) // 2
        good, bad = (good, point) if value(point) < middle else (point, bad)
    return bad


def row(slower: float, run_sd: float, allowed: float, searches: int) -> list[str]:
    """Return what becomes of many searches."""
    right = several = wrong = untold = simple = 0
    replicates = []
    for seed in range(searches):
        first = random.Random(seed).randrange(1, COMMITS + 1)
        made = Made(first, slower, run_sd, seed)
        try:
            names = [int(each.name) for each in Search(made, made, allowed, lambda _: None).run()]
        except UsageError:  # the ends are not told apart
            names = []
            untold += 1
        right += names == [first]
        several += len(names) > 1 and first in names
        wrong += bool(names) and first not in names
        replicates.append(made.replicates)
        simple += by_one_number(Made(first, slower, run_sd, seed + searches)) == first
    share = wilson(right, searches)
    return [
        f"{slower - 1:.0%}", f"{run_sd:.1%}", f"{allowed:.1%}",
        f"{right} of {searches} [{share.low:.0%}, {share.high:.0%}]", str(several), str(wrong),
        str(untold),        f"{sum(replicates) / searches:.0f}", str(max(replicates)), str(simple),
    ]  # fmt: skip


def main() -> None:
    """Make the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    noise = ((0.0, 0.0), (0.005, 0.0), (0.005, 0.005))
    rows = [
        row(slower, *run_sds, options.searches)
        for slower, run_sds in itertools.product((1.1, 1.05, 1.03), noise)
    ]
    table = tabulate(rows, HEADERS, tablefmt="github", disable_numparse=True)
    text = PAGE.format(searches=options.searches, commits=COMMITS, table=table)
    if options.output:
        options.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
