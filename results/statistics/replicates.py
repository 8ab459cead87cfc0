"""What replicates say of arms: how each ended, which latencies count, the speedup of two.

Pure; no torch.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

import msgspec

from dynamometer.results.statistics.interference import (
    LONGEST_DISTURBANCE,
    disturb_each_other,
    shifts,
)
from dynamometer.results.statistics.significance import moderated, replicates_needed, widest
from dynamometer.results.statistics.statistics import log_speedup, speedup
from dynamometer.results.values import metrics
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import (
    ASSUMED_SD,
    FORMERLY_ASSUMED,
    SEPARATE_SD,
    Stage,
    Status,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from dynamometer.results.statistics.significance import Replicate
    from dynamometer.results.values.records import (
        ArmResult,
        BetweenProcessSd,
        Measurement,
        Outcome,
        Ratio,
        Record,
    )


def endings_of(arm: str, records: Sequence[Record]) -> list[Outcome]:
    """Return how an arm ended in its replicates.

    A record without a result of the arm stands for it as a whole, unless it was left out there.
    """
    pairs = [(each, record) for record in records for each in record.arms if each.arm == arm]
    whole = [each.outcome for each in records if not pairs or _stands_for(arm, each)]
    return [*whole, *(_ending(*each) for each in pairs)]


def _stands_for(arm: str, record: Record) -> bool:
    """Return whether a record's outcome is an arm's, though it has no result of its own there.

    It isn't if that is how another arm ended: then this one was left out. Compared are lines, as a
    record's outcome may have the end of the log besides.
    """
    ends = {result.arm: result.outcome.line for result in record.arms}
    return arm not in ends and record.outcome.line not in ends.values()


def _ending(result: ArmResult, record: Record) -> Outcome:
    """Return how an arm ended in a replicate.

    Earlier versions called it skipped if eager, or a fault of the harness, had ended its process.
    """
    own = result.outcome
    if (own.status, own.stage) != (Status.SKIP, Stage.WORKER):
        return own
    of_process = (
        each.outcome
        for each in record.arms
        if each.outcome.status is Status.INFRA
        or (each.arm == BASELINE and each.outcome.status not in {Status.PASS, Status.SKIP})
    )
    return next(of_process, own)


def log_speedups(base: str, arm: str, records: Sequence[Record]) -> list[Replicate]:
    """Return of each replicate the log speedup of one arm over another, and how well it is known.

    Blocks that were disturbed are left out where others are left; arms that shared no block have no
    speedup.
    """
    if are_isolated(records):
        return isolated_log_speedups(base, arm, records)
    return _log_speedups(base, arm, records, latencies_in_blocks)


def isolated_log_speedups(base: str, arm: str, records: Iterable[Record]) -> list[Replicate]:
    """Return those of isolated runs, whether arms disturbed each other or not."""
    return _log_speedups(base, arm, records, isolated_latencies)


def _log_speedups(
    base: str,
    arm: str,
    records: Iterable[Record],
    latencies_of: Callable[[Record, str], list[Measurement]],
) -> list[Replicate]:
    found = []
    for record in records:
        before, after = (latencies_of(record, each) for each in (base, arm))
        if before and after:
            pair = _joined(before), _joined(after)
            if not set(pair[0].blocks).isdisjoint(pair[1].blocks):
                found.append(log_speedup(*pair))
    return found


def speedup_over(base: str, arm: str, records: Sequence[Record]) -> Ratio | None:
    """Estimate the speedup of one arm over another, measured in the same blocks."""
    replicates = log_speedups(base, arm, records)
    return speedup(replicates, between_sd_of(records, base, arm)) if replicates else None


def isolated_speedup(base: str, arm: str, records: Sequence[Record]) -> Ratio:
    """Estimate a speedup from isolated runs.

    Raises:
        ValueError: of one of the arms there are none.
    """
    return speedup(isolated_log_speedups(base, arm, records), SEPARATE_SD)


def replicates_needed_over(base: str, arm: str, records: Sequence[Record]) -> int | None:
    """Return how many replicates would make a speedup's interval as narrow as was asked for.

    `None` if it is that narrow, or if nobody asked.
    """
    target = records[-1].target
    found = log_speedups(base, arm, records) if target is not None else []
    if target is None or not found:
        return None
    needed = replicates_needed(moderated(found, between_sd_of(records, base, arm)), target)
    return needed if needed > len(found) else None


def between_sd_of(records: Sequence[Record], base: str, arm: str) -> BetweenProcessSd:
    """Return what is to be assumed of how far replicates differ that compare two arms of a case.

    Of two of which neither is the baseline it is the larger of theirs. That is what it is if eager
    differs as far as they do; their own replicates count besides.
    """
    if any(record.waited for record in records) or are_isolated(records):
        return SEPARATE_SD
    return widest(known_of(records[0], each) for each in (base, arm) if each != BASELINE)


def known_of(record: Record, arm: str) -> BetweenProcessSd:
    """Return what a record says of how far processes differ that compare an arm with eager."""
    return record.between_sds.get(arm, record.between_sd)


def is_assumed(between_sd: BetweenProcessSd) -> bool:
    """Return whether how far processes differ is a guess, as nothing was known."""
    return between_sd in (ASSUMED_SD, FORMERLY_ASSUMED)


def of_pair(record: Record, pair: tuple[str, str]) -> Record:
    """Leave of a record what it would hold had only these two arms been timed."""
    own = [each for each in record.measurements if each.arm in pair]
    blocks = [set(each.blocks) for each in own if each.metric == metrics.LATENCY.name]
    shared = set[int].intersection(*blocks) if len(blocks) == len(pair) else set[int]()
    cut = [
        _keep(each, [block in shared for block in each.blocks])
        if each.metric in _BY_BLOCK
        else each
        for each in own
    ]
    return msgspec.structs.replace(
        record,
        measurements=tuple(each for each in cut if each.samples),
        disturbed_blocks=tuple(sorted(shared.intersection(record.disturbed_blocks))),
    )


_BY_BLOCK = frozenset({metrics.LATENCY.name, *(each.name for each in metrics.COUNTED)})


def latencies(records: Sequence[Record], arm: str) -> list[Measurement]:
    """Return an arm's latencies: those in processes of its own, where arms disturb each other."""
    own = isolated_latencies if are_isolated(records) else latencies_in_blocks
    return [each for record in records for each in own(record, arm)]


def isolated_latencies(record: Record, arm: str) -> list[Measurement]:
    """Return an arm's latencies in processes of its own."""
    return find([record], metrics.LATENCY_ISOLATED.name, arm)


def latencies_in_blocks(record: Record, arm: str) -> list[Measurement]:
    """Return an arm's latencies beside others, without blocks that were disturbed."""
    found = find([record], metrics.LATENCY.name, arm)
    return [undisturbed(each, frozenset(record.disturbed_blocks)) for each in found]


def undisturbed(measurement: Measurement, blocks: frozenset[int]) -> Measurement:
    """Leave out the samples of blocks that were disturbed, where others are left."""
    if not blocks:
        return measurement
    kept = [block not in blocks for block in measurement.blocks]
    return _keep(measurement, kept) if any(kept) else measurement


def _keep(measurement: Measurement, kept: Sequence[bool]) -> Measurement:
    return msgspec.structs.replace(
        measurement,
        samples=tuple(itertools.compress(measurement.samples, kept)),
        blocks=tuple(itertools.compress(measurement.blocks, kept)),
    )


def _joined(runs: Sequence[Measurement]) -> Measurement:
    if len(runs) == 1:
        return runs[0]
    return msgspec.structs.replace(
        runs[0],
        samples=samples_of(runs),
        blocks=tuple(block for each in runs for block in each.blocks),
    )


def are_isolated(records: Sequence[Record]) -> bool:
    """Return whether arms disturb each other, and were timed in isolated runs instead."""
    return all(map(_has_isolated_runs, records)) and interfere(records)


def interfere(records: Iterable[Record]) -> bool:
    """Return whether arms disturb each other, as far as isolated runs tell, or calls alone."""
    return disturb_each_other(
        [shifts(each.measurements, each.disturbed_blocks) for each in records]
    )


def _has_isolated_runs(record: Record) -> bool:
    """Return whether every arm that was timed has all its isolated runs."""
    timed = {each.arm for each in record.measurements if each.metric == metrics.LATENCY.name}
    isolated = {
        each.arm for each in record.measurements if each.metric == metrics.LATENCY_ISOLATED.name
    }
    failed = {each.arm for each in record.absent if each.metric == metrics.LATENCY_ISOLATED.name}
    return bool(isolated) and timed <= isolated and not failed


def disturbed_share(records: Sequence[Record]) -> float:
    """Return the share of what is used of it that something else disturbed, of the worst replicate.

    Isolated runs that were disturbed tell nothing, neither for blocks nor against them.
    """
    isolated = max(
        (float(each.disturbed_isolated_runs) for each in records if _has_isolated_runs(each)),
        default=0.0,
    )
    if are_isolated(records):
        return isolated
    return max(isolated, *(disturbed_share_of(each, metrics.LATENCY.name) for each in records))


def disturbed_share_of(found: HasBlocks, metric: str) -> float:
    """Return the share of the blocks in which one metric was measured that were disturbed."""
    own = (each for each in found.measurements if each.metric == metric)
    blocks = {block for each in own for block in each.blocks}
    return len(blocks & set(found.disturbed_blocks)) / len(blocks) if blocks else 0.0


class HasBlocks(Protocol):
    """A record, or what a process has found."""

    @property
    def measurements(self) -> Sequence[Measurement]:
        """What was measured."""
        ...

    @property
    def disturbed_blocks(self) -> Collection[int]:
        """Blocks in which something else kept the machine busy."""
        ...


def is_disturbed(records: Sequence[Record]) -> bool:
    """Return whether something else kept the machine busy in too many blocks of a replicate."""
    return disturbed_share(records) > LONGEST_DISTURBANCE


def doubt(records: Sequence[Record]) -> str | None:
    """Return why speedups of a case can't be counted on, in a word; `None` if they can."""
    if is_disturbed(records):
        return "disturbed"
    return "interference" if interfere(records) and not are_isolated(records) else None


def compiled_cold(records: Iterable[Record]) -> bool:
    """Return whether the compile times of a case are those from empty caches.

    They are of all its arms if they are of one: where a replicate found caches empty, what an arm
    took from filled ones is other work.
    """
    return any(
        each.metric == metrics.COMPILE_TIME.name
        for record in records
        for each in record.measurements
    )


def find(records: Iterable[Record], metric: str, arm: str) -> list[Measurement]:
    """Return what was measured of one arm."""
    return [
        each
        for record in records
        for each in record.measurements
        if each.metric == metric and each.arm == arm
    ]


def samples_of(measurements: Iterable[Measurement]) -> tuple[float, ...]:
    """Return the samples of all, one after the other."""
    return tuple(sample for each in measurements for sample in each.samples)
