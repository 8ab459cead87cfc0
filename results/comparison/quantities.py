"""What is compared of an arm: how it is judged, and what is assumed of it. Pure; no torch."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dynamometer.results.statistics.significance import LATENCY_FLOOR, Mean, Replicate, moderated
from dynamometer.results.values.metrics import Better
from dynamometer.results.values.records import ASSUMED_SD, BetweenProcessSd

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Kind:
    """A quantity that has a value for each arm.

    Attributes:
        name: as the JSON has it.
        title: in words.
        better: which values are the better ones.
        floor: a change below this share is of no practical interest.
        assumed: how far processes differ of which nothing is known. Guesses; but for that of
            speedups they are only for those quantities whose replicates don't tell.
        form: how a value is written.
        words: what is said of an arm that has become worse, and better.
    """

    name: str
    title: str
    better: Better
    floor: float
    assumed: BetweenProcessSd
    form: str
    words: tuple[str, str]


SPEEDUP = Kind(
    "speedup", "speedup", Better.HIGHER, LATENCY_FLOOR, ASSUMED_SD, "{:.3f}x", ("slower", "faster")
)
COMPILE_TIME = Kind(
    "compile_time", "compile time", Better.LOWER, 0.10, BetweenProcessSd(sd_log=0.05, df=3.0),
    "{:.1f} s", ("compiles longer", "compiles sooner"),
)  # fmt: skip
MEMORY_RATIO = Kind(
    "memory_ratio", "memory ratio", Better.HIGHER, 0.05, BetweenProcessSd(sd_log=0.01, df=3.0),
    "{:.3f}x", ("needs more memory", "needs less memory"),
)  # fmt: skip
EAGER_LATENCY = Kind(
    "eager_latency", "latency of eager", Better.LOWER, 0.05,
    BetweenProcessSd(sd_log=0.03, df=3.0), "{:.4g} ms", ("slower", "faster"),
)  # fmt: skip
LATENCY = replace(EAGER_LATENCY, name="latency", title="latency")

JUDGED = (SPEEDUP, COMPILE_TIME, MEMORY_RATIO)
"""Each is a family of its own, as each is a table of its own."""

KINDS = (*JUDGED, EAGER_LATENCY, LATENCY)
"""All that an entry may have."""


@dataclass(frozen=True)
class Quantity:
    """What the replicates of a case say of one quantity of an arm.

    Attributes:
        kind: which.
        replicates: its logarithm, one of each replicate.
        between_sd: what is known of how far these differ.
        is_told: whether other cases of the run tell how far these differ, too.
        condition: what must be equal for two of them to be compared, such as the caches' state.
        related: logarithms of related measurements, one of a replicate, such as compile times from
            filled caches. If they differ further than is known of it, that is what counts.
    """

    kind: Kind
    replicates: tuple[Replicate, ...]
    between_sd: BetweenProcessSd
    is_told: bool = False
    condition: str | None = None
    related: tuple[Replicate, ...] = ()

    @property
    def value(self) -> float:
        """Its value over replicates, as it is shown."""
        return math.exp(statistics.fmean(each.value for each in self.replicates))

    @property
    def mean(self) -> Mean:
        """The mean of its logarithm, with the error of that."""
        return moderated(self.replicates, self.between_sd)


def of_values(
    kind: Kind,
    values: Sequence[float],
    condition: str | None = None,
    related: Sequence[float] = (),
) -> Quantity | None:
    """Return the quantity that some replicates say of themselves; `None` of none that is positive.

    Args:
        kind: of quantity.
        values: one of each replicate.
        condition: under which they were found.
        related: values of related measurements.
    """
    found = _logs(values)
    if not found:
        return None
    return Quantity(
        kind, found, kind.assumed, is_told=True, condition=condition, related=_logs(related)
    )


def _logs(values: Sequence[float]) -> tuple[Replicate, ...]:
    return tuple(Replicate(math.log(each)) for each in values if each > 0)


def difference(before: Mean, after: Mean) -> Mean:
    """Subtract two means of independent runs.

    Each error has both parts, between processes and within; degrees of freedom are those of
    Satterthwaite (1946), as in `significance.moderated`. Its `n` is how many replicates of each run
    would give the same error, were there as many of both.
    """
    error = math.hypot(before.error, after.error)
    parts = math.fsum(each.error**4 / each.df for each in (before, after))
    df = error**4 / parts if parts else min(before.df, after.df)
    single = math.fsum(each.n * each.error**2 for each in (before, after))
    n = round(single / error**2) if error else min(before.n, after.n)
    further = before.further_variance + after.further_variance
    return Mean(after.value - before.value, error, df, n, further)
