"""The study of `--coverage`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from dynamometer.common.interfaces.option import (
    MEASURING_OPTIONS,
    OVERRIDE_OPTIONS,
    Exclusion,
    option,
)
from dynamometer.common.studies.study import StudyOfCases
from dynamometer.results.values.records import StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.studies.study import Options
    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.values.cases import Protocol
    from dynamometer.results.values.records import Record


class Coverage(StudyOfCases):
    """What share of a model does Dynamo capture, and where not? Nothing is timed."""

    modules: ClassVar = {
        "coverage": "dynamometer.common.studies.coverage.experiment:CoverageOfModels"
    }
    flag = "coverage"
    options = (
        option(
            "--coverage", is_flag=True, group="Measurement",
            help="Instead: what share of each model Dynamo captures, and where it doesn't.",
        ),
    )  # fmt: skip
    exclusions = (
        Exclusion(
            "coverage",
            "--coverage counts what Dynamo captures, once, whatever the backend",
            MEASURING_OPTIONS - OVERRIDE_OPTIONS - {"batch_size", "dynamic", "dynamic_batch"},
        ),
    )
    is_repeated = False

    def workload(self, asked: Workload, options: Options) -> Workload:
        """Compare nothing."""
        del options
        return replace(asked, arms=())

    def stop_reason(self, records: Sequence[Record], protocol: Protocol) -> StopReason | None:
        """Stop at the number of replicates, whatever became of them."""
        return StopReason.REPLICATES if len(records) >= protocol.replicates else None

    def tables(self) -> list[Table[Any]]:
        """Return those of its rows."""
        from dynamometer.common.studies.coverage import rows

        return [rows.COVERAGE, rows.NOT_CAPTURED]

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


STUDY = Coverage()
