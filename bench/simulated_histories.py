#!/usr/bin/env python3
"""Simulate histories with planted steps, and count when they are found and what is wrongly said.

    python bench/simulated_histories.py --output docs/simulated-histories.md

What finds changes is the project's own; only the noise is made up (tests/simulated_histories.py).
It measures nothing, so it may run beside anything.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import numpy as np
from simulated_histories import RUNS, Noise, told

CASES = {
    "as wide as their intervals say": (Noise(), 0.05),
    "the same, smaller steps": (Noise(), 0.03),
    "the same, larger steps": (Noise(), 0.10),
    "runs differ by a further 1 %": (Noise(further=0.01), 0.05),
    "a further 1 %, larger steps": (Noise(further=0.01), 0.10),
    "runs differ by a further 2 %": (Noise(further=0.02), 0.10),
    "a further 1 %, alike from run to run (correlation 0.5)": (
        Noise(further=0.01, correlation=0.5), 0.05,
    ),
    "one run in twenty is off by 5 %": (Noise(spikes=0.05), 0.05),
}  # fmt: skip


def row(name: str, seeds: int) -> list[str]:
    """Simulate one kind of series, with steps and without."""
    noise, size = CASES[name]
    steps = ((20, -size), (40, size), (60, -size))
    planted = [told(noise, seed, steps) for seed in range(seeds)]
    unchanged = [told(noise, seeds + seed, ()) for seed in range(seeds)]
    delays = [delay for each in planted for delay in each.delays]
    found = [delay for delay in delays if delay is not None]
    runs = [f"{np.quantile(found, each):.0f}" if found else "-" for each in (0.5, 0.9)]
    return [
        name,
        f"{size:.0%}",
        f"{len(found)} of {len(delays)}",
        *runs,
        f"{sum(each.false for each in planted) / seeds:.3f}",
        f"{sum(each.false for each in unchanged) / seeds:.3f}",
        f"{sum(each.ever_false for each in unchanged) / seeds:.3f}",
    ]


def main() -> int:
    """Simulate, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    text = page(asked.seeds)
    print(text)
    if asked.output:
        asked.output.write_text(text)
    return 0


def page(seeds: int) -> str:
    """Return the table, with what it is of."""
    head = [
        "runs of the same code", "steps", "found", "runs until found, median", "of nine in ten",
        "false changes in a series with steps", "in one without, at the end",
        "in one without, told at any time",
    ]  # fmt: skip
    rows = [row(name, seeds) for name in CASES]
    return "\n".join(
        [
            "# Simulated histories",
            "",
            f"{seeds} series of {RUNS} runs each, looked at after every run. The level falls after",
            "20 runs, rises again after 40 and falls after 60. A run's own error is 0.6 %, as of",
            "three to five processes. A step is found when a change is told whose range holds it,",
            "and which is told from then on. *Told at any time* counts every place at which some",
            "change was told after any of the 80 runs. Made by `bench/simulated_histories.py`; a",
            "shorter form is among the tests.",
            "",
            *(f"| {' | '.join(each)} |" for each in (head, ["---"] * len(head), *rows)),
            "",
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
