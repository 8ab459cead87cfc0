"""What studies share that compare arms with eager, timed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.common.studies.study import StudyOfCases
from dynamometer.results.statistics.stopping import end_of_measuring

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.results.reports.sinks import Rows
    from dynamometer.results.statistics.summary import CaseSummary
    from dynamometer.results.store.expected import Table
    from dynamometer.results.values.cases import Protocol
    from dynamometer.results.values.records import Ratio, Record, StopReason


class StudyOfArms(StudyOfCases):
    """Each arm beside eager: a line for the case, a row for each arm, a table of all of them.

    What it takes to summarize samples is imported when there are any.
    """

    has_expectations = True

    def stop_reason(self, records: Sequence[Record], protocol: Protocol) -> StopReason | None:
        """Stop when the speedups of all arms are known well enough."""
        return end_of_measuring(records, protocol, self._speedups(records))

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Render the speedup of each arm with its interval, or its error."""
        from dynamometer.results.reports import arm_lines

        return [arm_lines.case_line(self._summary(records))]

    def closing_lines(self, cases: Sequence[Sequence[Record]]) -> list[str]:
        """Render pass rates, means, compile times, memory, verdicts, and what to know of them."""
        from dynamometer.results.reports import arm_lines

        return arm_lines.closing_lines([self._summary(records) for records in cases])

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return a row for each arm."""
        from dynamometer.results.reports import arm_rows

        return arm_rows.rows(self._summary(records), compatible=compatible)

    def closing_rows(self, cases: Sequence[Sequence[Record]]) -> list[Rows]:
        """Return those of timed cases with verdicts, and those of backends against each other."""
        from dynamometer.results.reports import arm_rows

        return arm_rows.closing_rows([self._summary(records) for records in cases])

    def observed(self, cases: Sequence[Sequence[Record]]) -> Table:
        """Return what each arm came to."""
        from dynamometer.results.store import expected

        return expected.observed([self._summary(records) for records in cases])

    def _speedups(self, records: Sequence[Record]) -> Iterator[Ratio]:
        yield from (arm.speedup for arm in self._summary(records).arms if arm.speedup)

    def _summary(self, records: Sequence[Record]) -> CaseSummary:
        from dynamometer.results.statistics.summary import summarize_case

        return summarize_case(records, timed=self.is_timed)
