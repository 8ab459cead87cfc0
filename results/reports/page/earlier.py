"""What the models of a run were in earlier runs, for its page. Pure; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.comparison.entries import identity_of
from dynamometer.results.reports.page.history import shown_history
from dynamometer.results.reports.page.values import ShownEarlier
from dynamometer.results.values.history import STATUS
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from dynamometer.results.values.history import History, Series
    from dynamometer.results.values.records import Record


@dataclass(frozen=True)
class Earlier:
    """A run among earlier ones.

    Attributes:
        found: what became of all it measured, up to it.
        with_page: the runs that a server has a page of; `None` where there is no server.
    """

    found: History
    with_page: Collection[str] | None = None


def shown_earlier(
    earlier: Earlier, cases: Sequence[Sequence[Record]], made_at: str
) -> ShownEarlier | None:
    """Return what is shown of earlier runs beside the cases of a run; `None` if that is nothing.

    Args:
        earlier: the run among them.
        cases: the records of each case of the run.
        made_at: when the run was begun; UTC, ISO 8601.
    """
    numbers = {_key(identity_of(own[-1].case)): number for number, own in enumerate(cases)}
    known = [each for each in earlier.found.series if _key(each.identity) in numbers]
    kept = [_of_shown_points(each) for each in _telling(known)]
    if not kept:
        return None
    found = msgspec.structs.replace(earlier.found, series=tuple(kept))
    return ShownEarlier(
        history=shown_history(found, made_at, earlier.with_page),
        cases=tuple(numbers[_key(each.identity)] for each in kept),
    )


def _key(identity: dict[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(identity.items())


def _telling(found: Iterable[Series]) -> Iterator[Series]:
    """Leave out how an arm ended that always passed, where there are speedups of it."""
    given = list(found)
    timed = {(_key(each.identity), each.arm) for each in given if each.metric != STATUS}
    for each in given:
        is_needed = any(point.status != Status.PASS for point in each.points)
        if each.metric != STATUS or is_needed or (_key(each.identity), each.arm) not in timed:
            yield each


def _of_shown_points(series: Series) -> Series:
    """Leave out changes before the runs that are shown."""
    shown = {each.run_id for each in series.points}
    changes = tuple(each for each in series.changes if each.last_before in shown)
    return msgspec.structs.replace(series, changes=changes)
