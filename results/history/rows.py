"""From a run, as it is compared, to what the index holds of it. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.comparison.conditions import MUST_BE_EQUAL
from dynamometer.results.comparison.quantities import EAGER_LATENCY, KINDS
from dynamometer.results.comparison.sides import SUITE_OPTION
from dynamometer.results.statistics.significance import ratio
from dynamometer.results.values.cases import BASELINE, IDENTITY
from dynamometer.results.values.history import DEVICE_NAME, STATUS, IndexedRun, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.quantities import Quantity
    from dynamometer.results.comparison.sides import Side
    from dynamometer.results.values.records import Manifest

_OF_EACH_CASE = {*IDENTITY, "study"}
"""Conditions that a series knows of its own: a run may have cases of several scales."""


def indexed_run(manifest: Manifest, side: Side) -> IndexedRun:
    """Return what the index says of a run.

    What selects a suite's models tells series apart as well: models of two files may share a name.

    Args:
        manifest: of the run.
        side: the run, as it is compared.
    """
    conditions = {
        name: value for name, value in side.conditions.items() if name not in _OF_EACH_CASE
    }
    apart = {name for name in conditions if name in MUST_BE_EQUAL or name.startswith(SUITE_OPTION)}
    if side.conditions.get("device") == "cpu":
        apart.discard(DEVICE_NAME)  # `cpu` is the same: where all crash it is not there
    return IndexedRun(
        run_id=manifest.run_id,
        created_at=manifest.created_at,
        study=manifest.plan.study,
        conditions={k: v for k, v in conditions.items() if k not in apart},
        setting={k: v for k, v in conditions.items() if k in apart},
    )


def rows(side: Side) -> list[Row]:
    """Return how each arm of each case ended, and all that was measured of it.

    Eager's latency belongs to a case, and so is there once for all of its arms.
    """
    found = [row for entry in side.entries for row in _of_entry(entry)]
    unique = {(*each.identity.values(), each.arm, each.metric): each for each in found}
    return list(unique.values())


def _of_entry(entry: Entry) -> Iterator[Row]:
    identity, status = dict(entry.identity), str(entry.outcome.status)
    yield Row(identity=identity, arm=entry.arm, metric=STATUS, status=status, n=len(entry.records))
    for quantity in entry.quantities.values():
        if quantity.kind not in KINDS:  # of a plugin's study: nobody knows which way is better
            continue
        yield _of_quantity(entry, identity, status, quantity)


def _of_quantity(entry: Entry, identity: dict[str, str], status: str, quantity: Quantity) -> Row:
    mean = quantity.mean
    found = ratio(mean)
    return Row(
        identity=identity,
        arm=BASELINE if quantity.kind is EAGER_LATENCY else entry.arm,
        metric=quantity.kind.name,
        condition=quantity.condition,
        status=status,
        value=found.value,
        low=found.low,
        high=found.high,
        error=mean.error,
        n=mean.n,
        doubt=entry.doubt,
    )
