"""From records to what is reported: one arm of a case, one case, one suite."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.statistics import significance
from dynamometer.results.statistics.breakeven import Breakeven, breakeven
from dynamometer.results.statistics.memory import NOT_MEASURED, ArmMemory, compression, memory_of
from dynamometer.results.statistics.replicates import (
    are_isolated,
    compiled_cold,
    doubt,
    endings_of,
    find,
    interfere,
    is_disturbed,
    latencies,
    replicates_needed_over,
    samples_of,
    speedup_over,
)
from dynamometer.results.values import metrics
from dynamometer.results.values.cases import BASELINE, Case
from dynamometer.results.values.records import PASSED, Outcome, Ratio, Record, Status, StopReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dynamometer.results.statistics.memory import Compression
    from dynamometer.results.values.metrics import Metric
    from dynamometer.results.values.records import ArmResult, CaptureStats, Estimate

SYSTEM_TIME_SHARE = 0.05
"""Of an arm's latency: more than this spent in the operating system is worth a mark."""


@dataclass(frozen=True)
class ArmSummary:
    """What all replicates of a case say of one arm; `None` is what they don't.

    An arm that did not pass has no speedup, no time and no memory, whatever was measured of it: who
    reads a summary can't take for a result what is none.

    Attributes:
        name: of the arm.
        outcome: the first that was not a pass, its own before the baseline's, else a pass.
        capture: what Dynamo captured, from the first replicate; to check guards took the median.
        max_error: largest relative deviation from eager, of all replicates.
        checked_calls: how many calls were compared with eager's, at least, in a replicate.
        unchecked: what was not compared, or not closely, in any: each with its path and why.
        speedup: over the baseline.
        untimed: why an arm that passed has no speedup, where that is known.
        replicates_needed: how many would make its interval as narrow as was asked for; `None` if it
            is, or nobody asked.
        latency_s: median over replicates of the median sample.
        compile_times_s: one for each replicate that compiled from empty caches; if no arm of the
            case did, for each that found them filled.
        compiled_cold: which of the two it is; `None` without compile times.
        warm_compile_times_s: one for each replicate that found the caches filled.
        phases_s: what the first of them was spent in, where torch reports it.
        memory: what it needs, and what compiling leaves behind.
        steady: whether every replicate was steady before it was measured.
        system_time_share: system time as a share of its latency, at most, of all replicates.
        counted: what the operating system counted per call, by name of its metric.
    """

    name: str
    outcome: Outcome
    capture: CaptureStats | None
    max_error: float | None = None
    checked_calls: int = 0
    unchecked: tuple[str, ...] = ()
    speedup: Ratio | None = None
    untimed: str | None = None
    replicates_needed: int | None = None
    latency_s: float | None = None
    compile_times_s: tuple[float, ...] = ()
    compiled_cold: bool | None = None
    warm_compile_times_s: tuple[float, ...] = ()
    phases_s: dict[str, float] = field(default_factory=dict)
    memory: ArmMemory = NOT_MEASURED
    steady: bool | None = None
    system_time_share: float | None = None
    counted: Mapping[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether it computed what eager does, in every replicate."""
        return self.outcome.status is Status.PASS

    @property
    def compile_s(self) -> float | None:
        """Median of its compile times."""
        return _median(self.compile_times_s)

    @property
    def warm_compile_s(self) -> float | None:
        """Median of its compile times from filled caches."""
        return _median(self.warm_compile_times_s)

    @property
    def system_time_shows(self) -> bool:
        """Whether system time, for page faults above all, is a visible share of its latency."""
        return self.system_time_share is not None and self.system_time_share > SYSTEM_TIME_SHARE


@dataclass(frozen=True)
class CaseSummary:
    """A case over its replicates.

    Attributes:
        case: what was run.
        records: one for each replicate that was.
        baseline: the arm the others are compared with.
        arms: the others, in the case's order.
        is_timed: whether latencies were asked for, rather than correctness alone.
    """

    case: Case
    records: tuple[Record, ...]
    baseline: ArmSummary
    arms: tuple[ArmSummary, ...]
    is_timed: bool = True

    @property
    def outcome(self) -> Outcome:
        """The first that was not a pass, else a pass."""
        return ending_of(self.records)

    @property
    def stopped(self) -> StopReason | None:
        """Why it had no further replicate; `None` if it was interrupted."""
        return next((record.stopped for record in self.records if record.stopped), None)

    @property
    def is_isolated(self) -> bool:
        """Whether arms disturbed each other, so that latencies are those in their own processes."""
        return are_isolated(self.records)

    @property
    def interferes(self) -> bool:
        """Whether arms disturbed each other where that could not be helped."""
        return interfere(self.records) and not self.is_isolated

    @property
    def is_disturbed(self) -> bool:
        """Whether something else kept the machine busy during too many blocks of a replicate."""
        return is_disturbed(self.records)

    @property
    def doubt(self) -> str | None:
        """Why its speedups can't be counted on, in a word; `None` if they can."""
        return doubt(self.records)

    @property
    def is_conclusive(self) -> bool:
        """Whether its speedups may be counted on: nothing disturbed them."""
        return self.doubt is None

    def breakeven(self, arm: ArmSummary) -> Breakeven | None:
        """Return after how many calls compiling an arm has paid.

        From empty caches; `None` unless all was measured, and its speedup may be counted on.
        """
        return self._breakeven(arm, arm.compile_s if arm.compiled_cold else None)

    def warm_breakeven(self, arm: ArmSummary) -> Breakeven | None:
        """Return the same of compiling from filled caches, as in a program's later processes."""
        return self._breakeven(arm, arm.warm_compile_s)

    def _breakeven(self, arm: ArmSummary, compile_s: float | None) -> Breakeven | None:
        if compile_s is None or self.baseline.latency_s is None or arm.speedup is None:
            return None
        if not self.is_conclusive:
            return None
        return breakeven(compile_s, self.baseline.latency_s, arm.speedup)

    def compression(self, arm: ArmSummary) -> Compression:
        """Compare what an arm needs of memory with what the baseline does."""
        return compression(self.baseline.memory, arm.memory)


@dataclass(frozen=True)
class SuiteSummary:
    """One arm over all cases of a run.

    Attributes:
        name: of the arm.
        passed: cases it passed.
        counted: cases that are in its pass rate.
        speedups: of the cases it passed, but for those that were disturbed.
        compile_times_s: of the same cases, where measured; of each case the median.
        compressions: how their memory compares with the baseline's, or why that is not known.
        max_error: largest relative deviation from eager of the cases it passed.
    """

    name: str
    passed: int
    counted: int
    speedups: tuple[Ratio, ...]
    compile_times_s: tuple[float, ...]
    compressions: tuple[Compression, ...]
    max_error: float | None

    @property
    def compression_ratios(self) -> tuple[float, ...]:
        """Those that are known."""
        return tuple(each.ratio for each in self.compressions if each.ratio is not None)

    @property
    def geomean(self) -> Estimate | None:
        """Geometric mean of the speedups."""
        return significance.geometric_mean(self.speedups)

    @property
    def mean(self) -> float | None:
        """Arithmetic mean of the speedups."""
        return statistics.fmean(each.value for each in self.speedups) if self.speedups else None


def summarize_case(records: Sequence[Record], *, timed: bool = True) -> CaseSummary:
    """Summarize the replicates of one case.

    Args:
        records: of the case; at least one.
        timed: whether latencies were asked for, rather than correctness alone.

    Raises:
        ValueError: there is none, or they are of several cases.
    """
    cases = {record.case.id for record in records}
    if len(cases) != 1:
        msg = f"expected the records of one case, got {len(cases)}"
        raise ValueError(msg)
    case = records[0].case
    baseline = _summarize_arm(case.arms[0], records)
    arms = tuple(_summarize_arm(arm, records, baseline.outcome) for arm in case.arms[1:])
    return CaseSummary(case, tuple(records), baseline, arms, is_timed=timed)


def summarize_cases(records: Iterable[Record]) -> list[CaseSummary]:
    """Summarize the cases that some records are of, in order of first appearance."""
    return [summarize_case(group) for group in by_case(records)]


def ending_of(records: Sequence[Record]) -> Outcome:
    """Return how a case ended as a whole: the first that was not a pass, or a pass."""
    return _first_failure([each.outcome for each in records])


def is_counted(outcome: Outcome) -> bool:
    """Return whether what ended so is in a pass rate: not what was skipped, nor our own faults."""
    return outcome.status not in {Status.SKIP, Status.INFRA}


def by_case(records: Iterable[Record]) -> list[list[Record]]:
    """Group records by case, in order of first appearance."""
    groups: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[record.case.id].append(record)
    return list(groups.values())


def summarize_suite(cases: Sequence[CaseSummary]) -> list[SuiteSummary]:
    """Summarize every arm over all cases that have it."""
    names = dict.fromkeys(arm.name for case in cases for arm in case.arms)
    return [_summarize_over_cases(name, cases) for name in names]


def _summarize_over_cases(name: str, cases: Sequence[CaseSummary]) -> SuiteSummary:
    pairs = [(case, arm) for case in cases for arm in case.arms if arm.name == name]
    passed = [(case, arm) for case, arm in pairs if arm.passed]
    undisturbed = [(case, arm) for case, arm in passed if case.is_conclusive]
    errors = [arm.max_error for _, arm in passed if arm.max_error is not None]
    return SuiteSummary(
        name=name,
        passed=len(passed),
        counted=sum(is_counted(arm.outcome) for _, arm in pairs),
        speedups=tuple(arm.speedup for _, arm in undisturbed if arm.speedup),
        compile_times_s=tuple(arm.compile_s for _, arm in undisturbed if arm.compile_s is not None),
        compressions=tuple(case.compression(arm) for case, arm in undisturbed if case.is_timed),
        max_error=max(errors, default=None),
    )


def _summarize_arm(name: str, records: Sequence[Record], baseline: Outcome = PASSED) -> ArmSummary:
    """Summarize an arm; one whose baseline did not pass has nothing to be compared with."""
    results = [result for record in records for result in record.arms if result.arm == name]
    outcome = _first_failure([*endings_of(name, records), baseline])
    found = ArmSummary(
        name=name,
        outcome=outcome,
        capture=next((_untimed(each.capture) for each in results if each.capture), None),
    )
    return _with_performance(found, results, records) if found.passed else found


def _with_performance(
    found: ArmSummary, results: Sequence[ArmResult], records: Sequence[Record]
) -> ArmSummary:
    """Add what was measured of an arm that passed: nobody else adds any of it to a summary."""
    name = found.name
    errors = [result.max_error for result in results if result.max_error is not None]
    steady = [result.steady for result in results if result.steady is not None]
    warm = samples_of(find(records, metrics.COMPILE_TIME_WARM.name, name))
    is_cold = compiled_cold(records)
    compiled = samples_of(find(records, metrics.COMPILE_TIME.name, name)) if is_cold else warm
    is_baseline = name == BASELINE
    speedup = None if is_baseline else speedup_over(BASELINE, name, records)
    return replace(
        found,
        capture=found.capture and _timed(found.capture, results),
        max_error=max(errors, default=None),
        checked_calls=min((result.checked_calls for result in results), default=0),
        unchecked=tuple(dict.fromkeys(each for result in results for each in result.unchecked)),
        speedup=speedup,
        untimed=None if speedup else _why_untimed(name, records),
        replicates_needed=None if is_baseline else replicates_needed_over(BASELINE, name, records),
        latency_s=metrics.LATENCY.value(latencies(records, name)),
        compile_times_s=compiled,
        compiled_cold=is_cold if compiled else None,
        warm_compile_times_s=warm,
        phases_s=_values(metrics.COMPILE_PHASES, name, records) if compiled else {},
        memory=memory_of(name, records),
        steady=all(steady) if steady else None,
        system_time_share=_system_time_share(name, records),
        counted=_values({each.name: each for each in metrics.COUNTED}, name, records),
    )


def _untimed(capture: CaptureStats) -> CaptureStats:
    """Leave of what was captured the counts, which hold whether or not an arm is right."""
    return msgspec.structs.replace(capture, guards_s=None)


def _timed(capture: CaptureStats, results: Sequence[ArmResult]) -> CaptureStats:
    seen = [each.capture.guards_s for each in results if each.capture]
    median = _median([each for each in seen if each is not None])
    return msgspec.structs.replace(capture, guards_s=median)


def _system_time_share(name: str, records: Sequence[Record]) -> float | None:
    """Return the largest share of latency that is system time; of several threads it may be over 1.

    Of means, as system time goes by ticks and most bursts may show none.
    """
    shares = [
        statistics.fmean(system.samples) / statistics.fmean(latency.samples)
        for record in records
        for system in find([record], metrics.SYSTEM_TIME.name, name)
        for latency in find([record], metrics.LATENCY.name, name)
    ]
    return max(shares, default=None)


def _values(wanted: Mapping[str, Metric], name: str, records: Sequence[Record]) -> dict[str, float]:
    """Return the values of an arm, by what its metrics are called; without those not measured."""
    found = {key: metric.value(find(records, metric.name, name)) for key, metric in wanted.items()}
    return {key: value for key, value in found.items() if value is not None}


def _why_untimed(name: str, records: Sequence[Record]) -> str | None:
    return next(
        (
            each.reason
            for record in records
            for each in record.absent
            if each.metric == metrics.LATENCY.name and each.arm in {name, BASELINE}
        ),
        None,
    )


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _first_failure(outcomes: list[Outcome]) -> Outcome:
    passed = Outcome(status=Status.PASS)
    return next((each for each in outcomes if each.status is not Status.PASS), passed)
