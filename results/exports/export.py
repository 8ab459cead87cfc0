"""The interface between a stored run and the formats of other programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dynamometer.results.reports.texts import is_shown
from dynamometer.results.statistics.summary import by_case, summarize_case
from dynamometer.results.values.records import unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.results.reports.sinks import Reporter
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.records import Manifest, Outcome, Record


@dataclass(frozen=True)
class Document:
    """One file that an export comes to.

    Attributes:
        name: of the file, where several are put into a folder.
        text: what is in it.
    """

    name: str
    text: str


@dataclass(frozen=True)
class StoredRun:
    """What an export is made of.

    Attributes:
        manifest: of the run.
        records: of it, in the order in which they were made.
        reporter: the study that the run asked.
    """

    manifest: Manifest
    records: tuple[Record, ...]
    reporter: Reporter

    @property
    def cases(self) -> list[list[Record]]:
        """The records of each case that has any."""
        return by_case(self.records)

    @property
    def unfinished(self) -> list[Case]:
        """Cases that were planned and have not ended."""
        return unfinished(self.manifest.plan, self.records)

    @property
    def missing(self) -> list[Case]:
        """Unfinished cases that have no record at all."""
        seen = {record.case.id for record in self.records}
        return [case for case in self.manifest.plan.cases if case.id not in seen]

    def endings(self) -> Iterator[Ending]:
        """Yield how each arm of each case ended; of a case of the baseline alone, that one."""
        for records in self.cases:
            found = summarize_case(records, timed=False)
            for arm in found.arms:
                yield Ending(found.case, arm.name, arm.outcome, tuple(records))
            if not found.arms:
                name, outcome = found.baseline.name, self.reporter.ending(records)
                yield Ending(found.case, name, outcome, tuple(records))


@dataclass(frozen=True)
class Ending:
    """How one arm of a case ended.

    Attributes:
        case: of which it is.
        arm: its name.
        outcome: the first that was not a pass, or a pass; of the baseline alone as its study says.
        records: of the case.
    """

    case: Case
    arm: str
    outcome: Outcome
    records: tuple[Record, ...]

    @property
    def command(self) -> str:
        """What repeats the case alone."""
        return self.records[-1].command


class Export(Protocol):
    """Turns a run into documents; what is registered as an export is one of these."""

    def __call__(self, run: StoredRun) -> Sequence[Document]:
        """Return the documents; never reads a clock, a file or the network."""
        ...


def json_text(value: object, indent: int | None = 2) -> str:
    """Return a value as JSON, in which whatever a terminal would obey is escaped.

    Args:
        value: of any kind that JSON has.
        indent: of its lines; `None` has it on one.

    Raises:
        ValueError: it holds NaN or an infinity, which JSON has no word for.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    shown = (each if is_shown(each) or each == "\n" else _escaped(each) for each in text)
    return "".join(shown) + "\n"


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
