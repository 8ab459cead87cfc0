"""All that is known of one case, as text: samples block by block, environment, log, command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.store import logs
from dynamometer.results.values.metrics import LATENCY, LATENCY_ISOLATED
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Environment, Manifest, Measurement, Record

_LOG_LINES = 20
_LOG_BYTES = 16_384
"""Read from the end of a log, whatever its length."""


def lines(
    manifest: Manifest, case: Case, records: Sequence[Record], told: Sequence[str], directory: Path
) -> list[str]:
    """Return the page of one case.

    Args:
        manifest: of the run.
        case: of the run.
        records: of the case, one for each replicate it had.
        told: what the study says of them.
        directory: the run's, which holds the logs.
    """
    if not records:
        return [case.id, "not run: the run was interrupted", *_environment(manifest.environment)]
    return [
        *told,
        "",
        f"case: {case.id}",
        *(f"note: {note}" for note in dict.fromkeys(n for each in records for n in each.notes)),
        *_endings(records),
        *(line for record in records for line in _samples(record)),
        *_environment(manifest.environment),
        *log_lines(records, directory),
        "",
        f"to repeat it: {records[-1].command}",
    ]


def _endings(records: Sequence[Record]) -> Iterator[str]:
    """Yield why arms did not pass, with all that was kept, and what was not measured."""
    yield from ("", "replicates:")
    for record in records:
        spent = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in record.seconds.items())
        stopped = f"; stopped: {record.stopped}" if record.stopped else ""
        begun = f"{record.outcome.status}, {record.started_at}"
        yield f"  {record.replicate}: {begun}; s: {spent}{stopped}"
        outcomes = {each.arm: each.outcome for each in record.arms} or {"": record.outcome}
        for arm, outcome in outcomes.items():
            if outcome.status is not Status.PASS:
                yield f"    {arm} {outcome.status} ({outcome.stage or '-'})"
                for text in dict.fromkeys((outcome.reason, outcome.detail)):
                    yield from (f"      {line}" for line in (text or "").splitlines())
        for each in record.absent:
            first, *others = f"no {each.metric} of {each.arm}: {each.reason}".splitlines()
            yield from (f"    {first}", *(f"      {line}" for line in others))


def _samples(record: Record) -> Iterator[str]:
    """Yield the latencies of a replicate in the order they were taken, a line for each block."""
    found = [
        each
        for each in record.measurements
        if each.metric in {LATENCY.name, LATENCY_ISOLATED.name} and each.samples
    ]
    if not found:
        return
    disturbed = set(record.disturbed_blocks)
    yield from ("", f"samples of replicate {record.replicate}, ms:")
    for each in found:
        yield f"  {each.arm}, {each.metric}:"
        for block, samples in _blocks(each).items():
            mark = " disturbed" if each.metric == LATENCY.name and block in disturbed else ""
            values = " ".join(f"{sample * 1e3:.4g}" for sample in samples)
            yield f"    {block:4}:{mark} {values}"


def _blocks(measured: Measurement) -> dict[int, list[float]]:
    """Return samples by block; all as one where they were not taken in blocks."""
    found: dict[int, list[float]] = {}
    numbers = measured.blocks or (0,) * len(measured.samples)
    for block, sample in zip(numbers, measured.samples, strict=True):
        found.setdefault(block, []).append(sample)
    return found


def _environment(found: Environment) -> list[str]:
    return [
        "",
        "environment:",
        f"  {found.machine}: {found.cpu}, {found.cpus} CPUs, {found.memory_bytes / 2**30:.1f} GiB",
        f"  {found.os}, Python {found.python}",
        f"  governor {found.governor or '-'}, load {found.load_1min:.1f} at the beginning",
        f"  {' '.join(f'{name} {version}' for name, version in sorted(found.packages.items()))}",
        *(f"  {name}={value}" for name, value in sorted(found.variables.items())),
    ]


def log_lines(records: Sequence[Record], directory: Path) -> list[str]:
    """Return the end of the log; one that a link leads out of the directory for is not read."""
    name = next((each.log for each in records if each.log), None)
    if name is None:
        return []
    path = directory / name
    long = logs.compressed(path)
    inside = directory.resolve()
    if not all(each.resolve().is_relative_to(inside) for each in (path, long)):
        return ["", f"log: {name} is not in the run's directory"]
    try:
        text = logs.read(path)[-_LOG_BYTES:].decode(errors="replace")
    except OSError as error:
        return ["", f"log: {path} can't be read: {error.strerror}"]
    last = text.splitlines()[-_LOG_LINES:] or ["(empty)"]
    return ["", f"end of {long if long.exists() else path}:", *(f"  {line}" for line in last)]
