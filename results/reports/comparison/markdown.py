"""A comparison as Markdown, for a pull request or a step's summary. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.reports.comparison import parts
from dynamometer.results.reports.markdown_texts import markdown_code, markdown_text
from dynamometer.results.values.comparison import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dynamometer.results.values.comparison import Comparison, Finding, Gate

_MOST_CHARACTERS = 50_000
"""Of all lists together: GitHub takes comments of 65,536."""
_MOST_OF_GATES = 5_000
"""Likewise, of what met conditions: most of it is in the lists."""

_FOLDED = frozenset({Change.UNCLEAR, Change.GONE, Change.NEW, Change.NOT_COMPARED})


def markdown(found: Comparison) -> str:
    """Return it, what differs first."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Comparison) -> Iterator[str]:
    yield from ("### Comparison", "")
    yield f"- before: {markdown_text(parts.side(found.before))}"
    yield f"- after: {markdown_text(parts.side(found.after))}"
    yield ""
    if found.is_forced:
        yield from ("**FORCED**: these can't be compared:", "")
        yield from (
            markdown_text(f"- {each.name} {each.before} -> {each.after}: {each.why_not}")
            for each in found.conditions
            if each.why_not
        )
        yield ""
    no_condition = parts.no_condition(found)
    others = [[each.name, each.before, each.after] for each in found.conditions if not each.why_not]
    yield from (
        _table(["what differs", "before", "after"], others)
        if others
        else (f"{no_condition[0].upper()}{no_condition[1:]}.",)
    )
    yield ""
    yield from (f"> {markdown_text(note)}" for note in found.notes)
    for table in found.tables:
        yield from ("", f"#### {markdown_text(table.title)}", "")
        yield from _table(parts.headers(table), parts.rows(table))
    yield ""
    yield from (f"- {parts.count_line(each)}" for each in found.counts)
    if found.drift:
        yield f"- {parts.drift_line(found.drift)}"
    left = _MOST_CHARACTERS
    for change, findings, more in parts.shown(found):
        lines = _list(change, findings, more, left)
        left -= sum(map(len, lines))
        yield from lines
    absent = parts.nothing(found)
    if absent:
        yield from ("", f"{absent.capitalize()}.")
    if found.gates:
        yield from ("", "#### --fail-on", "")
    left = _MOST_OF_GATES
    for gate in found.gates:
        lines = _gate(gate, left)
        left -= sum(map(len, lines))
        yield from lines


def _gate(gate: Gate, left: int) -> list[str]:
    """Return a condition and what met it, as much of that as there is room for."""
    bold = "**" * bool(gate.hits)
    lines = [f"- {bold}{markdown_text(parts.gate_line(gate))}{bold}"]
    for index, each in enumerate(gate.hits):
        line = f"  - {markdown_text(each)}"
        left -= len(line)
        if left < 0:
            lines.append(f"  - and {len(gate.hits) - index} more; --json has all")
            break
        lines.append(line)
    return lines


def _list(change: Change, findings: Sequence[Finding], more: int, left: int) -> list[str]:
    """Return a list, as much of it as there is room for."""
    title = f"{change.capitalize()} ({len(findings) + more})"
    is_folded = change in _FOLDED
    head = ["<details>", f"<summary>{title}</summary>"] if is_folded else [f"#### {title}"]
    lines = []
    for index, each in enumerate(findings):
        line = f"- {markdown_text(each.subject)}: {markdown_text(each.text)}"
        if each.command:
            line += f"\n  {markdown_code(each.command)}"
        left -= len(line)
        if left < 0:
            more += len(findings) - index
            break
        lines.append(line)
    lines += [f"- and {more} more; --json has all"] * bool(more)
    return ["", *head, "", *lines, *["", "</details>"] * is_folded]


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = [markdown_text(each) for each in header]
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(markdown_text(each) for each in row)} |"
