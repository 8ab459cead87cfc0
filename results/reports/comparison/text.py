"""A comparison as plain text. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.reports.comparison import parts
from dynamometer.results.reports.texts import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.results.values.comparison import Comparison


def text(found: Comparison) -> str:
    """Return it, what differs first."""
    return "".join(f"{printable(line)}\n" for line in _lines(found))


def _lines(found: Comparison) -> Iterator[str]:
    from tabulate import tabulate  # which --json does without

    yield f"before: {parts.side(found.before)}"
    yield f"after:  {parts.side(found.after)}"
    yield ""
    yield from _conditions(found)
    for note in found.notes:
        yield f"note: {note}"
    for table in found.tables:
        yield from ("", table.title)
        yield from tabulate(
            parts.rows(table), headers=parts.headers(table), disable_numparse=True
        ).splitlines()
    yield ""
    yield from (parts.count_line(each) for each in found.counts)
    if found.drift:
        yield parts.drift_line(found.drift)
    yield from _findings(found)
    absent = parts.nothing(found)
    if absent:
        yield from ("", absent)
    if found.gates:
        yield from ("", "--fail-on:")
    for gate in found.gates:
        yield f"  {parts.gate_line(gate)}"
        yield from (f"    {each}" for each in gate.hits)


def _findings(found: Comparison) -> Iterator[str]:
    for change, findings, more in parts.shown(found):
        yield from ("", f"{change} ({len(findings) + more}):")
        for each in findings:
            yield f"  {each.subject}: {each.text}"
            if each.command:
                yield f"    $ {each.command}"
        if more:
            yield f"  and {more} more; --json has all"


def _conditions(found: Comparison) -> Iterator[str]:
    if found.is_forced:
        yield "FORCED: these can't be compared, and what follows says nothing about the compiler:"
        yield from (
            f"  {each.name} {each.before} -> {each.after}: {each.why_not}"
            for each in found.conditions
            if each.why_not
        )
        yield ""
    others = [each for each in found.conditions if not each.why_not]
    if not others:
        yield parts.no_condition(found)
        return
    yield "what differs:"
    width = max(len(each.name) for each in others)
    yield from (f"  {each.name:<{width}}  {each.before} -> {each.after}" for each in others)
