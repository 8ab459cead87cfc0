"""The study of `--record-graphs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click
import msgspec

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import Exclusion, Valued
from dynamometer.common.interfaces.run_options import MEASURING_OPTIONS
from dynamometer.common.interfaces.workload_options import (
    BATCH_SIZE,
    BATCH_SIZE_FILE,
    DYNAMIC,
    DYNAMIC_BATCH,
    NOPYTHON,
)
from dynamometer.common.studies.study import StudyOfFixedReplicates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.interfaces.option import Request
    from dynamometer.common.interfaces.workload import Workload
    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.values.cases import Case, RunPlan
    from dynamometer.results.values.records import Record


def _again(plan: RunPlan, _: Case) -> Path | None:
    return None if plan.corpus is None else Path(plan.corpus)


_UNDERSTOOD = {BATCH_SIZE, BATCH_SIZE_FILE, DYNAMIC, DYNAMIC_BATCH, NOPYTHON}
RECORD_GRAPHS = Valued[Path | None](
    ("--record-graphs",), reads=click.Path(file_okay=False, path_type=Path), default=None,
    metavar="DIR", group="Measurement",
    help="Instead: put the graphs that Dynamo captures of each model into this corpus.",
    again=_again,
    excludes=Exclusion(
        tuple(each for each in MEASURING_OPTIONS if each not in _UNDERSTOOD),
        "--record-graphs takes what Dynamo captures, once, whatever the backend",
    ),
)  # fmt: skip


class Graphs(StudyOfFixedReplicates):
    """Which graphs does a model consist of? Nothing is timed."""

    modules: ClassVar = {"graphs": "dynamometer.common.studies.graphs.experiment:GraphsExperiment"}
    asked_by = RECORD_GRAPHS

    def workload(self, asked: Workload, request: Request) -> Workload:
        """Compare nothing.

        Raises:
            UsageError: the folder is something else than a corpus.
        """
        from dynamometer.results.store.errors import StoreError
        from dynamometer.results.store.graphs.corpus import Corpus

        folder = self.corpus(request)
        try:
            if folder is not None:
                Corpus.made(folder)
        except StoreError as error:
            raise UsageError(str(error)) from error
        return msgspec.structs.replace(asked, arms=())

    def corpus(self, request: Request) -> Path | None:
        """Return the folder, from the root."""
        folder = request[RECORD_GRAPHS]
        return None if folder is None else folder.resolve()

    def tables(self) -> list[Table[Any]]:
        """Return those of its rows."""
        from dynamometer.common.studies.graphs import report

        return [report.GRAPHS]

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Render how many graphs there are, or why that is not known."""
        from dynamometer.common.studies.graphs import report

        return [report.line(report.summarize(records))]

    def closing_lines(self, cases: Sequence[Sequence[Record]]) -> list[str]:
        """Render how many graphs differ, and which are left out."""
        from dynamometer.common.studies.graphs import report

        return report.closing_lines([report.summarize(records) for records in cases])

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return a row for each graph; PyTorch has no such table."""
        from dynamometer.common.studies.graphs import report

        del compatible
        return report.rows(report.summarize(records))


STUDY = Graphs()
