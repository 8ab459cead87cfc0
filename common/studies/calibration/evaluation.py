"""How often measuring is wrong, found from arms whose effect is known. Pure; no torch."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from scipy import stats

from dynamometer.common.studies.calibration.arms import OF_INDUCTOR, PAIRS, TAUGHT
from dynamometer.results.statistics.between_processes import (
    by_others,
    learnt,
    pair_scatter,
    with_between_sd,
)
from dynamometer.results.statistics.replicates import (
    doubt,
    is_disturbed,
    isolated_log_speedups,
    isolated_speedup,
    log_speedups,
    of_pair,
    speedup_over,
)
from dynamometer.results.statistics.significance import SIGNIFICANT_P
from dynamometer.results.statistics.stopping import is_precise
from dynamometer.results.statistics.summary import by_case
from dynamometer.results.values.metrics import LATENCY_ISOLATED
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dynamometer.results.values.cases import Protocol
    from dynamometer.results.values.records import BetweenProcessSd, Ratio, Record

NAIVE_LATENCY = "naive_latency"


def naive_metric(pair: tuple[str, str]) -> str:
    """Name the latencies of a pair that was measured the usual way."""
    return f"{NAIVE_LATENCY}/{pair[1]}"


def as_of_inductor(record: Record) -> Record:
    """Return a record as if its first Inductor were eager, and all else had not been timed."""
    names = dict(zip(OF_INDUCTOR, TAUGHT, strict=True))
    kept = of_pair(without_isolated_runs(record), OF_INDUCTOR)
    return msgspec.structs.replace(
        kept,
        case=msgspec.structs.replace(record.case, arms=TAUGHT),
        arms=tuple(
            msgspec.structs.replace(each, arm=names[each.arm])
            for each in record.arms
            if each.arm in names
        ),
        measurements=tuple(
            msgspec.structs.replace(each, arm=names[each.arm])
            for each in kept.measurements
            if each.arm in names
        ),
    )


def without_isolated_runs(record: Record) -> Record:
    """Leave out isolated runs, which a run of identical arms would not have."""
    kept = tuple(each for each in record.measurements if each.metric != LATENCY_ISOLATED.name)
    return msgspec.structs.replace(record, measurements=kept, disturbed_isolated_runs=False)


def as_if_unseen(record: Record) -> Record:
    """Return a record as it would be had Linux's counters shown nothing of a disturbance.

    As they show nothing of what other guests of a virtual machine's host do.
    """
    return msgspec.structs.replace(record, disturbed_blocks=(), disturbed_isolated_runs=False)


@dataclass(frozen=True)
class Series:
    """One result of one pair on one model.

    Attributes:
        model: which.
        pair: the arms.
        ratio: what was found.
        replicates: how many it took.
        measured_s: seconds of timing that these two arms took in them.
        within_target: whether it is known as well as was asked.
        is_disturbed: whether something else kept the machine busy.
        is_conclusive: whether a run would have concluded anything from it: that it was not, nor
            seemed the arms to disturb each other.
    """

    model: str
    pair: tuple[str, str]
    ratio: Ratio
    replicates: int
    measured_s: float
    within_target: bool
    is_disturbed: bool
    is_conclusive: bool

    @property
    def truth(self) -> float:
        """The speedup that is known."""
        return PAIRS[self.pair]

    def seconds_to(self, target: float) -> float:
        """Return how much timing would make half its interval this share: it goes by the square."""
        half_width = math.log(self.ratio.high / self.ratio.low) / 2
        return self.measured_s * (half_width / math.log1p(target)) ** 2

    @property
    def is_significant(self) -> bool:
        """Whether it is called different."""
        return self.ratio.p_value <= SIGNIFICANT_P

    @property
    def is_detected(self) -> bool:
        """Whether it is called different, in the direction that is known."""
        return self.is_significant and (self.ratio.value < 1) == (self.truth < 1)

    @property
    def is_covered(self) -> bool:
        """Whether the interval holds the truth."""
        return self.ratio.low <= self.truth <= self.ratio.high


@dataclass(frozen=True)
class NaiveTest:
    """One result of one pair on one model, got the usual way.

    Attributes:
        model: which.
        pair: the arms.
        value: ratio of median latencies.
        p_value: of an unpaired t test.
    """

    model: str
    pair: tuple[str, str]
    value: float
    p_value: float

    @property
    def is_significant(self) -> bool:
        """Whether it is called different."""
        return self.p_value <= SIGNIFICANT_P

    @property
    def is_detected(self) -> bool:
        """Whether it is called different, in the direction that is known."""
        return self.is_significant and (self.value < 1) == (PAIRS[self.pair] < 1)


@dataclass(frozen=True)
class Drift:
    """How far identical arms of one model differ, in processes that nothing disturbed.

    Attributes:
        model: which.
        pair: the arms.
        mean: of the log speedup over all processes.
        sd: of it between processes.
        t: the mean over its standard error.
        n: processes.
    """

    model: str
    pair: tuple[str, str]
    mean: float
    sd: float
    t: float
    n: int


def learnt_from_others(
    records: Iterable[Record], pair: tuple[str, str]
) -> dict[str, BetweenProcessSd]:
    """Learn for each model how far processes differ that compare two arms, from all but it."""
    taught = {own[0].case.model: pair_scatter(own, pair) for own in by_case(records)}
    return {
        model: learnt([each for other, each in taught.items() if each and other != model])
        for model in taught
    }


def series(
    records: Sequence[Record],
    protocol: Protocol,
    between_sd: BetweenProcessSd | None,
    *,
    alone: bool = False,
) -> list[Series]:
    """Cut the replicates of a calibration into results as a run would have got them.

    One after the other takes as many of the replicates that are left as the protocol stops at.

    Args:
        records: of the run; whatever didn't pass is left out.
        protocol: how often a run would measure.
        between_sd: assumed of every model when a run begins, to which its models add at its end, as
            in `between_processes.shared`; `None` for a machine that all other models have taught,
            of each pair.
        alone: whether each model is the only one of its run, so that nothing is added.
    """
    passed = _passed(records)
    runs: defaultdict[tuple[tuple[str, str], int], list[Sequence[Record]]] = defaultdict(list)
    for pair in PAIRS:
        learnt_of = {} if between_sd else learnt_from_others(passed, pair)
        ratio_of = partial(speedup_over, *pair)
        for measured in by_case(passed):
            known = between_sd or learnt_of[measured[0].case.model]
            of_two = [with_between_sd(of_pair(record, pair), known) for record in measured]
            for index, taken in enumerate(_cut(of_two, ratio_of, protocol)):
                runs[pair, index].append(taken)
    return [
        one
        for (pair, _), run in runs.items()
        for taken in (run if between_sd is None or alone else _at_the_end(run, pair, between_sd))
        if (one := _series(taken, pair, protocol))
    ]


def _at_the_end(
    run: Sequence[Sequence[Record]], pair: tuple[str, str], assumed: BetweenProcessSd
) -> list[Sequence[Record]]:
    """Have each case of a run judged by what the others have taught by then."""
    between_sds = by_others(assumed, [pair_scatter(taken, pair) for taken in run])
    return [
        [with_between_sd(record, between_sd) for record in taken]
        for taken, between_sd in zip(run, between_sds, strict=True)
    ]


def series_in_isolation(records: Iterable[Record], protocol: Protocol) -> list[Series]:
    """Cut isolated runs likewise; nothing if there are none."""
    passed = _passed(records)
    return [
        _isolated_series(taken, pair, protocol)
        for own in by_case(passed)
        for pair in PAIRS
        for taken in _cut(
            [each for each in own if isolated_log_speedups(*pair, [each])],
            partial(isolated_speedup, *pair),
            protocol,
        )
    ]


def _isolated_series(taken: Sequence[Record], pair: tuple[str, str], protocol: Protocol) -> Series:
    ratio = isolated_speedup(*pair, taken)
    disturbed = any(each.disturbed_isolated_runs for each in taken)
    return Series(
        model=taken[0].case.model,
        pair=pair,
        ratio=ratio,
        replicates=len(taken),
        measured_s=math.fsum(record.seconds.get("in_isolation", 0.0) for record in taken),
        within_target=is_precise(ratio, protocol.target),
        is_disturbed=disturbed,
        is_conclusive=not disturbed,
    )


def _series(taken: Sequence[Record], pair: tuple[str, str], protocol: Protocol) -> Series | None:
    ratio = speedup_over(*pair, taken)
    if ratio is None:
        return None
    seconds = [record.seconds.get("measure", 0.0) / len(PAIRS) for record in taken]
    return Series(
        model=taken[0].case.model,
        pair=pair,
        ratio=ratio,
        replicates=len(taken),
        measured_s=math.fsum(seconds),
        within_target=is_precise(ratio, protocol.target),
        is_disturbed=is_disturbed(taken),
        is_conclusive=doubt(taken) is None,
    )


def _cut(
    records: Sequence[Record],
    ratio_of: Callable[[Sequence[Record]], Ratio | None],
    protocol: Protocol,
) -> Iterator[Sequence[Record]]:
    # A result is begun only if it can be finished: to keep the narrow ones of those that can't
    # would choose among them.
    start, n = 0, protocol.replicates
    while start + protocol.most_replicates <= len(records):
        taken = records[start : start + n]
        ratio = ratio_of(taken)
        if n >= protocol.most_replicates or (ratio and is_precise(ratio, protocol.target)):
            yield taken
            start, n = start + n, protocol.replicates
        else:
            n += 1


def naive_tests(records: Iterable[Record]) -> list[NaiveTest]:
    """Judge what was measured the usual way by an unpaired t test of its samples."""
    found = []
    for record in records:
        for pair in PAIRS:
            samples = {
                each.arm: each.samples
                for each in record.measurements
                if each.metric == naive_metric(pair)
            }
            if samples.keys() >= set(pair):
                before, after = (samples[arm] for arm in pair)
                value = statistics.median(before) / statistics.median(after)
                p_value = float(stats.ttest_ind(before, after).pvalue)
                found.append(NaiveTest(record.case.model, pair, value, p_value))
    return found


def drifts(records: Iterable[Record]) -> list[Drift]:
    """Return of each model how far its identical arms differ from process to process."""
    passed = _passed(records)
    found = []
    for own in by_case(passed):
        for pair, truth in PAIRS.items():
            of_two = [of_pair(record, pair) for record in own]
            undisturbed = [each for each in of_two if not is_disturbed([each])]
            values = [each.value for each in log_speedups(*pair, undisturbed)]
            if truth == 1.0 and len(values) > 1:
                mean, sd = statistics.fmean(values), statistics.stdev(values)
                error = sd / math.sqrt(len(values))
                t = mean / error if error else 0.0
                found.append(Drift(own[0].case.model, pair, mean, sd, t, len(values)))
    return found


def _passed(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.outcome.status is Status.PASS]
