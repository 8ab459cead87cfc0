"""All that is known of one case, for the page. Reads logs; no torch."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from dynamometer.results.reports.case_page import log_lines
from dynamometer.results.reports.page.values import Details, ShownReplicate, ShownSamples
from dynamometer.results.reports.texts import printable_lines
from dynamometer.results.values.metrics import LATENCY, LATENCY_ISOLATED
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dynamometer.results.values.records import Measurement, Record


def details_of(records: Sequence[Record], told: Sequence[str], directory: Path) -> Details:
    """Return the details of a case.

    Args:
        records: of the case, one for each replicate it had.
        told: what the study prints of them.
        directory: the run's, which holds the logs.
    """
    missing = [
        f"{each.metric} of {each.arm}: {each.reason}"
        for record in records
        for each in record.absent
    ]
    missing += [
        f"comparison of {arm.arm}: {each}"
        for record in records
        for arm in record.arms
        for each in arm.unchecked
    ]
    return Details(
        told=tuple(told),
        notes=tuple(dict.fromkeys(note for record in records for note in record.notes)),
        missing=tuple(dict.fromkeys(missing)),
        failures=tuple(dict.fromkeys(failure for each in records for failure in _failures(each))),
        replicates=tuple(map(_replicate, records)),
        log=tuple(printable_lines(log_lines(records, directory))),
        command=records[-1].command,
    )


def _failures(record: Record) -> Iterator[tuple[str, str]]:
    outcomes = {each.arm: each.outcome for each in record.arms} or {"": record.outcome}
    for arm, outcome in outcomes.items():
        if outcome.status is not Status.PASS:
            title = f"{arm} {outcome.status} ({outcome.stage or 'no stage'})".strip()
            texts = dict.fromkeys((outcome.reason or "no reason given", outcome.detail or ""))
            yield title, "\n".join(filter(None, texts))


def _replicate(record: Record) -> ShownReplicate:
    return ShownReplicate(
        name=f"replicate {record.replicate}",
        status=record.outcome.status,
        started_at=record.started_at,
        seconds=", ".join(f"{stage} {spent:.1f}" for stage, spent in record.seconds.items()),
        stopped=record.stopped,
        build_order=record.build_order,
        disturbed=record.disturbed_blocks,
        samples=tuple(
            _samples(each)
            for each in record.measurements
            if each.metric in {LATENCY.name, LATENCY_ISOLATED.name} and each.samples
        ),
    )


def _samples(found: Measurement) -> ShownSamples:
    """Return samples in ms, with the four digits that a clock is good for."""
    numbers = found.blocks or (0,) * len(found.samples)
    pairs = zip(numbers, found.samples, strict=True)
    return ShownSamples(
        arm=found.arm,
        metric=found.metric,
        blocks=tuple(
            (block, tuple(float(f"{sample * 1e3:.4g}") for _, sample in own))
            for block, own in groupby(pairs, key=lambda pair: pair[0])
        ),
    )
