#!/usr/bin/env python3
"""Simulate pairs of runs, compare them, and count what is wrongly said and what is missed.

    python bench/simulated_comparisons.py --output docs/simulated-comparisons.md

Everything that judges is the project's own; only the noise is made up (tests/simulated_runs.py). It
takes some minutes and measures nothing, so it may run beside anything.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from simulated import Machine, measured, taken
from simulated_runs import CALIBRATED, KNOWN, Made, side

from dynamometer.results.comparison.compare import compare
from dynamometer.results.comparison.quantities import difference
from dynamometer.results.statistics.significance import (
    LATENCY_FLOOR,
    SIGNIFICANT_P,
    Verdict,
    adjusted,
    moderated,
    ratio,
    verdict,
    wilson,
)
from dynamometer.results.values.comparison import REGRESSIONS, Change
from dynamometer.results.values.records import ASSUMED_SD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.statistics.significance import Mean
    from dynamometer.results.values.comparison import Comparison
    from dynamometer.results.values.records import BetweenProcessSd

MODELS = 30
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


@dataclass(frozen=True)
class Simulated:
    """Where pairs of runs are made.

    Attributes:
        machine: its noise.
        known: what is known of it.
        run_sd: how far runs differ beyond what their processes show.
        allowed: what of that is allowed for: changes, of two runs, differ by the root of 2 as much.
        compile_sd: how far compile times from empty caches differ.
        warm_sd: how far those from filled caches do.
    """

    machine: Machine = CALIBRATED
    known: BetweenProcessSd = KNOWN
    run_sd: float = 0.0
    allowed: float = 0.0
    compile_sd: float = 0.05
    warm_sd: float = 0.05

    def of(self, made: Made) -> Made:
        """Return what is true of a run that is made here."""
        return replace(made, run_sd=self.run_sd, compile_sd=self.compile_sd, warm_sd=self.warm_sd)


MACHINES = {
    "known": Simulated(),
    "first runs": Simulated(known=ASSUMED_SD),
    "steady, known": Simulated(STEADY),
    "noisy, known": Simulated(NOISY),
    "processes differ by 1.2 %, known as 0.6 %": Simulated(UNKNOWN),
    "known; compile times differ by 12 %": Simulated(compile_sd=0.12, warm_sd=0.12),
    "the same, but from filled caches by 5 %": Simulated(compile_sd=0.12),
    "known; runs differ by a further 0.5 %": Simulated(run_sd=0.005),
    "known; runs differ by a further 1 %": Simulated(run_sd=0.01),
    "the same with --run-sd 0.014": Simulated(run_sd=0.01, allowed=0.014),
}

_IN_FULL, _SHARE = 2, 4
"""Of the others a quarter of the pairs tell enough."""


def named(found: Comparison) -> Counter[tuple[str, str]]:
    """Return what a comparison names, but for what is unclear."""
    return Counter(
        (str(each.change), each.model)
        for each in found.findings
        if each.change not in {Change.UNCLEAR, Change.NOT_COMPARED}
    )


def row(name: str, seeds: int) -> list[str]:
    """Compare pairs of runs on one machine, which share no noise."""
    where = MACHINES[name]
    unchanged, planted = [], []
    for seed in range(seeds):
        before, same, other = (
            side(where.of(made), 3 * seed + offset, machine=where.machine, known=where.known)
            for offset, made in enumerate((Made(), Made(), PLANTED))
        )
        unchanged.append(compare(before, same, run_sd=where.allowed))
        planted.append(named(compare(before, other, run_sd=where.allowed)))
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
    if options.seeds < _SHARE:
        parser.error(f"--seeds must be at least {_SHARE}")
    text = _page(options.seeds)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _page(seeds: int) -> str:
    rows = [
        row(name, seeds if index < _IN_FULL else seeds // _SHARE)
        for index, name in enumerate(MACHINES)
    ]
    head = [
        "machine", "something called a regression", "of these, slower", "something named at all",
        "exactly what was planted", "the same, first 20", "planted slowdowns found",
        "named that was not planted",
    ]  # fmt: skip
    return "\n".join(
        [
            "# Comparing simulated runs",
            "",
            "Pairs of runs of 30 models; 3 to 5 processes of 24 blocks each, until the interval is",
            "within 1 %. The noise is made up, as wide as that of the",
            "calibration unless it says otherwise (between processes 0.6 %, within 0.87 %, blocks",
            "that resemble their neighbours); compile times differ by 5 % from run to run and from",
            "process to process, memory of calls by 1 %. What judges is the code itself. Made by",
            "`bench/simulated_comparisons.py`; a shorter form is among the tests.",
            "",
            "In the first three columns of figures nothing was changed. In the others three models",
            "are slower by 5 %, two fail, one is missing. *First runs* assume what is assumed of a",
            "machine nobody knows.",
            "",
            *(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)),
            "",
            *rules(3 * seeds),
            "",
        ]
    )


def rules(pairs: int) -> list[str]:
    """Compare the rule with that of the value alone beyond the floor, on the known machine."""
    false, found, exact = ([0, 0] for _ in range(3))
    for seed in range(pairs):
        before, after = (measured(CALIBRATED, MODELS, 2 * seed + each) for each in range(2))
        means = [
            difference(*(moderated(taken(case, KNOWN), KNOWN) for case in pair))
            for pair in zip(before, after, strict=True)
        ]
        slower = [
            mean._replace(value=mean.value - math.log(PLANTED.slower.get(model, 1.0)))
            for model, mean in enumerate(means)
        ]
        for rule in range(2):
            called = called_slower(slower)[rule]
            false[rule] += bool(called_slower(means)[rule])
            found[rule] += len(called & PLANTED.slower.keys())
            exact[rule] += called == PLANTED.slower.keys()
    planted = pairs * len(PLANTED.slower)
    return [
        f"The rule, on speedups of the known machine alone ({pairs} pairs of {MODELS} models):",
        "",
        "| called slower if significant and | in identical runs | planted found | exactly those |",
        "|---|---|---|---|",
        *(
            f"| {name} | {false[rule] / pairs:.1%} | {found[rule] / planted:.1%} |"
            f" {exact[rule] / pairs:.1%} |"
            for rule, name in enumerate(("the value is beyond 2 %", "**the interval is**"))
        ),
    ]


def called_slower(means: Sequence[Mean]) -> tuple[set[int], set[int]]:
    """Return which are called slower by the value alone, and by the whole interval."""
    ratios = [ratio(each) for each in means]
    p_values = adjusted([each.p_value for each in ratios])
    found = list(enumerate(zip(ratios, p_values, strict=True)))
    by_value = {
        model
        for model, (each, p_value) in found
        if p_value <= SIGNIFICANT_P and each.value < 1 / (1 + LATENCY_FLOOR)
    }
    return by_value, {model for model, pair in found if verdict(*pair) is Verdict.SLOWER}


def share(hits: Iterable[bool]) -> str:
    """Write a share with its interval."""
    found = list(hits)
    estimate = wilson(sum(found), len(found))
    interval = f"[{estimate.low:.1%}, {estimate.high:.1%}]"
    return f"{sum(found)} of {len(found)}: {estimate.value:.1%} {interval}"


if __name__ == "__main__":
    raise SystemExit(main())
