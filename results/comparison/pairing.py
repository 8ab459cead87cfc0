"""Which arm of which case on one side is the same on the other. Pure; no torch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.sides import Side

_BATCH = "batch_size"


@dataclass(frozen=True)
class Pair:
    """One arm of a case on both sides."""

    before: Entry
    after: Entry

    @property
    def both_passed(self) -> bool:
        """Whether there is something to be judged."""
        return self.before.passed and self.after.passed

    @property
    def why_incomparable(self) -> str | None:
        """Why its figures can't be compared; `None` if they can."""
        was, now = (each.identity.get(_BATCH) for each in (self.before, self.after))
        return None if was == now or None in {was, now} else f"batch size was {was}, is {now}"

    @property
    def doubt(self) -> str | None:
        """Why nothing is concluded from it, in a word; `None` if it may be."""
        return self.after.doubt or self.before.doubt


@dataclass(frozen=True)
class Pairs:
    """All arms of all cases: those both sides have, and those one lacks."""

    common: tuple[Pair, ...]
    gone: tuple[Entry, ...]
    new: tuple[Entry, ...]


def paired(before: Side, after: Side, ignored: Collection[str] = ()) -> Pairs:
    """Pair entries by what both sides know of a case's identity.

    The batch size is a part of it only where a model has several on one side. Where each side has
    an arm of its own that was asked for, these two are taken for one.

    Args:
        before: one side.
        after: the other.
        ignored: parts of the identity in which the sides differ as a whole.
    """
    fields = [each for each in before.known if each in after.known and each not in ignored]
    named = not (before.arm and after.arm)
    without_batch = [each for each in fields if each != _BATCH]
    if all(_are_unique(side.entries, without_batch, named=named) for side in (before, after)):
        fields = without_batch
    was, now = (
        {_key(each, fields, named=named): each for each in side.entries} for side in (before, after)
    )
    return Pairs(
        common=tuple(Pair(was[key], now[key]) for key in was if key in now),
        gone=tuple(each for key, each in was.items() if key not in now),
        new=tuple(each for key, each in now.items() if key not in was),
    )


def _key(entry: Entry, fields: Sequence[str], *, named: bool) -> tuple[str, ...]:
    return (*(entry.identity[each] for each in fields), entry.arm if named else "")


def _are_unique(entries: Sequence[Entry], fields: Sequence[str], *, named: bool) -> bool:
    counts = Counter(_key(each, fields, named=named) for each in entries)
    return all(count == 1 for count in counts.values())
