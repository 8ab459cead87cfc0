"""What text and Markdown say alike of a comparison: cells of the table, lines, headings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.values.comparison import Change

if TYPE_CHECKING:
    from dynamometer.results.values.comparison import (
        Cell,
        Column,
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

MOST_UNCLEAR = 8
"""Named; the JSON has them all."""

_USUAL = (
    Change.NEWLY_FAILING, Change.SLOWER, Change.NEWLY_PASSING, Change.FASTER, Change.GONE,
    Change.NEW,
)  # fmt: skip


def side(found: SideSummary) -> str:
    """Name a side."""
    created = f" of {found.created_at}" if found.created_at else ""
    arm = f", arm {found.arm}" if found.arm else ""
    return f"{found.source}{created}{arm}"


def rows(table: Table) -> list[list[str]]:
    """Return the rows of the table, each a name and a cell for each column."""
    kinds = [
        ["Passrate", *(_passrate(each.passrate) for each in table.columns)],
        ["Speedup", *(_own(each.speedup, "{:.2f}x") for each in table.columns)],
        ["Comptime (s)", *(_own(each.compile_time, "{:.1f}") for each in table.columns)],
        ["Memory", *(_own(each.memory_ratio, "{:.2f}x") for each in table.columns)],
        [OF_BOTH, *("" for _ in table.columns)],
        ["Passrate", *(_passrate(each.common_passrate) for each in table.columns)],
        ["Speedup", *(_common(each.common_speedup, "{:.3f}x") for each in table.columns)],
        ["Comptime (s)", *(_common(each.common_compile_time, "{:.1f}") for each in table.columns)],
        ["Memory", *(_common(each.common_memory_ratio, "{:.3f}x") for each in table.columns)],
    ]
    return [each for each in kinds if each[0] == OF_BOTH or set(each[1:]) != {"-"}]


def headers(table: Table) -> list[str]:
    """Return what stands above them."""
    return ["", *(_name(each) for each in table.columns)]


def _name(column: Column) -> str:
    return column.name


def _passrate(shares: tuple[Share, Share]) -> str:
    return " -> ".join(
        f"{each.passed / each.counted:.0%}, {each.passed}/{each.counted}" if each.counted else "-"
        for each in shares
    )


def _own(cell: Cell, form: str) -> str:
    values = [(cell.before, cell.n_before), (cell.after, cell.n_after)]
    if not (cell.n_before or cell.n_after):
        return "-"
    texts = ["-" if value is None else form.format(value) for value, _ in values]
    counts = f"{cell.n_before}" if cell.n_before == cell.n_after else (
        f"{cell.n_before} -> {cell.n_after}"
    )  # fmt: skip
    return f"{' -> '.join(texts)} (n={counts})"


def _common(cell: Cell, form: str) -> str:
    text = _own(cell, form)
    ratio = cell.ratio
    return f"{text}: {ratio.value:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else text


def drift_line(found: Drift) -> str:
    """Say how eager itself moved."""
    low, high = found.middle_half
    return (
        f"latency of eager: {found.ratio:.3f}x in the median of {found.n} cases, the middle half"
        f" {low:.3f}x to {high:.3f}x"
    )


def count_line(found: Count) -> str:
    """Say what judging one metric came to."""
    return (
        f"{found.metric.replace('_', ' ')}: {found.judged} judged, {found.worse} worse,"
        f" {found.better} better, {found.equivalent} equivalent, {found.unclear} unclear"
    )


def subject(found: Finding) -> str:
    """Name the arm of a case."""
    suite = f"{found.suite}/" if found.suite else ""
    return " ".join(filter(None, (f"{suite}{found.model}", found.mode, found.arm)))


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
    absent = [str(each) for each in _USUAL if not comparison.of(each)]
    return f"nothing {', '.join(absent[:-1])}{' or ' * (len(absent) > 1)}{absent[-1]}" if (
        absent
    ) else None  # fmt: skip


def gate_line(found: Gate) -> str:
    """Say whether a condition of `--fail-on` is met."""
    return f"{found.condition}: {len(found.hits)} found" if found.hits else f"{found.condition}: no"
