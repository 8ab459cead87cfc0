"""What text and Markdown say alike of a comparison: cells of the table, lines, headings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.comparison.quantities import SPEEDUP
from dynamometer.results.reports.texts import number_text, pass_rate, speedup_text
from dynamometer.results.values.comparison import Change

if TYPE_CHECKING:
    from dynamometer.results.values.comparison import (
        Cell,
        Comparison,
        Count,
        Drift,
        Finding,
        Gate,
        Share,
        SideSummary,
        Table,
    )

OF_BOTH = "models both sides have:"
"""The row between the figures of each side's own models and those of common ones."""

OF_EACH = "after / before, geomean"
"""The row of the geometric mean of each model's: that of arithmetic means may be on the other side
of 1."""

MOST_UNCLEAR = 8
"""Named; the JSON has them all."""

_USUAL = (
    Change.NEWLY_FAILING, Change.SLOWER, Change.NEWLY_PASSING, Change.FASTER, Change.GONE,
    Change.NEW,
)  # fmt: skip

_OF_SPEEDUPS = {Change.SLOWER, Change.FASTER}


def side(found: SideSummary) -> str:
    """Name a side."""
    created = f" of {found.created_at}" if found.created_at else ""
    arm = f", arm {found.arm}" if found.arm else ""
    return f"{found.source}{created}{arm}"


def no_condition(found: Comparison) -> str:
    """Say what it means that there is no further condition in which the sides differ."""
    if found.before.is_of_files or found.after.is_of_files:
        return "CSV files don't say what differs"
    return f"no {'other ' * found.is_forced}difference is known"


def rows(table: Table) -> list[list[str]]:
    """Return the rows of the table, each a name and a cell for each column."""
    columns = table.columns
    found = [
        ["Passrate", *(_passrate(each.passrate) for each in columns)],
        ["Speedup", *(_values(each.speedup, "{:.2f}x") for each in columns)],
        ["Comptime (s)", *(_values(each.compile_time, "{:.1f}") for each in columns)],
        ["Memory", *(_values(each.memory_ratio, "{:.2f}x") for each in columns)],
        [OF_BOTH, *("" for _ in columns)],
        ["Passrate", *(_passrate(each.common_passrate) for each in columns)],
    ]
    for name, form, cells in (
        ("Speedup", "{:.3f}x", [each.common_speedup for each in columns]),
        ("Comptime (s)", "{:.1f}", [each.common_compile_time for each in columns]),
        ("Memory", "{:.3f}x", [each.common_memory_ratio for each in columns]),
    ):
        found.append([name, *(_values(each, form) for each in cells)])
        found.append([OF_EACH, *(speedup_text(each.ratio) for each in cells)])
    return [each for each in found if each[0] == OF_BOTH or set(each[1:]) != {"-"}]


def headers(table: Table) -> list[str]:
    """Return what stands above them."""
    return ["", *(each.name for each in table.columns)]


def _passrate(shares: tuple[Share, Share]) -> str:
    return " -> ".join(pass_rate(each.passed, each.counted) for each in shares)


def _values(cell: Cell, form: str) -> str:
    values = [(cell.before, cell.n_before), (cell.after, cell.n_after)]
    if not (cell.n_before or cell.n_after):
        return "-"
    texts = [number_text(value, form) for value, _ in values]
    counts = f"{cell.n_before}" if cell.n_before == cell.n_after else (
        f"{cell.n_before} -> {cell.n_after}"
    )  # fmt: skip
    return f"{' -> '.join(texts)} (n={counts})"


def drift_line(found: Drift) -> str:
    """Say how eager itself moved."""
    low, high = found.middle_half
    return (
        f"latency of eager: {found.ratio:.3f}x in the median of {found.n} cases, the middle half"
        f" {low:.3f}x to {high:.3f}x"
    )


def count_line(found: Count) -> str:
    """Say what judging one metric came to."""
    text = (
        f"{found.metric.replace('_', ' ')}: {found.judged} judged, {found.worse} worse,"
        f" {found.better} better, {found.equivalent} equivalent, {found.unclear} unclear"
    )
    return f"{text}; of these {found.by_eager} by eager alone" if found.by_eager else text


def shown(comparison: Comparison) -> list[tuple[Change, list[Finding], int]]:
    """Return the lists in their order: each kind, what is shown of it, and how many more."""
    lists = []
    for change in Change:
        found = comparison.of(change)
        most = MOST_UNCLEAR if change is Change.UNCLEAR else len(found)
        if found:
            lists.append((change, found[:most], max(0, len(found) - most)))
    return lists


def nothing(comparison: Comparison) -> str | None:
    """Say of which of the usual kinds there is nothing."""
    is_judged = any(each.metric == SPEEDUP.name and each.judged for each in comparison.counts)
    asked = _USUAL if is_judged else [each for each in _USUAL if each not in _OF_SPEEDUPS]
    absent = [str(each) for each in asked if not comparison.of(each)]
    known = f"nothing {', '.join(absent[:-1])}{' or ' * (len(absent) > 1)}{absent[-1]}" if (
        absent
    ) else None  # fmt: skip
    return "; ".join(filter(None, [known, None if is_judged else "no speedup was judged"])) or None


def gate_line(found: Gate) -> str:
    """Say whether a condition of `--fail-on` is met, and what of it nobody knows."""
    met = f"{len(found.hits)} found" if found.hits else "no"
    metrics = ", ".join(each.replace("_", " ") for each in found.unjudged)
    unknown = f" (nothing could be judged by {metrics})" if metrics else ""
    return f"{found.condition}: {met}{unknown}"
