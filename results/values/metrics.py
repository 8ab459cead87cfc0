"""What is measured on each arm: names, units, and how samples of replicates become one value.

A metric that is counted by the operating system takes one entry in `COUNTED`: its counter is read
around every timed burst, and its samples, its value and its column follow from the entry.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dynamometer.results.values.records import Measurement

if TYPE_CHECKING:
    import resource
    from collections.abc import Callable, Iterable, Sequence

    Reduction = Callable[[Sequence[float]], float]


class Better(StrEnum):
    """Which values of a metric are the better ones."""

    LOWER = "lower"
    HIGHER = "higher"


def first(values: Sequence[float]) -> float:
    """Return the first of several values."""
    return values[0]


@dataclass(frozen=True)
class Metric:
    """One thing that is measured.

    Attributes:
        name: what records call it.
        unit: of its samples.
        doc: what it is, for its column.
        column: of the CSV that holds its value; `None` where it has none of its own.
        column_unit: of that column, where it isn't the samples' own.
        factor: of the column's unit over the samples' own.
        better: which values are the better ones; `None` where neither is.
        within: how the samples of a replicate become its value.
        over: how those of several replicates become one.
    """

    name: str
    unit: str
    doc: str
    column: str | None = None
    column_unit: str | None = None
    factor: float = 1.0
    better: Better | None = Better.LOWER
    within: Reduction = statistics.median
    over: Reduction = statistics.median

    def measured(
        self, arm: str, samples: Sequence[float], blocks: Sequence[int] = ()
    ) -> Measurement:
        """Return samples of it, as a record keeps them.

        Raises:
            ValueError: a sample is NaN or infinite, or `blocks` does not match `samples`.
        """
        return Measurement(
            metric=self.name, unit=self.unit, arm=arm, samples=tuple(samples), blocks=tuple(blocks)
        )

    def value(self, found: Iterable[Measurement]) -> float | None:
        """Return the value of an arm, or `None` without samples.

        Args:
            found: the arm's measurements of this metric, one for each replicate.
        """
        values = [self.within(each.samples) for each in found if each.samples]
        return self.over(values) if values else None


@dataclass(frozen=True, kw_only=True)
class Counted(Metric):
    """A metric that the operating system counts, sampled once in each timed burst, per call.

    Attributes:
        total: what the process has of it so far.
    """

    total: Callable[[resource.struct_rusage], float]
    within: Reduction = statistics.fmean


BATCH_SIZE = Metric("batch_size", "1", "Samples in a batch.", better=None)

LATENCY = Metric(
    "latency",
    "s",
    "Latency of one call, or with several sizes (`shapes`) of one of each.",
    column="abs_latency",
    column_unit="ms",
    factor=1e3,
)
LATENCY_ALONE = Metric("latency_alone", "s", "Latency, before any later arm was built.")
LATENCY_ISOLATED = Metric(
    "latency_isolated", "s", "Latency in a process of the arm's own; a block is a run of each."
)

COMPILE_TIME = Metric(
    "compile_time", "s", "Time to compile; from empty graph caches, unless `caches` says `warm`.",
    column="compilation_latency",
)  # fmt: skip
COMPILE_TIME_WARM = Metric(
    "compile_time_warm", "s", "Time to compile with what an earlier process left in the caches.",
    column="compile_warm",
)  # fmt: skip


def _phase(name: str, doc: str) -> Metric:
    """Return the metric of a part of the compile time: all parts are of the first replicate."""
    return Metric(f"{name}_time", "s", doc, column=name, within=first, over=first)


COMPILE_PHASES = {
    "dynamo": _phase("compile_dynamo", "Of the first replicate's compile time, Dynamo's."),
    "aot_autograd": _phase("compile_aot_autograd", "Of that time, AOTAutograd's."),
    "backend": _phase("compile_backend", "Of that time, the backend's."),
}
"""Parts of the compile time by phase, where torch reports them."""

LOADED_MEMORY = Metric("loaded_memory", "B", "Memory of the loaded model and its inputs.")
RESIDUE_MEMORY = Metric(
    "residue_memory", "B",
    "Memory that compiling and the first calls leave behind, beyond the loaded model.",
    column="residue_mem", column_unit="GB", factor=1e-9, within=max,
)  # fmt: skip
CALLS_MEMORY = Metric(
    "calls_memory", "B",
    "Peak memory of a call, beyond the loaded model and what is left behind.",
    column="calls_mem", column_unit="GB", factor=1e-9, within=max,
)  # fmt: skip
"""Before these two were told apart their sum was recorded, as `peak_memory`."""

SYSTEM_TIME = Counted(
    "system_time", "s/call", "Processor time in the operating system.",
    total=lambda usage: usage.ru_stime,
)  # fmt: skip
MINOR_FAULTS = Counted(
    "minor_faults", "1/call", "Page faults served without I/O.", column="minor_faults",
    total=lambda usage: usage.ru_minflt,
)  # fmt: skip

COUNTED = (MINOR_FAULTS, SYSTEM_TIME)
"""All that are read around each timed burst."""
