"""A sink that somebody else has written: a line of JSON for each case, in a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.reports.sinks import Destination, Reporter
    from dynamometer.results.values.records import Record


class JsonLines:
    """Writes what a study says of each case."""

    def __init__(self, reporter: Reporter, destination: Destination) -> None:
        """Write nothing yet."""
        self._reporter = reporter
        self._path = destination.directory / "lines.jsonl"
        self._begun = False

    @property
    def paths(self) -> Sequence[Path]:
        """The file, once there is one."""
        return [self._path] if self._path.exists() else []

    def write(self, records: Sequence[Record]) -> None:
        """Add a line."""
        lines = self._reporter.lines(records)
        mode = "a" if self._begun else "w"  # a resumed run writes all of its cases again
        self._begun = True
        with self._path.open(mode) as file:
            file.write(json.dumps({"model": records[0].case.model, "lines": lines}) + "\n")

    def close(self) -> None:
        """Leave it as it is."""
