"""An explanation as text, and as a page. Pure; no torch."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import jinja2
from tabulate import tabulate

from dynamometer.results.reports.guard_words import failed_in_words
from dynamometer.results.reports.texts import in_source, place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.results.values.explanation import (
        ExplainedBreak,
        Explanation,
        Frame,
        Instruction,
        LeftAlone,
        Operation,
    )

_HEADERS = ("name", "kind", "target", "inputs", "result")
_ORIGINAL_WIDTH = 48


def text(found: Explanation) -> str:
    """Write an explanation as plain text."""
    blocks = [
        summary(found),
        *itertools.starmap(_break_lines, enumerate(found.breaks, 1)),
        *map(_left_alone_lines, found.left_alone),
        *itertools.starmap(_frame_lines, enumerate(found.frames, 1)),
        _compiled_again(found),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def page(found: Explanation) -> str:
    """Write an explanation as an HTML page that needs nothing else."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dynamometer.results.reports", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        title=title, in_source=in_source, place=place, listing=_listing, in_words=failed_in_words
    )
    template = environment.get_template("explanation.html.j2")
    return template.render(found=found, summary=summary(found), headers=_HEADERS)


def summary(found: Explanation) -> list[str]:
    """Describe in two lines what there is."""
    counts = (
        _count(found.calls, "call"),
        f"{_count(len(found.frames), 'frame')} compiled",
        _count(found.graphs, "graph"),
        _count(len(found.breaks), "graph break"),
        _count(len(found.recompiles), "recompile"),
        *[f"{_count(len(found.left_alone), 'function')} left alone"] * bool(found.left_alone),
    )
    return [f"{found.target}, as torch {found.torch} compiles it", ", ".join(counts)]


def title(frame: Frame) -> str:
    """Name a frame: a function, or what is left of it after a graph break."""
    return in_source(frame.function)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _break_lines(number: int, found: ExplainedBreak) -> list[str]:
    where = f"{place(found.file, found.line)} in {in_source(found.function)}"
    lines = [f"GRAPH BREAK {number}: {found.reason}", f"  {where}"]
    lines += _excerpt_lines(found.excerpt, found.line)
    lines += [f"  {found.explanation}"] if found.explanation else []
    return lines + [f"  - {advice}" for advice in found.advice]


def _left_alone_lines(found: LeftAlone) -> list[str]:
    frame, (file, line) = found.frame, found.frame.cause
    return [
        f"LEFT AS IT IS: {in_source(frame.function)} ({place(frame.file, frame.line)})",
        f"  {place(file, line)}: {frame.reason}",
        *_excerpt_lines(found.excerpt, line),
        *([f"  - {frame.hint}"] if frame.hint else []),
    ]


def _excerpt_lines(excerpt: Sequence[tuple[int, str]], marked: int) -> list[str]:
    return [f"  {'>' if line == marked else ' '} {line:5} | {code}" for line, code in excerpt]


def _frame_lines(number: int, frame: Frame) -> list[str]:
    lines = [f"FRAME {number}: {title(frame)} ({place(frame.file, frame.line)})"]
    for graph in frame.graphs:
        lines += ["", "  graph", *_indented(_table(graph))]
    if frame.guards:
        lines += ["", "  compiled code is used again while"]
        lines += [
            f"  - {guard.words}" + (f"  ({in_source(guard.place)})" if guard.place else "")
            for guard in frame.guards
        ]
    lines += ["", f"  {'bytecode':{_ORIGINAL_WIDTH}} | what Dynamo has Python run instead"]
    pairs = itertools.zip_longest(_listing(frame.original), _listing(frame.rewritten), fillvalue="")
    return lines + [f"  {left:{_ORIGINAL_WIDTH}} | {right}".rstrip() for left, right in pairs]


def _table(graph: Sequence[Operation]) -> list[str]:
    rows = [(each.name, each.kind, each.target, each.inputs, each.result) for each in graph]
    return tabulate(rows, headers=_HEADERS, tablefmt="simple", disable_numparse=True).splitlines()


def _indented(lines: Sequence[str]) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in lines)


def _listing(code: Sequence[Instruction]) -> list[str]:
    """Return a line for each instruction: source line, offset, what it does."""
    return [
        f"{each.line or '':>4} {each.offset:>4} {each.operation} {each.argument}".rstrip()
        for each in code
    ]


def _compiled_again(found: Explanation) -> list[str]:
    lines = [
        f"  {in_source(each.function)} ({place(each.file, each.line)}), because:"
        f" {failed_in_words(each.guard)}"
        for each in found.recompiles
    ]
    return ["COMPILED AGAIN", *lines] if lines else []
