"""The study of `--find-batch-sizes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from dynamometer.common.interfaces.option import Exclusion, Flag, always
from dynamometer.common.interfaces.run_options import MEASURING_OPTIONS
from dynamometer.common.studies.study import Jobs, StudyOfCases
from dynamometer.results.reports.texts import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.values.cases import Case, Protocol
    from dynamometer.results.values.records import Outcome, Record, StopReason

MOST_SIZES = 27
"""A search goes from batch size 1 to 2 to the 26."""

FIND_BATCH_SIZES = Flag(
    ("--find-batch-sizes",), group="Measurement",
    help="Instead: double each model's batch until it fits no longer, or a step takes 10 s; eager"
    " alone. With -j N each search has an Nth of the memory.",
    again=always,
    excludes=Exclusion(
        MEASURING_OPTIONS, "--find-batch-sizes runs eager at sizes of its own"
    ),
)  # fmt: skip


class BatchSizes(StudyOfCases):
    """What is the largest batch a model runs at here? Replicate `k` is batch size 2 to the `k`."""

    modules: ClassVar = {
        "batch_sizes": "dynamometer.common.studies.batch_sizes.experiment:BatchSizesExperiment",
    }
    asked_by = FIND_BATCH_SIZES
    jobs = Jobs.AS_ASKED
    usual_replicates = (MOST_SIZES, MOST_SIZES)
    takes_turns = False
    varies_batch = True

    def workload(self, asked: Workload, request: Request) -> Workload:
        """Run eager alone."""
        del request
        return msgspec.structs.replace(asked, arms=())

    def announcement(self, cases: Sequence[Case]) -> str | None:
        """Return how far the search goes."""
        return f"{count_text(len(cases), 'model')}, up to {MOST_SIZES} batch sizes each"

    def replicate_name(self, replicate: int) -> str:
        """Name its batch size."""
        from dynamometer.common.studies.batch_sizes.summary import size_of

        return f"batch size {size_of(replicate)}"

    def stop_reason(self, records: Sequence[Record], protocol: Protocol) -> StopReason | None:
        """Stop at the end of the search."""
        from dynamometer.common.studies.batch_sizes.summary import is_over
        from dynamometer.results.values.records import StopReason

        if is_over(records):
            return StopReason.FOUND
        return StopReason.REPLICATES if len(records) >= protocol.most_replicates else None

    def tables(self) -> list[Table[Any]]:
        """Return those of its rows."""
        from dynamometer.common.studies.batch_sizes import report

        return [report.BATCH_SIZES]

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Render the largest batch, the fastest, and what ended the search."""
        from dynamometer.common.studies.batch_sizes import report, summary

        return [report.search_line(summary.summarize_search(records))]

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return one row."""
        from dynamometer.common.studies.batch_sizes import report, summary

        return [report.rows(summary.summarize_search(records), compatible=compatible)]

    def ending(self, records: Sequence[Record]) -> Outcome:
        """Return a pass if any batch ran: every search ends with one that doesn't.

        One that has not ended is no pass and no failure, whatever its last size came to.
        """
        from dynamometer.common.studies.batch_sizes.summary import summarize_search
        from dynamometer.results.values.records import PASSED

        found = summarize_search(records)
        if found.is_unfinished:
            return found.end
        return PASSED if found.largest is not None else super().ending(records)


STUDY = BatchSizes()
