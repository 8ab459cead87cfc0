"""Markdown for GitHub: the summary of a step, and a comment, each within GitHub's limit.

What a limit leaves no room for is cut, with a word: first models that passed, from the last; then
those that did not; then what the run's tables say.
Source: docs.github.com, "Adding a job summary" (1 MiB for each step); a comment's body holds 65,536
characters, as GitHub's API says where it is longer. Bytes are counted for both, which are as many
or more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from dynamometer.results.exports.export import Document
from dynamometer.results.exports.figures import figures
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")


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
    closing = "\n".join(run.reporter.closing_lines(run.cases) if endings else ()).strip("\n")
    left = most_bytes - _RESERVED
    head = _fitted(_head(run), left, "")
    left -= _size(head)
    block = _fenced(closing)
    block = block if _size(block) <= left else [f"The run's tables are too long for GitHub. {_ALL}"]
    left -= _size(block)
    problems = _table(("model", "backend", "outcome", "repeat it"), list(_problems(failed)))
    problems = _fitted(["", "### Not passed", "", *problems] if failed else [], left, "failures")
    left -= _size(problems)
    models = ["", "### Models", "", *_models(run, endings)] if endings else []
    return "\n".join([*head, *block, *problems, *_fitted(models, left, "models"), ""])


_ALL = "`dynamometer show RUN` has all of it."


def _head(run: StoredRun) -> list[str]:
    manifest = run.manifest
    environment = manifest.environment
    hardware = (
        f"{_escaped(environment.machine)}: {_escaped(environment.cpu)}, {environment.cpus} CPUs"
    )
    torch = environment.packages.get("torch", "unknown")
    software = f"torch {_escaped(torch)}, Python {_escaped(environment.python)}"
    missing = len(run.missing)
    planned = len(manifest.plan.cases)
    return [
        f"## Dynamometer: {_escaped(manifest.plan.suite)}, {_escaped(manifest.plan.study)}",
        "",
        f"Run {_escaped(manifest.run_id)}: {_code(manifest.command)}",
        "",
        f"{hardware}, {software}",
        *(
            ["", f"**Interrupted: {planned - missing} of {planned} cases have results.**"]
            if missing
            else []
        ),
        "",
    ]


def _problems(failed: Sequence[Ending]) -> Iterator[list[str]]:
    for each in failed:
        yield [_escaped(each.case.label), _escaped(each.arm), _escaped(each.outcome.line),
               _code(each.command)]  # fmt: skip


def _models(run: StoredRun, endings: Sequence[Ending]) -> list[str]:
    """Return the table of models: failures first, so that they are cut last."""
    measured: defaultdict[tuple[str, str], list[Figure]] = defaultdict(list)
    columns: dict[str, Column[object]] = {}
    for figure in figures(run):
        measured[figure.case.id, figure.arm].append(figure)
        if figure.column.better is not None and len(columns) < _COLUMNS:
            columns.setdefault(figure.column.name, figure.column)
    rows = [
        [
            _escaped(f"{each.case.label} {size}"),
            _escaped(each.arm),
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
    return _table(("model", "backend", "status", *map(_escaped, headers)), rows)


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


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [headers, ["---"] * len(headers), *rows]
    return [f"| {' | '.join(each)} |" for each in lines]


def _fitted(lines: list[str], most_bytes: int, what: str) -> list[str]:
    """Leave out lines from the end, saying how many, so that the rest is no longer than may be."""
    kept: list[str] = []
    for line in lines:
        most_bytes -= _size([line])
        if most_bytes < 0:
            break
        kept.append(line)
    cut = len(lines) - len(kept)
    return [*kept, "", f"... and {cut} more {what}, too many for GitHub. {_ALL}"] if cut else kept


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _fenced(text: str) -> list[str]:
    """Return lines as they are, between fences longer than any within."""
    fence = "`" * max(3, _longest_ticks(text) + 1)
    return [f"{fence}text", *text.splitlines(), fence] if text else []


def _longest_ticks(text: str) -> int:
    return max((len(found) for found in re.findall("`+", text)), default=0)


def _code(text: str) -> str:
    """Return text of one line as code."""
    line = " ".join(text.split()).replace("|", "\\|")
    fence = "`" * (_longest_ticks(line) + 1)
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _escaped(text: str) -> str:
    """Return text as Markdown that shows it as it is: no markup, no HTML, no mention of anybody."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("@", "@\u200b")
