"""What the index says of series, with what changed in them. Reads the index; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.comparison.quantities import EAGER_LATENCY, SPEEDUP
from dynamometer.results.history import by_eager
from dynamometer.results.history.changes import history
from dynamometer.results.store.index.series import Asked
from dynamometer.results.values.history import STATUS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.results.store.index.index import Index
    from dynamometer.results.values.history import History, IndexedRun

    Runs = Mapping[int, IndexedRun]

POINTS_OF_A_RUN = 90
"""So many runs of each series are shown beside a run; the whole of it `history` shows."""


def history_of(
    index: Index, wanted: Mapping[str, Sequence[str]], since: str | None, *, with_points: bool
) -> History:
    """Return the series that are wanted; latencies are looked at where a speedup changed.

    Args:
        index: of runs.
        wanted: names by column of the index; what isn't named is all of it.
        since: changes before that time are left out.
        with_points: whether all runs of a series are in it.

    Raises:
        StoreError: the index can't be read.
    """
    runs, stored = index.read(wanted, Asked(points=None if with_points else 0))
    return _explained(index, runs, history(runs, stored, since))


def history_until(index: Index, run_id: str) -> History | None:
    """Return what became of all that a run measured, in earlier runs and in it.

    Args:
        index: of runs.
        run_id: which run.

    Returns:
        How each arm ended and its speedups, up to that run; `None` where no earlier run has any of
        it.

    Raises:
        StoreError: the index can't be read.
    """
    wanted = {"metric": (STATUS, SPEEDUP.name)}
    runs, stored = index.read(wanted, Asked(POINTS_OF_A_RUN, until=run_id))
    found = history(runs, [each for each in stored if len(each.points) > 1])
    return _explained(index, runs, found, run_id) if found.series else None


def _explained(index: Index, runs: Runs, found: History, until: str | None = None) -> History:
    """Mark changes of speedups that are eager's."""
    models = by_eager.models(found)
    if not models:
        return found
    wanted = {"model": models, "metric": by_eager.LATENCIES}
    later, latencies_of = index.read(wanted, Asked(points=0, until=until))
    # Another process may have changed the index between the two.
    times = {each.run_id: each.created_at for each in (*runs.values(), *later.values())}
    latencies = history(later, latencies_of, floor=SPEEDUP.floor)
    marked = by_eager.explained(found, latencies, times)
    if not any(change.by_eager for each in marked.series for change in each.changes):
        return marked
    every = {"metric": (EAGER_LATENCY.name,)}
    now, eagers = index.read(every, Asked(points=0, until=until))
    times |= {each.run_id: each.created_at for each in now.values()}
    begun = {by_eager.key(each): now[each.columns.runs[0]].created_at for each in eagers}
    return by_eager.apart(marked, history(now, eagers, floor=SPEEDUP.floor), times, begun)
