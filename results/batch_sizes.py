"""What a search for batch sizes found: the largest that runs, and the one with most throughput."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results import metrics
from dynamometer.results.schema import BATCH_SIZES, PASSED, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.schema import Case, Outcome, Record


DOUBLINGS = 17
"""A search goes from batch size 1 to 2 to the 16."""


@dataclass(frozen=True)
class Throughput:
    """A batch size that ran.

    Attributes:
        batch_size: samples in a batch.
        samples_per_s: batch size over the median step.
    """

    batch_size: int
    samples_per_s: float


@dataclass(frozen=True)
class BatchSizeSummary:
    """One model's search.

    Attributes:
        case: what was run.
        largest: the largest batch that ran; `None` if none did.
        fastest: the one with the most samples per second.
        end: what the next size came to; a pass if the search reached its own end.
    """

    case: Case
    largest: Throughput | None
    fastest: Throughput | None
    end: Outcome


def is_search(records: Sequence[Record]) -> bool:
    """Tell whether these are records of a search for batch sizes."""
    return BATCH_SIZES in records[0].experiments


def summarize_search(records: Sequence[Record]) -> BatchSizeSummary:
    """Summarize the replicates of one case, each of which is a batch size."""
    found = [_throughput(record) for record in records if record.outcome.status is Status.PASS]
    ends = [record.outcome for record in records if record.outcome.status is not Status.PASS]
    return BatchSizeSummary(
        case=records[0].case,
        largest=max(found, key=lambda each: each.batch_size, default=None),
        fastest=max(found, key=lambda each: each.samples_per_s, default=None),
        end=ends[0] if ends else PASSED,
    )


def _throughput(record: Record) -> Throughput:
    samples = {each.metric: each.samples for each in record.measurements}
    (size,) = samples[metrics.BATCH_SIZE]
    return Throughput(int(size), size / statistics.median(samples[metrics.LATENCY]))
