"""The study of `--parity`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from dynamometer.common.interfaces.option import Exclusion, Flag, always
from dynamometer.common.interfaces.run_options import (
    CACHES,
    CALLS,
    CASE_BUDGET,
    REPLICATES,
    RIGOROUS,
)
from dynamometer.common.interfaces.workload_options import BACKENDS, COMPILED_OPTIMIZER, WHOLE_MODEL
from dynamometer.common.studies.study import Jobs
from dynamometer.common.studies.study_of_arms import StudyOfArms
from dynamometer.results.values.cases import BASELINE, NO_BACKEND

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.common.studies.parity.summary import ParitySummary
    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.reports.sinks import OnPage, Sink
    from dynamometer.results.values.cases import Case, Protocol
    from dynamometer.results.values.records import Record, StopReason

_WHOLE = tuple(flag for flag, _ in WHOLE_MODEL)
PARITY = Flag(
    ("--parity",), group="Measurement",
    help="Instead: does each model work compiled, in as many graphs as it takes and as one; what"
    " ends graphs, and which bugs there are. The backend is eager unless another is named.",
    again=always,
    excludes=Exclusion(
        (*_WHOLE, CACHES, CALLS, CASE_BUDGET, COMPILED_OPTIMIZER, REPLICATES, RIGOROUS),
        "--parity runs each model once, and times nothing",
    ),
)  # fmt: skip


class ParityOfModels(StudyOfArms):
    """Does each model compute compiled what it computes in eager, and is it one graph?"""

    modules: ClassVar = {"parity": "dynamometer.common.studies.parity.experiment:ParityExperiment"}
    asked_by = PARITY
    jobs = Jobs.ALL_CORES
    usual_threads = 1
    cost_factor = 0.1
    usual_timeout_s = 120.0

    def workload(self, asked: Workload, request: Request) -> Workload:
        """Take the backend that runs graphs as they are, unless another is named."""
        if request.is_set(BACKENDS):
            return asked
        return msgspec.structs.replace(asked, arms=(NO_BACKEND,))

    def sinks(self, directory: Path) -> Sequence[Sink]:
        """Return what writes a corpus of the classes that arguments were found for."""
        from dynamometer.common.studies.parity.corpus_files import CorpusFiles

        return (CorpusFiles(directory),)

    def stop_reason(self, records: Sequence[Record], protocol: Protocol) -> StopReason | None:
        """Stop after the first replicate, whatever became of it."""
        from dynamometer.results.values.records import StopReason

        del protocol
        return StopReason.REPLICATES if records else None

    def tables(self) -> list[Table[Any]]:
        """Return those of its rows."""
        from dynamometer.common.studies import not_captured
        from dynamometer.common.studies.parity import rows

        return [rows.PARITY, not_captured.NOT_CAPTURED]

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Render each arm: whether it works, in how many graphs, and as one."""
        from dynamometer.common.studies.parity import report

        return [report.line(each) for each in self._arms_of(records)]

    def closing_lines(self, cases: Sequence[Sequence[Record]]) -> list[str]:
        """Render what works of projects and tests, graphs, why they end, and bugs."""
        from dynamometer.common.studies.parity import report

        return report.closing_lines([each for records in cases for each in self._arms_of(records)])

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return a row for each arm, and one for each thing that is not captured."""
        from dynamometer.common.studies.parity import rows

        return [
            each
            for found in self._arms_of(records)
            for each in rows.rows(found, compatible=compatible)
        ]

    def closing_rows(self, cases: Sequence[Sequence[Record]]) -> list[Rows]:
        """Leave the rows of all cases as they were written."""
        del cases
        return []

    def on_page(self, cases: Sequence[Sequence[Record]]) -> OnPage:
        """Show how cases ended, what all come to, and its tables."""
        from dynamometer.common.studies.parity import page
        from dynamometer.results.reports.page.parts import beside_lines, part_of_any

        part = part_of_any(self, cases)
        found = [each for records in cases for each in self._arms_of(records)]
        part = msgspec.structs.replace(part, tables=(*page.tables(found), *part.tables))
        return beside_lines(self, cases, part)

    def failing(self, records: Sequence[Record]) -> Case | None:
        """Take the first arm that fails in default mode, else the first that does as one graph."""
        found = self._arms_of(records)
        for as_one in (False, True):
            for each in found:
                if (each.full_graph if as_one else each.outcome).is_fault:
                    return msgspec.structs.replace(
                        each.case,
                        arms=(BASELINE, each.result.arm),
                        nopython=as_one or each.case.nopython,
                    )
        return None

    def compared(self, records: Sequence[Record]) -> list[Entry]:
        """Compare how each arm ended in either mode."""
        from dynamometer.common.studies.parity import summary

        return summary.entries(records)

    def _arms_of(self, records: Sequence[Record]) -> list[ParitySummary]:
        from dynamometer.common.studies.parity import summary

        return summary.summarize(records[-1])


STUDY = ParityOfModels()
