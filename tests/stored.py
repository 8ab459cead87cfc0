"""Runs that are stored, made of the records of some cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import msgspec

from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.results.exports.export import StoredRun
from dynamometer.results.values.records import Status, StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Record


def renamed(of: Record, model: str) -> Record:
    """Return a record as that of another model."""
    return msgspec.structs.replace(of, case=msgspec.structs.replace(of.case, model=model))


def ended(records: Sequence[Record]) -> list[Record]:
    """Return the records of a case of which the last says that it is that, as a run marks it."""
    *others, last = records
    usual = StopReason.REPLICATES if last.outcome.status is Status.PASS else StopReason.FAILED
    return [*others, msgspec.structs.replace(last, stopped=last.stopped or usual)]


def run_of(
    cases: Sequence[Sequence[Record]], *missing: Case, begun: Sequence[Sequence[Record]] = ()
) -> StoredRun:
    """Store the records of some cases, of a run that was also to have others.

    Args:
        cases: the records of each that has ended.
        missing: what the run was interrupted before.
        begun: the records of each of which it was to make more.
    """
    found = [*map(ended, cases), *begun]
    planned = (*(records[0].case for records in found), *missing)
    specs = tuple(
        factories.model_spec(name) for name in dict.fromkeys(each.model for each in planned)
    )
    return StoredRun(
        factories.manifest(factories.plan(*specs, cases=planned)),
        tuple(record for records in found for record in records),
        STUDY,
    )
