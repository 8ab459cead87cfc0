"""A comparison as the page shows it. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.reports.comparison import parts
from dynamometer.results.reports.page.values import ShownCompared, ShownComparison

if TYPE_CHECKING:
    from dynamometer.results.values.comparison import Comparison


def shown_comparison(found: Comparison) -> ShownComparison:
    """Return what a comparison found, with its tables as text has them."""
    return ShownComparison(
        found=found,
        tables=tuple(
            ShownCompared(
                title=each.title,
                headers=tuple(parts.headers(each)),
                rows=tuple(map(tuple, parts.rows(each))),
            )
            for each in found.tables
        ),
        lines=(
            *map(parts.count_line, found.counts),
            *([parts.drift_line(found.drift)] if found.drift else []),
        ),
        nothing=parts.nothing(found),
    )
