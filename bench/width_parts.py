#!/usr/bin/env python3
"""Print what the width of intervals is made of, from the records of a run.

    python bench/width_parts.py RUN_DIR [RUN_DIR ...]

Nothing is measured. The variance of one process's log speedup has three parts: *blocks*, what its
blocks leave open were each independent; *drift*, what comes on top of that as blocks resemble their
neighbours; *between*, what processes differ beyond both, their layouts among it. A part of 0 is one
that is too small to be seen.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.results.statistics.replicates import latencies_in_blocks, log_speedups
from dynamometer.results.statistics.summary import summarize_cases
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.statistics.significance import Replicate
    from dynamometer.results.statistics.summary import CaseSummary
    from dynamometer.results.values.records import Record

FEWEST_REPLICATES = 2


@dataclass(frozen=True)
class Parts:
    """Variances of one process's log speedup; `between` may be negative by chance."""

    name: str
    replicates: int
    half_width: float
    blocks: float
    drift: float
    between: float

    @property
    def total(self) -> float:
        """What is left of it where no part is negative."""
        return self.blocks + self.drift + max(0.0, self.between)


def main() -> int:
    """Read the runs and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN_DIR")
    options = parser.parse_args()
    records = [record for run in options.runs for record in store.read_records(run)]
    found = [each for case in summarize_cases(records) for each in _parts(case)]
    if not found:
        parser.error("no speedup of these runs has two replicates")
    print("\n".join(_table(found)))
    return 0


def _parts(case: CaseSummary) -> Iterable[Parts]:
    for arm in case.arms:
        found = log_speedups(BASELINE, arm.name, case.records)
        if case.is_isolated or len(found) < FEWEST_REPLICATES or arm.speedup is None:
            continue
        worth = [_worth(*each) for each in zip(case.records, found, strict=True)]
        within = statistics.fmean(each.error**2 for each in found)
        blocks = statistics.fmean(
            each.error**2 * share for each, share in zip(found, worth, strict=True)
        )
        yield Parts(
            name=f"{case.case.label} {arm.name}",
            replicates=len(found),
            half_width=math.log(arm.speedup.high / arm.speedup.low) / 2,
            blocks=blocks,
            drift=within - blocks,
            between=statistics.variance(each.value for each in found) - within,
        )


def _worth(record: Record, found: Replicate) -> float:
    """Return the share of its blocks a process would be known as well by, were they independent."""
    blocks = {block for each in latencies_in_blocks(record, BASELINE) for block in each.blocks}
    middle = len(blocks) - 2 * (len(blocks) // 4)
    return min(1.0, found.df / (middle - 1)) if middle > 1 else 1.0


def _table(found: Sequence[Parts]) -> list[str]:
    rows = [
        (each.name, str(each.replicates), f"{each.half_width:.2%}", *_sds(each))
        for each in sorted(found, key=lambda each: -each.half_width)
    ]
    mean = Parts(
        name="all (root mean square)",
        replicates=sum(each.replicates for each in found),
        half_width=math.sqrt(statistics.fmean(each.half_width**2 for each in found)),
        blocks=statistics.fmean(each.blocks for each in found),
        drift=statistics.fmean(each.drift for each in found),
        between=statistics.fmean(each.between for each in found),
    )
    shares = [mean.blocks, mean.drift, max(0.0, mean.between)]
    rows.append((mean.name, str(mean.replicates), f"{mean.half_width:.2%}", *_sds(mean)))
    rows.append(("share of the variance", "", "", *(f"{each / mean.total:.0%}" for each in shares)))
    head = ("case", "processes", "half-width", "blocks", "drift", "between")
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


def _sds(parts: Parts) -> list[str]:
    return [
        f"{math.sqrt(max(0.0, each)):.2%}" for each in (parts.blocks, parts.drift, parts.between)
    ]


if __name__ == "__main__":
    raise SystemExit(main())
