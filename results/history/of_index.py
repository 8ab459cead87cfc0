"""What the index says of series, with what changed in them. Reads the index; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.comparison.quantities import SPEEDUP
from dynamometer.results.history import by_eager
from dynamometer.results.history.changes import history

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynamometer.results.store.index.index import Index
    from dynamometer.results.values.history import History


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
    runs, stored = index.read(wanted)
    found = history(runs, stored, since, with_points=with_points)
    models = by_eager.models(found)
    if not models:
        return found
    later, latencies_of = index.read({"model": models, "metric": by_eager.LATENCIES})
    # Another process may have changed the index between the two.
    times = {each.run_id: each.created_at for each in (*runs.values(), *later.values())}
    latencies = history(later, latencies_of, floor=SPEEDUP.floor, with_points=False)
    return by_eager.explained(found, latencies, times)
