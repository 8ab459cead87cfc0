"""The pages that `dynamometer serve` has beside those of runs: a list of runs, and text. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.reports.page.document import policy_of, style_text, template

if TYPE_CHECKING:
    from collections.abc import Sequence

_VIEWS = (("/", "Runs"), ("/history", "History"))


@dataclass(frozen=True)
class ListedRun:
    """A run, as the list has it."""

    run_id: str
    created_at: str
    study: str
    torch: str
    directory: str


def runs_page(runs: Sequence[ListedRun]) -> str:
    """Write a list of runs, of which two can be chosen to be compared."""
    note = "" if runs else "There is no run yet: what is made here appears when this is read again."
    return _written("Runs", runs=runs, note=note)


def text_page(title: str, lines: Sequence[str]) -> str:
    """Write lines below a title."""
    return _written(title, lines=lines)


def _written(
    title: str, runs: Sequence[ListedRun] = (), lines: Sequence[str] = (), note: str = ""
) -> str:
    style = style_text()
    return template("runs.html.j2").render(
        title=title,
        policy=policy_of(style, form="'self'"),
        style=style,
        views=_VIEWS,
        runs=runs,
        lines=lines,
        note=note,
    )
