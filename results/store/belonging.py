"""The one place that decides which records are a run's: of its plan, asked for, and once.

A file may hold lines that were copied into it, or written twice. Counted, they would make
intervals narrower than what was measured; so they are left out, and named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.listing import first_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.results.values.cases import RunPlan
    from dynamometer.results.values.records import Manifest, Record


@dataclass(frozen=True)
class RunRecords:
    """What the file of a run's records holds.

    Attributes:
        records: those of the run, in the order they were made.
        strays: lines that are none of its, each with its number and why.
    """

    records: list[Record]
    strays: tuple[str, ...] = ()

    @property
    def warning(self) -> str | None:
        """What to say of the lines that are left out; `None` where there are none."""
        if not self.strays:
            return None
        told = first_of(self.strays, separator="; ")
        return f"{len(self.strays)} line(s) of events.jsonl are not counted: {told}"


def belonging(manifest: Manifest, records: Iterable[Record]) -> RunRecords:
    """Tell the records of a run from others in its file.

    Of a replicate that was attempted again the last attempt counts; it knows how the others ended.
    """
    judge = Judge(manifest)
    kept: dict[tuple[str, int], Record] = {}
    strays: list[str] = []
    for number, record in enumerate(records, start=1):
        case, attempt = record.case.id, len(record.earlier)
        why = judge.fault(record.run_id, case, record.replicate, attempt)
        if why is None:
            kept[case, record.replicate] = record
        else:
            strays.append(f"line {number} {why}")
    return RunRecords([*kept.values()], tuple(strays))


class Judge:
    """Says of one line after another whether it is a run's."""

    def __init__(self, manifest: Manifest) -> None:
        """Know the plan, and no line yet."""
        self._run_id = manifest.run_id
        self._cases = {case.id for case in manifest.plan.cases}
        self._replicates = range(manifest.plan.protocol.most_replicates)
        self._attempts: dict[tuple[str, int], int] = {}

    def fault(self, run_id: str, case: str, replicate: int, attempt: int = 0) -> str | None:
        """Return why a line is none of the run's, or `None` if it is one."""
        if run_id != self._run_id:
            return f"is of the run {run_id!r}"
        if case not in self._cases:
            return f"is of {case!r}, which the run doesn't plan"
        if replicate not in self._replicates:
            return f"is replicate {replicate}, of at most {len(self._replicates)}"
        if self._attempts.get((case, replicate), -1) >= attempt:
            return f"is replicate {replicate} of {case!r} once more"
        self._attempts[case, replicate] = attempt
        return None


def fault_of(plan: RunPlan) -> str | None:
    """Return why a plan can't have been made here, or `None` if it can."""
    if not plan.cases:
        return "it plans no case"
    if not plan.experiments:
        return "it asks nothing"
    models = {spec.name for spec in plan.models}
    for case in plan.cases:
        if case.model not in models:
            return f"it doesn't describe the model {case.model!r} that it plans to run"
        if not case.arms:
            return f"{case.model!r} has no arm"
    return None
