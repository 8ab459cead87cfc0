"""What a comparison knows of one arm of a case, from records. Pure; no torch."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.comparison.quantities import (
    COMPILE_TIME,
    EAGER_LATENCY,
    LATENCY,
    MEMORY_RATIO,
    SPEEDUP,
    Quantity,
    of_values,
)
from dynamometer.results.statistics.memory import compression, memory_of
from dynamometer.results.statistics.replicates import (
    between_sd_of,
    compiled_cold,
    doubt,
    find,
    known_of,
    latencies,
    log_speedups,
    samples_of,
)
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.store.expected import Expectation, observed
from dynamometer.results.values import metrics
from dynamometer.results.values.cases import BASELINE, IDENTITY, OVERRIDDEN
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Outcome, Record

OWN = "own"
"""The batch size of a case whose model sets it itself."""


@dataclass(frozen=True)
class Entry:
    """One arm of a case, as one side of a comparison has it.

    Attributes:
        identity: of the case, by the names of `IDENTITY` that are known.
        arm: its name; of a study without arms, that of the study.
        outcome: how it ended.
        expectation: that, and what was captured.
        quantities: what is compared of an arm that passed, by name of its kind.
        doubt: why nothing is concluded from it; `None` if it may be.
        command: what repeats the case alone; `None` where that is not known.
        records: of the case, where there are any.
        apart: how its case is set, where a comparison has several of its model and mode.
    """

    identity: Mapping[str, str]
    arm: str
    outcome: Outcome
    expectation: Expectation
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    doubt: str | None = None
    command: str | None = None
    records: Sequence[Record] = ()
    apart: str = ""

    @property
    def passed(self) -> bool:
        """Whether it computed what eager does."""
        return self.outcome.status is Status.PASS

    @property
    def is_skipped(self) -> bool:
        """Whether it was left out."""
        return self.outcome.status is Status.SKIP

    @property
    def has_overrides(self) -> bool:
        """Whether Dynamo was told how to treat parts of the model, as its label says."""
        return self.identity["model"].endswith(OVERRIDDEN)

    @property
    def group(self) -> str:
        """Return the column of the table that it counts in, as PyTorch's weekly table has them."""
        is_static = self.identity.get("shapes", "static") == "static"
        return self.identity.get("suite", "") if is_static else "Dynamic"


def identity_of(case: Case) -> dict[str, str]:
    """Return what a case is known by."""
    settings = [*case.matmul_setting, *case.flags, *case.overrides.argv]
    batch_size = OWN if case.batch_size is None else str(case.batch_size)
    values = (
        case.suite, case.label, case.mode, case.device, case.dtype, case.shapes, case.scale,
        " ".join(settings), batch_size,
    )  # fmt: skip
    return dict(zip(IDENTITY, map(str, values), strict=True))


def of_outcome(records: Sequence[Record], outcome: Outcome) -> list[Entry]:
    """Return a case by how it ended, which is what any study can be compared by.

    Args:
        records: of the case; at least one.
        outcome: of all of them.
    """
    last = records[-1]
    entry = Entry(
        identity=identity_of(last.case),
        arm=last.study,
        outcome=outcome,
        expectation=Expectation(status=outcome.status),
        command=last.command,
        records=tuple(records),
    )
    return [entry]


def of_arms(records: Sequence[Record]) -> list[Entry]:
    """Return each arm of a case but the baseline, with all that a run measures of it."""
    bare = [msgspec.structs.replace(each, measurements=(), absent=()) for each in records]
    counted = summarize_case(bare, timed=False)
    expectations = observed([counted])
    uncertain = doubt(records) if counted.baseline.passed else None
    identity, own = identity_of(counted.case), tuple(records)
    return [
        Entry(
            identity=identity,
            arm=arm.name,
            outcome=arm.outcome,
            expectation=expectations[counted.case.id_without_arms, arm.name],
            quantities=_quantities(arm.name, records) if arm.passed else {},
            doubt=uncertain,
            command=records[-1].command,
            records=own,
        )
        for arm in counted.arms
    ]


def _quantities(arm: str, records: Sequence[Record]) -> dict[str, Quantity]:
    found = [
        _speedup(arm, records),
        _compile_time(arm, records),
        _memory_ratio(arm, records),
        of_values(EAGER_LATENCY, _latencies_ms(BASELINE, records)),
        of_values(LATENCY, _latencies_ms(arm, records)),
    ]
    return {each.kind.name: each for each in found if each is not None}


def _speedup(arm: str, records: Sequence[Record]) -> Quantity | None:
    replicates = log_speedups(BASELINE, arm, records)
    between_sd = between_sd_of(records, BASELINE, arm)
    if not replicates:
        return None
    is_told = between_sd == known_of(records[0], arm)  # not of arms in processes of their own
    return Quantity(SPEEDUP, tuple(replicates), between_sd, is_told=is_told)


def _compile_time(arm: str, records: Sequence[Record]) -> Quantity | None:
    """Return that from empty caches, or from filled ones where no arm found them empty."""
    cold, warm = (
        samples_of(find(records, metric.name, arm))
        for metric in (metrics.COMPILE_TIME, metrics.COMPILE_TIME_WARM)
    )
    if compiled_cold(records):
        return of_values(COMPILE_TIME, cold, "cold", related=warm)
    return of_values(COMPILE_TIME, warm, "warm")


def _memory_ratio(arm: str, records: Sequence[Record]) -> Quantity | None:
    found = compression(memory_of(BASELINE, records), memory_of(arm, records))
    return None if found.ratio is None else of_values(MEMORY_RATIO, [found.ratio])


def _latencies_ms(arm: str, records: Sequence[Record]) -> list[float]:
    return [1e3 * statistics.median(each.samples) for each in latencies(records, arm)]
