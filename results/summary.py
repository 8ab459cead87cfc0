"""From records to what is reported: one arm of a case, one case, one suite."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results import inference, metrics
from dynamometer.results.breakeven import Breakeven, breakeven
from dynamometer.results.cases import BASELINE, TIMING, Case
from dynamometer.results.interference import LONGEST_DISTURBANCE
from dynamometer.results.records import Outcome, Ratio, Record, Status, StopReason
from dynamometer.results.replicates import (
    are_apart,
    disturbed_share,
    find,
    interfere,
    latencies,
    replicates_needed_over,
    speedup_over,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dynamometer.results.records import CaptureStats, Estimate, Measurement

SMALLEST_PEAK_BYTES = 2**20
"""Peaks below this are noise of the allocator; no ratio is formed of them."""

KERNEL_SHARE = 0.05
"""Of an arm's latency: more than this spent in the kernel is worth a mark."""


@dataclass(frozen=True)
class ArmSummary:
    """What all replicates of a case say of one arm; `None` is what they don't.

    Attributes:
        name: of the arm.
        outcome: the first that was not a pass, else a pass.
        speedup: over the baseline.
        replicates_needed: how many would make its interval as narrow as was asked for; `None` if it
            is, or nobody asked.
        latency_s: median over replicates of the median sample.
        compile_times_s: one for each replicate that compiled from empty caches; if no arm of the
            case did, for each that found them filled.
        compiled_cold: which of the two it is; `None` without compile times.
        warm_compile_times_s: one for each replicate that found the caches filled.
        phases_s: what the first of them was spent in, where torch reports it.
        peak_bytes: memory of the loaded model and of what its calls take at the peak.
        capture: what Dynamo captured, from the first replicate; to check guards took the median.
        steady: whether every replicate had settled before it was measured.
        max_error: largest relative deviation from eager, of all replicates.
        kernel_share: share of its latency that the kernel took, at most, of all replicates.
        minor_faults: page faults served without I/O, per call; median over replicates.
    """

    name: str
    outcome: Outcome
    speedup: Ratio | None
    replicates_needed: int | None
    latency_s: float | None
    compile_times_s: tuple[float, ...]
    compiled_cold: bool | None
    warm_compile_times_s: tuple[float, ...]
    phases_s: dict[str, float]
    peak_bytes: float | None
    capture: CaptureStats | None
    steady: bool | None
    max_error: float | None
    kernel_share: float | None
    minor_faults: float | None

    @property
    def compile_s(self) -> float | None:
        """Median of its compile times."""
        return _median(self.compile_times_s)

    @property
    def warm_compile_s(self) -> float | None:
        """Median of its compile times from filled caches."""
        return _median(self.warm_compile_times_s)

    @property
    def kernel_shows(self) -> bool:
        """Whether the kernel's work, page faults above all, is a visible share of its latency."""
        return self.kernel_share is not None and self.kernel_share > KERNEL_SHARE


@dataclass(frozen=True)
class CaseSummary:
    """A case over its replicates.

    Attributes:
        case: what was run.
        records: one for each replicate that was.
        baseline: the arm the others are compared with.
        arms: the others, in the case's order.
    """

    case: Case
    records: tuple[Record, ...]
    baseline: ArmSummary
    arms: tuple[ArmSummary, ...]

    @property
    def outcome(self) -> Outcome:
        """The first that was not a pass, else a pass."""
        return _first_failure([record.outcome for record in self.records])

    @property
    def stopped(self) -> StopReason | None:
        """Why it had no further replicate; `None` if it was interrupted."""
        return next((record.stopped for record in self.records if record.stopped), None)

    @property
    def is_apart(self) -> bool:
        """Whether arms disturbed each other, so that latencies are those in their own processes."""
        return are_apart(self.records)

    @property
    def interferes(self) -> bool:
        """Whether arms disturbed each other where that could not be helped."""
        return interfere(self.records) and not self.is_apart

    @property
    def is_disturbed(self) -> bool:
        """Whether something else kept the machine busy during too many blocks of a replicate."""
        return disturbed_share(self.records) > LONGEST_DISTURBANCE

    @property
    def is_conclusive(self) -> bool:
        """Whether its speedups may be counted on: nothing disturbed them."""
        return not self.is_disturbed and not self.interferes

    def breakeven(self, arm: ArmSummary) -> Breakeven | None:
        """Say after how many calls compiling an arm has paid; `None` unless all was measured."""
        return self._breakeven(arm, arm.compile_s)

    def warm_breakeven(self, arm: ArmSummary) -> Breakeven | None:
        """Say the same of compiling from filled caches, as in a program's later processes."""
        return self._breakeven(arm, arm.warm_compile_s)

    def _breakeven(self, arm: ArmSummary, compile_s: float | None) -> Breakeven | None:
        if compile_s is None or self.baseline.latency_s is None or arm.speedup is None:
            return None
        return breakeven(compile_s, self.baseline.latency_s, arm.speedup)

    @property
    def is_timed(self) -> bool:
        """Whether latencies were asked for, rather than correctness alone."""
        return not TIMING.isdisjoint(self.records[0].experiments)


@dataclass(frozen=True)
class SuiteSummary:
    """One arm over all cases of a run.

    Attributes:
        name: of the arm.
        passed: cases it passed.
        counted: cases that were not skipped.
        speedups: of the cases it passed, but for those that were disturbed.
        compile_times_s: likewise, where measured; of each case the median.
        compression_ratios: baseline's peak over the arm's, likewise.
        max_error: largest relative deviation from eager of the cases it passed.
    """

    name: str
    passed: int
    counted: int
    speedups: tuple[Ratio, ...]
    compile_times_s: tuple[float, ...]
    compression_ratios: tuple[float, ...]
    max_error: float | None

    @property
    def geomean(self) -> Estimate | None:
        """Geometric mean of the speedups."""
        return inference.geometric_mean(self.speedups)

    @property
    def mean(self) -> float | None:
        """Arithmetic mean of the speedups."""
        return statistics.fmean(each.value for each in self.speedups) if self.speedups else None


def summarize_case(records: Sequence[Record]) -> CaseSummary:
    """Summarize the replicates of one case.

    Raises:
        ValueError: there is none, or they are of several cases.
    """
    cases = {record.case.id for record in records}
    if len(cases) != 1:
        msg = f"expected the records of one case, got {len(cases)}"
        raise ValueError(msg)
    case = records[0].case
    arms = [_summarize_arm(arm, records) for arm in case.arms]
    return CaseSummary(case, tuple(records), arms[0], tuple(arms[1:]))


def summarize_cases(records: Iterable[Record]) -> list[CaseSummary]:
    """Group records by case, in order of first appearance."""
    groups: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[record.case.id].append(record)
    return [summarize_case(group) for group in groups.values()]


def summarize_suite(cases: Sequence[CaseSummary]) -> list[SuiteSummary]:
    """Summarize every arm over all cases that have it."""
    names = dict.fromkeys(arm.name for case in cases for arm in case.arms)
    return [_summarize_over_cases(name, cases) for name in names]


def compression_ratio(case: CaseSummary, arm: ArmSummary) -> float | None:
    """Divide the baseline's peak memory by the arm's; above 1 the arm needs less."""
    ours, theirs = arm.peak_bytes, case.baseline.peak_bytes
    if ours is None or theirs is None or min(ours, theirs) < SMALLEST_PEAK_BYTES:
        return None
    return theirs / ours


def _summarize_over_cases(name: str, cases: Sequence[CaseSummary]) -> SuiteSummary:
    pairs = [(case, arm) for case in cases for arm in case.arms if arm.name == name]
    skipped = [arm for _, arm in pairs if arm.outcome.status is Status.SKIP]
    passed = [(case, arm) for case, arm in pairs if arm.outcome.status is Status.PASS]
    ratios = [compression_ratio(case, arm) for case, arm in passed]
    errors = [arm.max_error for _, arm in passed if arm.max_error is not None]
    return SuiteSummary(
        name=name,
        passed=len(passed),
        counted=len(pairs) - len(skipped),
        speedups=tuple(arm.speedup for case, arm in passed if arm.speedup and case.is_conclusive),
        compile_times_s=tuple(arm.compile_s for _, arm in passed if arm.compile_s is not None),
        compression_ratios=tuple(ratio for ratio in ratios if ratio is not None),
        max_error=max(errors, default=None),
    )


def _summarize_arm(name: str, records: Sequence[Record]) -> ArmSummary:
    results = [result for record in records for result in record.arms if result.arm == name]
    # A record without results of its arms stands for them as a whole.
    whole = [record.outcome for record in records if not record.arms]
    settled = [result.steady for result in results if result.steady is not None]
    errors = [result.max_error for result in results if result.max_error is not None]
    faults = find(records, metrics.MINOR_FAULTS, name)
    warm = _samples(find(records, metrics.COMPILE_TIME_WARM, name))
    is_cold = any(
        each.metric == metrics.COMPILE_TIME for record in records for each in record.measurements
    )
    compiled = _samples(find(records, metrics.COMPILE_TIME, name)) if is_cold else warm
    return ArmSummary(
        name=name,
        outcome=_first_failure([*whole, *(result.outcome for result in results)]),
        speedup=None if name == BASELINE else speedup_over(BASELINE, name, records),
        replicates_needed=(
            None if name == BASELINE else replicates_needed_over(BASELINE, name, records)
        ),
        latency_s=_median_of_medians(latencies(records, name)),
        compile_times_s=compiled,
        compiled_cold=is_cold if compiled else None,
        warm_compile_times_s=warm,
        phases_s=_phases(name, records) if compiled else {},
        peak_bytes=_peak_bytes(name, records),
        capture=_capture([result.capture for result in results if result.capture]),
        steady=all(settled) if settled else None,
        max_error=max(errors) if errors else None,
        kernel_share=_kernel_share(name, records),
        minor_faults=_median([statistics.fmean(each.samples) for each in faults]),
    )


def _capture(replicates: Sequence[CaptureStats]) -> CaptureStats | None:
    if not replicates:
        return None
    timed = [each.guards_s for each in replicates if each.guards_s is not None]
    return msgspec.structs.replace(replicates[0], guards_s=_median(timed))


def _kernel_share(name: str, records: Sequence[Record]) -> float | None:
    """Give the largest share of latency in the kernel; of several threads it may be over 1.

    Of means, as kernel time goes by ticks and most visits may show none.
    """
    shares = [
        statistics.fmean(kernel.samples) / statistics.fmean(latency.samples)
        for record in records
        for kernel in find([record], metrics.KERNEL_TIME, name)
        for latency in find([record], metrics.LATENCY, name)
    ]
    return max(shares, default=None)


def _phases(name: str, records: Sequence[Record]) -> dict[str, float]:
    found = {
        phase: _samples(find(records, metric, name))
        for phase, metric in metrics.COMPILE_PHASES.items()
    }
    return {phase: samples[0] for phase, samples in found.items() if samples}


def _peak_bytes(name: str, records: Sequence[Record]) -> float | None:
    """Add what the model takes when loaded, as a GPU's allocator counts it too."""
    loaded = _first_sample(find(records, metrics.LOADED_MEMORY, name))
    beyond = _first_sample(find(records, metrics.PEAK_MEMORY, name))
    return None if loaded is None or beyond is None else loaded + beyond


def _median_of_medians(measurements: list[Measurement]) -> float | None:
    return _median([statistics.median(each.samples) for each in measurements if each.samples])


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _samples(measurements: list[Measurement]) -> tuple[float, ...]:
    return tuple(sample for each in measurements for sample in each.samples)


def _first_sample(measurements: list[Measurement]) -> float | None:
    return measurements[0].samples[0] if measurements else None


def _first_failure(outcomes: list[Outcome]) -> Outcome:
    passed = Outcome(status=Status.PASS)
    return next((each for each in outcomes if each.status is not Status.PASS), passed)
