#!/usr/bin/env python3
"""Return what would make intervals narrower, from the identical arms of calibrations.

    python bench/narrower.py RUN_DIR [RUN_DIR ...]

Nothing is measured. The log speedup of identical arms is 0, so its mean square over processes is
the variance of one process. That is compared with what it would be if each process took fewer
blocks, or held several copies of the arms; and pairs of one process are compared with each other.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from dynamometer.common.studies.calibration import evaluation as calibration
from dynamometer.common.studies.calibration.arms import PAIRS
from dynamometer.results.statistics.replicates import log_speedups, of_pair
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values import metrics
from dynamometer.results.values.records import Stage, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.values.records import Measurement, Record

ALIKE = [pair for pair, truth in PAIRS.items() if truth == 1]
EAGER = ALIKE[:3]
"""Pairs of eager arms, which share no arm with each other."""

SHARES = (1.0, 0.5, 0.25)
_LEAST = 2
"""Processes that can be compared."""


def main() -> int:
    """Read the runs and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN_DIR")
    options = parser.parse_args()
    try:
        stored = [record for run in options.runs for record in store.read_records(run)]
    except StoreError as error:
        parser.error(str(error))
    records = [
        record
        for record in map(calibration.without_isolated_runs, stored)
        if record.outcome.status is Status.PASS
    ]
    if len(_shared([_by_process(records, pair) for pair in EAGER])) < _LEAST:
        parser.error("these runs hold no two processes that measured a calibration's arms")
    print("\n".join([*_of_blocks(records), "", *_of_copies(records)]))
    return 0


def _of_blocks(records: Sequence[Record]) -> list[str]:
    """Compare processes that take a part of their blocks."""
    timing_s, all_s = (
        statistics.fmean(sum(each.seconds.get(stage, 0.0) for stage in stages) for each in records)
        for stages in ([Stage.MEASURE], list(Stage))
    )
    lines = [
        f"A process takes {timing_s:.0f} of its {all_s:.0f} s to time its arms.",
        "| share of its blocks | sd of one process | sd of as many blocks in more processes |",
        "|---|---|---|",
    ]
    for share in SHARES:
        sd = _sd(
            value
            for pair in ALIKE
            for value in _by_process(
                [_of_first_blocks(each, pair, share) for each in records], pair
            ).values()
        )
        lines.append(f"| {share:.0%} | {sd:.2%} | {sd * share**0.5:.2%} |")
    return lines


def _of_copies(records: Sequence[Record]) -> list[str]:
    """Compare one pair of copies in a process with several."""
    each = [_by_process(records, pair) for pair in EAGER]
    shared = _shared(each)
    values = [[found[key] for key in shared] for found in each]
    one = _sd(value for own in values for value in own)
    mean = _sd(map(statistics.fmean, zip(*values, strict=True)))
    correlations = [statistics.correlation(*two) for two in itertools.combinations(values, 2)]
    count = len(EAGER)
    return [
        f"One pair of eager copies in a process: sd {one:.2%}. Mean of {count} pairs: {mean:.2%}.",
        f"Were these independent, it would be {one / count**0.5:.2%}; they correlate by "
        + ", ".join(f"{each:.2f}" for each in correlations)
        + f" ({len(shared)} processes).",
    ]


def _shared(each: Sequence[dict[tuple[str, int], float]]) -> list[tuple[str, int]]:
    """Return the processes that took all pairs."""
    return sorted(set.intersection(*map(set, each)))


def _by_process(records: Iterable[Record], pair: tuple[str, str]) -> dict[tuple[str, int], float]:
    """Return a pair's log speedup in each process, by model and a number."""
    by_model = defaultdict(list)
    for record in records:
        by_model[record.case.model].append(record)
    return {
        (model, index): found[0].value
        for model, own in by_model.items()
        for index, record in enumerate(own)
        if (found := log_speedups(*pair, [record]))
    }


def _of_first_blocks(record: Record, pair: tuple[str, str], share: float) -> Record:
    """Leave of a record the first blocks of a pair."""
    own = of_pair(record, pair)
    latencies = [each for each in own.measurements if each.metric == metrics.LATENCY.name]
    blocks = sorted({block for each in latencies for block in each.blocks})
    last = blocks[math.ceil(share * len(blocks)) - 1] if blocks else 0
    cut = tuple(
        _until(last, each) if each.metric == metrics.LATENCY.name else each
        for each in own.measurements
    )
    return msgspec.structs.replace(own, measurements=cut)


def _until(last: int, measurement: Measurement) -> Measurement:
    count = sum(block <= last for block in measurement.blocks)
    return msgspec.structs.replace(
        measurement, samples=measurement.samples[:count], blocks=measurement.blocks[:count]
    )


def _sd(values: Iterable[float]) -> float:
    """Return the root mean square: what is expected is 0."""
    return statistics.fmean(value * value for value in values) ** 0.5


if __name__ == "__main__":
    raise SystemExit(main())
