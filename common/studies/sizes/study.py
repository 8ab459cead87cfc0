"""The study of `--sweep-sizes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Exclusion, Flag, always
from dynamometer.common.interfaces.run_options import CACHES, EXPECT, RIGOROUS
from dynamometer.common.interfaces.workload_options import (
    COMPILED_OPTIMIZER,
    DYNAMIC,
    DYNAMIC_BATCH,
    NOPYTHON,
    OVERRIDE_OPTIONS,
    WHOLE_MODEL,
)
from dynamometer.common.studies.study import StudyOfCases
from dynamometer.results.values.cases import DynamicDims

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.values.cases import Protocol
    from dynamometer.results.values.records import Ratio, Record, StopReason

SWEEP_SIZES = Flag(
    ("--sweep-sizes",), group="Measurement",
    help="Instead: each of five sizes by itself, compiled for all of them, against eager and"
    " against compiled for it alone; recompiles, symbolic guards, specialisations.",
    again=always,
    excludes=Exclusion(
        (
            *(flag for flag, _ in WHOLE_MODEL),
            *(*OVERRIDE_OPTIONS, CACHES, COMPILED_OPTIMIZER, EXPECT, NOPYTHON, RIGOROUS),
        ),
        "--sweep-sizes times one backend at each size by itself",
    ),
)  # fmt: skip


class Sizes(StudyOfCases):
    """How does what was compiled for several sizes compare, at each of them, with eager?"""

    modules: ClassVar = {"sizes": "dynamometer.common.studies.sizes.experiment:SizesExperiment"}
    asked_by = SWEEP_SIZES
    cost_factor = 7.0
    """A guess: there are five sizes, for each of which a third arm is compiled."""

    def workload(self, asked: Workload, request: Request) -> Workload:
        """Vary the sizes of one backend's inputs, which Dynamo is told of only if asked to."""
        if len(asked.arms) > 1:
            msg = f"--sweep-sizes times one backend; choose one of {', '.join(asked.arms)}"
            raise UsageError(msg)
        told = request[DYNAMIC] or request[DYNAMIC_BATCH]
        return msgspec.structs.replace(
            asked, dynamic=True, dynamic_dims=asked.dynamic_dims if told else DynamicDims.NONE
        )

    def stop_reason(self, records: Sequence[Record], protocol: Protocol) -> StopReason | None:
        """Stop when the speedup at every size is known well enough."""
        from dynamometer.results.statistics.stopping import end_of_measuring

        return end_of_measuring(records, protocol, _speedups(records))

    def tables(self) -> list[Table[Any]]:
        """Return those of its rows."""
        from dynamometer.common.studies.sizes import report

        return [report.SIZES]

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Render what varies, each size, and what was made a number where."""
        from dynamometer.common.studies.sizes import report

        return report.lines(report.summarize_sweep(records))

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return a row for each size; PyTorch has no such table."""
        from dynamometer.common.studies.sizes import report

        del compatible
        return [report.rows(report.summarize_sweep(records))]


def _speedups(records: Sequence[Record]) -> Iterator[Ratio]:
    from dynamometer.common.studies.sizes.report import summarize_sweep

    yield from (each.over_eager for each in summarize_sweep(records).sizes)


STUDY = Sizes()
