"""The study that comes before tuning: the graphs of each model, put into a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dynamometer.common.studies.study import StudyOfFixedReplicates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.reports.columns import Rows, Table
    from dynamometer.results.values.records import Record


class Recording(StudyOfFixedReplicates):
    """Which graphs is a model made of, and is it decided on? Nothing is timed."""

    modules: ClassVar = {
        "recording": "dynamometer.common.studies.recording.experiment:RecordingExperiment",
    }

    def tables(self) -> list[Table[Any]]:
        """Return none."""
        return []

    def lines(self, records: Sequence[Record]) -> list[str]:
        """Render how many graphs there are, or why that is not known."""
        from dynamometer.common.studies.recording.report import line

        return [line(records)]

    def rows(self, records: Sequence[Record], *, compatible: bool) -> list[Rows]:
        """Return none."""
        del records, compatible
        return []


STUDY = Recording()
