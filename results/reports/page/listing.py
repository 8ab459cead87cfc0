"""The list of runs that `dynamometer serve` begins with. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.reports.page.document import policy_of, style_text, template

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class ListedRun:
    """A run, as the list has it."""

    run_id: str
    created_at: str
    study: str
    torch: str
    directory: str
    """Empty of one that a file brought."""


def runs_page(runs: Sequence[ListedRun]) -> str:
    """Write a list of runs, of which two can be chosen to be compared."""
    note = "" if runs else "There is no run yet: what is made here appears when this is read again."
    style = style_text()
    # Of runs that a file brought there is nothing to compare.
    after, before, *_ = [*(each.run_id for each in runs if each.directory), "", ""]
    return template("runs.html.j2").render(
        policy=policy_of(style, form="'self'"), style=style, runs=runs, note=note,
        before=before, after=after,
    )  # fmt: skip
