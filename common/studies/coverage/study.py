"""The study of `--coverage`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from dynamometer.common.interfaces.option import Exclusion, Flag, always
from dynamometer.common.interfaces.run_options import MEASURING_OPTIONS
from dynamometer.common.interfaces.workload_options import (
    BATCH_SIZE,
    BATCH_SIZE_FILE,
    DYNAMIC,
    DYNAMIC_BATCH,
    OVERRIDE_OPTIONS,
)
from dynamometer.common.studies.study import Jobs, StudyOfFixedReplicates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.reports.sinks import OnPage
    from dynamometer.results.values.records import Record

_UNDERSTOOD = {*OVERRIDE_OPTIONS, BATCH_SIZE, BATCH_SIZE_FILE, DYNAMIC, DYNAMIC_BATCH}
COVERAGE = Flag(
    ("--coverage",), group="Measurement",
    help="Instead: what share of each model Dynamo captures, and where it doesn't.",
    again=always,
    excludes=Exclusion(
        tuple(each for each in MEASURING_OPTIONS if each not in _UNDERSTOOD),
        "--coverage counts what Dynamo captures, once, whatever the backend",
    ),
)  # fmt: skip


class Coverage(StudyOfFixedReplicates):
    """What share of a model does Dynamo capture, and where not? Nothing is timed."""

    modules: ClassVar = {
        "coverage": "dynamometer.common.studies.coverage.experiment:CoverageExperiment"
    }
    asked_by = COVERAGE
    jobs = Jobs.ALL_CORES

    def workload(self, asked: Workload, request: Request) -> Workload:
        """Compare nothing."""
        del request
        return msgspec.structs.replace(asked, arms=())

    def tables(self) -> list[Table[Any]]:
        """Return those of its rows."""
        from dynamometer.common.studies import not_captured
        from dynamometer.common.studies.coverage import rows

        return [rows.COVERAGE, not_captured.NOT_CAPTURED]

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Render graphs, and the shares of operators and time inside them."""
        from dynamometer.common.studies.coverage import report, summary

        return [report.line(summary.summarize(records))]

    def closing_lines(self, cases: Sequence[Sequence[Record]]) -> list[str]:
        """Render means, reasons, what to fix first, and what overrides changed."""
        from dynamometer.common.studies.coverage import report, summary

        return report.closing_lines([summary.summarize(records) for records in cases])

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return a row for the model, and one for each thing that is not captured."""
        from dynamometer.common.studies.coverage import rows, summary

        return rows.rows(summary.summarize(records), compatible=compatible)

    def on_page(self, cases: Sequence[Sequence[Record]]) -> OnPage:
        """Show its tables, what costs most of what is not captured first."""
        from dynamometer.common.studies.not_captured import NOT_CAPTURED
        from dynamometer.results.reports.page.parts import beside_lines, part_of_any

        part = part_of_any(self, cases, {NOT_CAPTURED.kind: "-not_captured_s"})
        return beside_lines(self, cases, part)

    def compared(self, records: Sequence[Record]) -> list[Entry]:
        """Compare how many operators are in graphs, and how many graph breaks there are."""
        from dynamometer.common.studies.coverage.summary import coverage_of
        from dynamometer.results.comparison.entries import of_outcome

        (entry,) = of_outcome(records, self.ending(records))
        seen = coverage_of(records[-1])
        if seen is None:
            return [entry]
        expectation = msgspec.structs.replace(
            entry.expectation,
            captured_ops=seen.captured_ops,
            graph_breaks=sum(each.times for each in seen.breaks),
        )
        return [replace(entry, expectation=expectation)]


STUDY = Coverage()
