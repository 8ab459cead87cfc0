"""What studies share that compare arms with eager, timed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dynamometer.common.studies.study import StudyOfCases

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.reports.sinks import OnPage
    from dynamometer.results.statistics.summary import CaseSummary
    from dynamometer.results.store.expected import Expectations
    from dynamometer.results.values.cases import Protocol
    from dynamometer.results.values.records import Ratio, Record, StopReason


class StudyOfArms(StudyOfCases):
    """Each arm beside eager: a line for the case, a row for each arm, a table of all of them.

    What it takes to summarize samples is imported when there are any.

    Attributes:
        told: the arms that a case's line shows, besides those that failed; `None` for all.
    """

    has_expectations = True
    told: ClassVar[Collection[str] | None] = None

    def stop_reason(self, records: Sequence[Record], protocol: Protocol) -> StopReason | None:
        """Stop when the speedups of all arms are known well enough."""
        from dynamometer.results.statistics.stopping import end_of_measuring

        return end_of_measuring(records, protocol, self._speedups(records))

    def tables(self) -> list[Table[Any]]:
        """Return those of its rows; `--csv-compat` writes that of accuracy in any case."""
        from dynamometer.results.reports.arms import columns, speedup_columns

        timed: list[Table[Any]] = [columns.PERFORMANCE, speedup_columns.PAIRS]
        return [*(timed if self.is_timed else ()), columns.ACCURACY]

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Render the speedup of each arm with its interval, or its error."""
        from dynamometer.results.reports.arms import lines

        return [lines.case_line(self._summary(records), self.told)]

    def closing_lines(self, cases: Sequence[Sequence[Record]]) -> list[str]:
        """Render pass rates, means, compile times, memory, verdicts, and what to know of them."""
        from dynamometer.results.reports.arms import lines
        from dynamometer.results.statistics.between_processes import shared

        found = [self._summary(records) for records in cases]
        return lines.closing_lines(found, shared(found))

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return a row for each arm."""
        from dynamometer.results.reports.arms import rows

        return rows.rows(self._summary(records), compatible=compatible)

    def closing_rows(self, cases: Sequence[Sequence[Record]]) -> list[Rows]:
        """Return those of timed cases with verdicts, and those of backends against each other."""
        from dynamometer.results.reports.arms import rows

        return rows.closing_rows([self._summary(records) for records in cases])

    def on_page(self, cases: Sequence[Sequence[Record]]) -> OnPage:
        """Show speedups with their verdicts, and what each suite comes to.

        Samples are summarized once for all of it.
        """
        from dynamometer.results.reports.arms import lines
        from dynamometer.results.reports.page.arms import part_of_arms
        from dynamometer.results.reports.sinks import OnPage
        from dynamometer.results.statistics.between_processes import shared

        found = [self._summary(records) for records in cases]
        known = shared(found)
        return OnPage(
            part=part_of_arms(known),
            lines=[[lines.case_line(each, self.told)] for each in found],
            closing_lines=lines.closing_lines(found, known) if found else [],
        )

    def observed(self, cases: Sequence[Sequence[Record]]) -> Expectations:
        """Return what each arm came to."""
        from dynamometer.results.store import expected

        return expected.observed([self._summary(records) for records in cases])

    def compared(self, records: Sequence[Record]) -> list[Entry]:
        """Compare how each arm ended, what was captured, and what was measured."""
        from dynamometer.results.comparison.entries import of_arms

        return of_arms(records)

    def _speedups(self, records: Sequence[Record]) -> Iterator[Ratio]:
        yield from (arm.speedup for arm in self._summary(records).arms if arm.speedup)

    def _summary(self, records: Sequence[Record]) -> CaseSummary:
        from dynamometer.results.statistics.summary import summarize_case

        return summarize_case(records, timed=self.is_timed)
