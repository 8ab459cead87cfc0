"""What was counted of a model, from its records. Pure; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.values.coverage import Coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Outcome, Record


@dataclass(frozen=True)
class CoverageSummary:
    """One model.

    Attributes:
        case: what was run.
        outcome: how that ended.
        coverage: what was counted; `None` unless it passed.
    """

    case: Case
    outcome: Outcome
    coverage: Coverage | None


def coverage_of(record: Record) -> Coverage | None:
    """Return what was counted; `None` where it did not come to that."""
    return msgspec.json.decode(record.found, type=Coverage | None)


def summarize(records: Sequence[Record]) -> CoverageSummary:
    """Summarize the one replicate of a case."""
    last = records[-1]
    return CoverageSummary(last.case, last.outcome, coverage_of(last))
