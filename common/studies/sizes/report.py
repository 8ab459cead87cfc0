"""What a sweep over sizes comes to: each against eager and compiled alone. Pure; no torch."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.reports.columns import Column, Table, ending, identity, of_part, scaled
from dynamometer.results.reports.guard_words import failed_in_words
from dynamometer.results.reports.texts import (
    count_text,
    in_source,
    name_columns,
    place,
    speedup_text,
)
from dynamometer.results.statistics.interference import LONGEST_DISTURBANCE
from dynamometer.results.statistics.replicates import between_sd_of, disturbed_share_of, undisturbed
from dynamometer.results.statistics.statistics import log_speedup, speedup
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.metrics import LATENCY, Better
from dynamometer.results.values.records import Status
from dynamometer.results.values.sizes import STATIC, SizeSweep, latency_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dynamometer.results.reports.columns import Rows
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import (
        BetweenProcessSd,
        Measurement,
        Outcome,
        Ratio,
        Record,
    )
    from dynamometer.results.values.sizes import Specialization


@dataclass(frozen=True)
class OneSize:
    """Latencies at one size.

    Attributes:
        size: what it is called.
        eager_s: seconds per call, median over all samples.
        compiled_s: likewise, of what was compiled for all sizes.
        static_s: likewise, of what was compiled for this size; `None` where that failed.
        over_eager: speedup of what was compiled for all sizes.
        over_static: its speedup over what was compiled for this size; below 1 what it costs to
            be right for all.
        disturbed: whether something else kept the machine busy for too much of a replicate.
    """

    size: str
    eager_s: float
    compiled_s: float
    static_s: float | None
    over_eager: Ratio
    over_static: Ratio | None
    disturbed: bool


@dataclass(frozen=True)
class SweepSummary:
    """One model's sweep.

    Attributes:
        case: what was run.
        outcome: how that ended.
        sweep: what Dynamo made of the sizes; `None` where it came to none.
        sizes: those that were timed.
        fallbacks: graphs the backend failed on, which run in eager.
        missing: why something was not timed, each reason once.
    """

    case: Case
    outcome: Outcome
    sweep: SizeSweep | None
    sizes: tuple[OneSize, ...]
    fallbacks: int
    missing: tuple[str, ...]


def summarize_sweep(records: Sequence[Record]) -> SweepSummary:
    """Summarize the replicates of one case; sizes that were not timed in all are left out."""
    sweeps = [_sweep_of(each) for each in records]
    failed = [
        each.outcome
        for each, sweep in zip(records, sweeps, strict=True)
        if sweep is None or each.outcome.status is not Status.PASS
    ]
    sweep = next(filter(None, sweeps), None)
    labels = sweep.sizes if sweep and not failed else ()
    arm = records[0].case.arms[-1]
    found = (_one_size(records, index, label, arm) for index, label in enumerate(labels))
    return SweepSummary(
        case=records[0].case,
        outcome=failed[0] if failed else records[0].outcome,
        sweep=sweep,
        sizes=tuple(each for each in found if each),
        fallbacks=max(
            (each.capture.fallbacks for record in records for each in record.arms if each.capture),
            default=0,
        ),
        missing=tuple(dict.fromkeys(each.reason for record in records for each in record.absent)),
    )


def _sweep_of(record: Record) -> SizeSweep | None:
    return msgspec.json.decode(record.found, type=SizeSweep | None)


def _one_size(records: Sequence[Record], index: int, label: str, arm: str) -> OneSize | None:
    replicates = [
        {
            each.arm: undisturbed(each, frozenset(record.disturbed_blocks))
            for each in record.measurements
            if each.metric == latency_at(index).name
        }
        for record in records
    ]
    if not all(found.keys() >= {BASELINE, arm} for found in replicates):
        return None
    alone = all(STATIC in found for found in replicates)
    known = between_sd_of(records, BASELINE, arm)
    return OneSize(
        size=label,
        eager_s=_median_s(replicates, BASELINE),
        compiled_s=_median_s(replicates, arm),
        static_s=_median_s(replicates, STATIC) if alone else None,
        over_eager=_ratio(replicates, BASELINE, arm, known),
        over_static=_ratio(replicates, STATIC, arm, known) if alone else None,
        disturbed=any(
            disturbed_share_of(record, latency_at(index).name) > LONGEST_DISTURBANCE
            for record in records
        ),
    )


def _median_s(replicates: Sequence[dict[str, Measurement]], arm: str) -> float:
    return statistics.median(sample for found in replicates for sample in found[arm].samples)


def _ratio(
    replicates: Sequence[dict[str, Measurement]], base: str, arm: str, between_sd: BetweenProcessSd
) -> Ratio:
    return speedup([log_speedup(found[base], found[arm]) for found in replicates], between_sd)


@dataclass(frozen=True)
class _Row:
    """What a row is made of: a size, or none where the model failed."""

    sweep: SweepSummary
    size: OneSize | None


def _sweep(row: _Row) -> SizeSweep | None:
    return row.sweep.sweep


def _size(row: _Row) -> OneSize | None:
    return row.size


_of_sweep, _of_size = of_part(_sweep), of_part(_size)


def _latency(name: str, doc: str, value: Callable[[OneSize], float | None]) -> Column[_Row]:
    of_size = _of_size(lambda size: scaled(value(size), LATENCY.factor))
    return Column(name, doc, of_size, "ms", Better.LOWER)


def _speedup(
    name: str, doc: str, value: Callable[[OneSize], Ratio | None]
) -> tuple[Column[_Row], ...]:
    of_ratio = of_part(value)

    def of(end: Callable[[Ratio], float]) -> Callable[[_Row], object]:
        return _of_size(of_ratio(end))

    return (
        Column(name, doc, of(lambda each: each.value), "x", Better.HIGHER),
        Column(f"{name}_low", "Lower end of its 95 % interval.", of(lambda each: each.low), "x"),
        Column(f"{name}_high", "Upper end.", of(lambda each: each.high), "x"),
    )


SIZES = Table[_Row](
    "sizes",
    "A row for each size of a model's inputs; one without figures for a model that failed.",
    (
        *identity(lambda row: row.sweep.case),
        Column("size", "What the size is called.", _of_size(lambda size: size.size)),
        _latency("eager_latency", "Latency of eager.", lambda size: size.eager_s),
        _latency("abs_latency", "Latency compiled for all sizes.", lambda size: size.compiled_s),
        _latency("static_latency", "Compiled for this size alone.", lambda size: size.static_s),
        *_speedup(
            "speedup", "Latency of eager over that compiled for all sizes.",
            lambda size: size.over_eager,
        ),
        *_speedup(
            "over_static", "Latency compiled for this size alone over that compiled for all.",
            lambda size: size.over_static,
        ),
        Column(
            "replicates", "Worker processes it is from.",
            _of_size(lambda size: size.over_eager.n),
        ),
        Column(
            "disturbed", "Whether something else kept the machine busy for most of the time.",
            _of_size(lambda size: size.disturbed),
        ),
        Column(
            "fallbacks", "Graphs the backend failed on, which ran in eager.",
            lambda row: row.sweep.fallbacks if row.sweep.sweep else None,
        ),
        Column(
            "recompiles", "Recompiles, of all sizes; the same in each row.",
            _of_sweep(lambda seen: len(seen.recompiles)),
        ),
        Column(
            "symbolic_guards", "Guards on sizes that may vary, of all sizes; the same in each row.",
            _of_sweep(lambda seen: len(seen.guards)),
        ),
        Column(
            "specializations",
            "Sizes that were to vary, and that the code makes a number; the same in each row.",
            _of_sweep(lambda seen: len(seen.specializations)),
        ),
        Column(
            "shapes", "Whether it was compiled for static shapes or dynamic ones.",
            lambda row: row.sweep.case.shapes,
        ),
        *ending(lambda row: row.sweep.outcome),
        Column("scale", "How far the model was shrunk.", lambda row: row.sweep.case.scale),
    ),
)  # fmt: skip


def rows(found: SweepSummary) -> Rows:
    """Return a row for each size; one without any values if it failed."""
    case = found.case
    sizes = [_Row(found, each) for each in found.sizes] or [_Row(found, None)]
    return SIZES.rows(case, case.arms[-1], sizes)


def lines(found: SweepSummary) -> list[str]:
    """Render one model: what varies, each size, and what was made a number where."""
    name = name_columns(found.case)
    seen = found.sweep
    if seen is None:
        return [f"{name} {found.outcome.line}"]
    has_passed = found.outcome.status is Status.PASS
    counts = (
        f"{seen.frames} compilations", f"{len(seen.recompiles)} recompiles",
        f"{len(seen.guards)} symbolic guards", f"{len(seen.specializations)} specialisations",
    )  # fmt: skip
    missing = len(seen.sizes) - len(found.sizes)
    screening = any(each.over_eager.n == 1 for each in found.sizes)
    remarks = [found.outcome.line] * (not has_passed)
    remarks += [f"{count_text(found.fallbacks, 'graph')} in eager"] * bool(found.fallbacks)
    remarks += [f"{count_text(missing, 'size')} left out"] * bool(missing and has_passed)
    remarks += ["screening: one replicate (-r 3 for more)"] * screening
    busy = any(each.disturbed for each in found.sizes)
    remarks += ["DISTURBED: something else kept the machine busy"] * busy
    return [
        f"{name} {'; '.join([', '.join(counts), *remarks])}",
        *(_size_line(each) for each in found.sizes),
        *(f"     not timed: {each}" for each in found.missing),
        *(
            f"     compiled again, because: {failed_in_words(each.guard)}"
            for each in seen.recompiles
        ),
        *(f"     symbolic: {each}" for each in seen.guards[:_SHOWN]),
        *[f"     and {len(seen.guards) - _SHOWN} more"] * (len(seen.guards) > _SHOWN),
        *(f"     a number for good: {_specialization(each)}" for each in seen.specializations),
    ]


_SHOWN = 5
"""Guards of a model; all of them are in its record."""


def _size_line(found: OneSize) -> str:
    return (
        f"     {found.size:<24} eager {1e3 * found.eager_s:8.2f} ms,"
        f" {speedup_text(found.over_eager)} over eager,"
        f" {speedup_text(found.over_static)} over compiled for it alone"
        f"{' DISTURBED' if found.disturbed else ''}"
    )


def _specialization(found: Specialization) -> str:
    text = f"{found.size} == {found.number}"
    if found.file is None or found.line is None:
        return text
    code = f": {found.code}" if found.code else ""
    return f"{text}, {place(found.file, found.line)} in {in_source(found.function or '')}{code}"
