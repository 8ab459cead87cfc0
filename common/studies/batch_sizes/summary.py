"""What a search for batch sizes found: the largest that runs, and the one with most throughput."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.values import metrics
from dynamometer.results.values.records import Outcome, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record


LONGEST_STEP_S = 10.0
"""A search ends at steps longer than this, for it would take minutes to find the end of memory."""

_PATIENCE = 10
"""Sizes tried before any has passed."""

_NO_LARGER = frozenset({Status.OOM, Status.TIMEOUT, Status.SKIP, Status.INFRA})


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
        largest: the largest batch that ran; `None` if none did, or the search has not ended.
        fastest: the one with the most samples per second.
        end: what the size after the largest came to; a pass with a reason if the search itself
            went no further, a skip with one if it has not ended.
        ended_at: the size that the search ended with.
        is_unfinished: whether larger sizes are still to be tried.
    """

    case: Case
    largest: Throughput | None
    fastest: Throughput | None
    end: Outcome
    ended_at: int
    is_unfinished: bool = False


def size_of(replicate: int) -> int:
    """Return the batch size that a replicate tries."""
    return 1 << replicate


def is_over(records: Sequence[Record]) -> bool:
    """Return whether a search has found its end.

    It has at the first size that doesn't pass after one that did, and at the first that is slow.
    Before that, only what a larger batch can't mend ends it, or failing for long: some models
    don't take a single sample, such as those that normalise over a batch in training.
    """
    if not records:
        return False
    last = records[-1].outcome.status
    if last is Status.PASS:
        return _step_s(records[-1]) > LONGEST_STEP_S
    passed = any(record.outcome.status is Status.PASS for record in records)
    return passed or last in _NO_LARGER or len(records) >= _PATIENCE


def summarize_search(records: Sequence[Record]) -> BatchSizeSummary:
    """Summarize the replicates of one case, each of which is a batch size.

    A search that goes on, was interrupted, or lost a worker has found no largest batch.
    """
    last = records[-1]
    if _is_unfinished(records):
        return BatchSizeSummary(
            records[0].case, largest=None, fastest=None, end=_so_far(last),
            ended_at=size_of(last.replicate), is_unfinished=True,
        )  # fmt: skip
    found = [_throughput(record) for record in records if record.outcome.status is Status.PASS]
    return BatchSizeSummary(
        case=records[0].case,
        largest=max(found, key=lambda each: each.batch_size, default=None),
        fastest=max(found, key=lambda each: each.samples_per_s, default=None),
        end=_own_end(last) if last.outcome.status is Status.PASS else last.outcome,
        ended_at=size_of(last.replicate),
    )


def _is_unfinished(records: Sequence[Record]) -> bool:
    """Return whether a size is still to be tried, also one that the harness failed to try."""
    if records[-1].outcome.status is Status.INFRA:
        return True
    return not (any(each.stopped for each in records) or is_over(records))


def _so_far(last: Record) -> Outcome:
    """Return what is said of a search that has not ended: nothing against the model."""
    size = size_of(last.replicate)
    if last.outcome.status is Status.INFRA:
        why = last.outcome.reason or "no reason given"
        reason = f"LOST at batch size {size}, which dynamometer resume tries again: {why}"
        return msgspec.structs.replace(last.outcome, reason=reason)
    ended = "ran" if last.outcome.status is Status.PASS else f"ended with {last.outcome.line}"
    reason = f"NOT ENDED: batch size {size} {ended}; the run goes on, or was interrupted"
    return Outcome(status=Status.SKIP, reason=reason)


def _own_end(last: Record) -> Outcome:
    step_s = _step_s(last)
    slow = f"a step takes {step_s:.0f} s, and the search goes to {LONGEST_STEP_S:.0f}"
    reason = slow if step_s > LONGEST_STEP_S else "the search goes no further"
    return Outcome(status=Status.PASS, reason=reason)


def _throughput(record: Record) -> Throughput:
    (size,) = _samples(record)[metrics.BATCH_SIZE.name]
    return Throughput(int(size), size / _step_s(record))


def _step_s(record: Record) -> float:
    return statistics.median(_samples(record)[metrics.LATENCY.name])


def _samples(record: Record) -> dict[str, tuple[float, ...]]:
    return {each.metric: each.samples for each in record.measurements}
