"""Markdown for GitHub: the summary of a step, and a comment, each within GitHub's limit.

What a limit leaves no room for is cut, with a word: first models that passed, from the last; then
those that did not; then what the run's tables say.
Source: docs.github.com, "Adding a job summary" (1 MiB for each step); a comment's body holds 65,536
characters, as GitHub's API says where it is longer. Bytes are counted for both, which are as many
or more.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.exports.export import Document
from dynamometer.results.exports.figures import figures
from dynamometer.results.reports.markdown_texts import (
    longest_ticks,
    markdown_code,
    markdown_text,
)
from dynamometer.results.reports.texts import printable
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.exports.export import Ending, StoredRun
    from dynamometer.results.exports.figures import Figure
    from dynamometer.results.reports.columns import Column

SUMMARY_BYTES = 2**20
COMMENT_BYTES = 65_536
MARKER = "<!-- dynamometer -->"
"""Begins a comment, so that the next run finds it and writes it anew."""
_COLUMNS = 4
"""Of figures in the table of models: the first that say which values are better."""
_RESERVED = 400
"""Bytes for what is said of rows that are cut."""


def step_summary(run: StoredRun) -> list[Document]:
    """Return a document for `$GITHUB_STEP_SUMMARY`."""
    return [Document("summary.md", page(run, SUMMARY_BYTES))]


def comment(run: StoredRun) -> list[Document]:
    """Return a document for the body of a comment."""
    return [Document("comment.md", f"{MARKER}\n{page(run, COMMENT_BYTES - len(MARKER) - 1)}")]


def page(run: StoredRun, most_bytes: int) -> str:
    """Return a page that is no longer than asked for."""
    endings = list(run.endings())
    failed = [each for each in endings if each.outcome.status is not Status.PASS]
    left = most_bytes - _RESERVED
    head = _fitted(_Section((), _head(run), "lines"), left)
    left -= _size(head)
    block = _fenced("\n".join(run.reporter.closing_lines(run.cases) if endings else ()).strip("\n"))
    block = block if _size(block) <= left else [f"The run's tables are too long for GitHub. {_ALL}"]
    left -= _size(block)
    problems = _fitted(_problems(failed), left)
    left -= _size(problems)
    models = _fitted(_models(run, endings), left)
    return "\n".join([*head, *block, *problems, *models, ""])


@dataclass(frozen=True)
class _Section:
    """A part of the page, of which rows may be left out from the end.

    Attributes:
        head: lines without which there is no row.
        rows: the rest.
        what: they are of.
    """

    head: Sequence[str]
    rows: Sequence[str]
    what: str


_ALL = "`dynamometer show RUN` has all of it."


def _head(run: StoredRun) -> list[str]:
    manifest = run.manifest
    environment = manifest.environment
    hardware = markdown_text(f"{environment.machine}: {environment.cpu}, {environment.cpus} CPUs")
    torch = environment.packages.get("torch", "unknown")
    software = f"torch {markdown_text(torch)}, Python {markdown_text(environment.python)}"
    unfinished = len(run.unfinished)
    planned = len(manifest.plan.cases)
    return [
        f"## {markdown_text(f'Dynamometer: {manifest.plan.suite}, {manifest.plan.study}')}",
        "",
        f"Run {markdown_text(manifest.run_id)}: {markdown_code(manifest.command)}",
        "",
        f"{hardware}, {software}",
        *(
            ["", f"**Interrupted: {planned - unfinished} of {planned} cases have ended.**"]
            if unfinished
            else []
        ),
        "",
    ]


def _problems(failed: Sequence[Ending]) -> _Section:
    headers = ("model", "backend", "outcome", "repeat it")
    rows = [
        [markdown_text(each.case.label), markdown_text(each.arm), markdown_text(each.outcome.line),
         markdown_code(each.command).replace("|", "\\|")]
        for each in failed
    ]  # fmt: skip
    return _section("Not passed", headers, rows, "failures")


def _models(run: StoredRun, endings: Sequence[Ending]) -> _Section:
    """Return the table of models: failures first, so that they are cut last."""
    measured: defaultdict[tuple[str, str], list[Figure]] = defaultdict(list)
    columns: dict[str, Column[object]] = {}
    for figure in figures(run):
        measured[figure.case.id, figure.arm].append(figure)
        if figure.column.better is not None and len(columns) < _COLUMNS:
            columns.setdefault(figure.column.name, figure.column)
    rows = [
        [
            markdown_text(f"{each.case.label} {size}"),
            markdown_text(each.arm),
            str(each.outcome.status),
            *cells,
        ]
        for each in sorted(endings, key=lambda each: each.outcome.status is Status.PASS)
        for size, cells in _cells(measured[each.case.id, each.arm], list(columns))
    ]
    headers = [
        f"{name} ({each.unit})" if each.unit not in {"", "x"} else name
        for name, each in columns.items()
    ]
    all_headers = ("model", "backend", "status", *map(markdown_text, headers))
    return _section("Models", all_headers, rows, "models")


def _cells(measured: Sequence[Figure], columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the size and the cells of each row of an arm: one, or one for each size of inputs."""
    by_size: dict[str, dict[str, Figure]] = {}
    for figure in measured:
        by_size.setdefault(figure.size or "", {})[figure.column.name] = figure
    return [
        (size, [_cell(found.get(name)) for name in columns])
        for size, found in (by_size or {"": {}}).items()
    ]


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    low, high = figure.low, figure.high
    bounds = f" [{low:.4g}, {high:.4g}]" if low is not None and high is not None else ""
    doubt = f" ({figure.doubt})" if figure.doubt else ""
    return f"{figure.value:.4g}{bounds}{doubt}"


def _section(
    title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], what: str
) -> _Section:
    """Return a table below a title; nothing where there is no row."""
    lines = [f"| {' | '.join(each)} |" for each in (headers, ["---"] * len(headers), *rows)]
    return _Section(
        ("", f"### {title}", "", *lines[:2]) if rows else (), lines[2:] if rows else (), what
    )


def _fitted(section: _Section, most_bytes: int) -> list[str]:
    """Leave out rows from the end, saying how many, so that the rest is no longer than may be."""
    most_bytes -= _size(section.head)
    kept: list[str] = []
    for row in section.rows:
        most_bytes -= _size([row])
        if most_bytes < 0:
            break
        kept.append(row)
    cut = len(section.rows) - len(kept)
    word = ["", f"... and {cut} more {section.what}, too many for GitHub. {_ALL}"] if cut else []
    return [*(section.head if kept else ()), *kept, *word]


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _fenced(text: str) -> list[str]:
    """Return lines as they are, between fences longer than any within."""
    fence = "`" * max(3, longest_ticks(text) + 1)
    return [f"{fence}text", *map(printable, text.splitlines()), fence] if text else []
