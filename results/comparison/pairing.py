"""Which arm of which case on one side is the same on the other. Pure; no torch."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dynamometer.results.values.cases import IDENTITY, MATMUL_SETTING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.sides import Side

_BATCH, _SETTINGS = "batch_size", "settings"
_PRECISION = "matmul precision"
"""The name of a condition, which a case's settings begin with."""


class IncomparableError(Exception):
    """Two sides can't be compared; the text says why, reason by reason.

    Attributes:
        may_be_forced: whether `--force` compares them anyway.
    """

    def __init__(self, why: str, *, may_be_forced: bool = False) -> None:
        """Take the reasons."""
        super().__init__(why)
        self.may_be_forced = may_be_forced


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

    The batch size is a part of it only of a model that has several on one side. Where each side has
    an arm of its own that was asked for, these two are taken for one. Entries say what tells them
    from others of their model.

    Args:
        before: one side.
        after: the other.
        ignored: names of conditions in which the sides differ as a whole.

    Raises:
        IncomparableError: of one side two entries would be the same; names them.
    """
    before, after = _told_apart(before, after)
    known = [each for each in before.known if each in after.known and each not in ignored]
    is_named = not (before.arm and after.arm)
    is_any_precision = _PRECISION in ignored

    def key_without_batch(entry: Entry) -> tuple[str, ...]:
        found = {each: entry.identity[each] for each in known if each != _BATCH}
        if is_any_precision and _SETTINGS in found:
            found[_SETTINGS] = _without_precision(found[_SETTINGS])
        return (*found.values(), entry.arm if is_named else "")

    counts = [Counter(map(key_without_batch, side.entries)) for side in (before, after)]

    def key(entry: Entry) -> tuple[str, ...]:
        found = key_without_batch(entry)
        has_several = _BATCH in known and any(each[found] > 1 for each in counts)
        return (*found, entry.identity[_BATCH] if has_several else "")

    was, now = (_by_key(side, key) for side in (before, after))
    return Pairs(
        common=tuple(Pair(was[key], now[key]) for key in was if key in now),
        gone=tuple(each for key, each in was.items() if key not in now),
        new=tuple(each for key, each in now.items() if key not in was),
    )


def _told_apart(*sides: Side) -> list[Side]:
    """Have entries say how their cases are set, where a side has several of one model and mode."""
    differing: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for side in sides:
        first: dict[tuple[str, ...], Mapping[str, str]] = {}
        for each in side.entries:
            one, other = first.setdefault(_told_anyway(each), each.identity), each.identity
            if one != other:
                names = (name for name in IDENTITY if one.get(name) != other.get(name))
                differing[_told_anyway(each)].update(names)

    def told(entry: Entry) -> Entry:
        names = differing.get(_told_anyway(entry), set())
        settings = [f"{n} {entry.identity.get(n) or 'none'}" for n in IDENTITY if n in names]
        return replace(entry, apart=", ".join(settings)) if settings else entry

    return [replace(side, entries=tuple(map(told, side.entries))) for side in sides]


def _told_anyway(entry: Entry) -> tuple[str, ...]:
    return tuple(entry.identity.get(name, "") for name in ("suite", "model", "mode"))


def _without_precision(settings: str) -> str:
    first, _, others = settings.partition(" ")
    return others if first.startswith(MATMUL_SETTING) else settings


def _by_key(side: Side, key: Callable[[Entry], tuple[str, ...]]) -> dict[tuple[str, ...], Entry]:
    found: dict[tuple[str, ...], Entry] = {}
    for each in side.entries:
        other = found.setdefault(key(each), each)
        if other is not each:
            raise IncomparableError(_why_ambiguous(side, other, each))
    return found


def _why_ambiguous(side: Side, one: Entry, other: Entry) -> str:
    """Say which two entries of a side can't be told apart by what both sides know."""
    differing = ", ".join(
        f"{name} {one.identity.get(name, 'unknown')} and {other.identity.get(name, 'unknown')}"
        for name in IDENTITY
        if one.identity.get(name) != other.identity.get(name)
    )
    return (
        f"{side.source} has {one.identity['model']} {one.arm} more than once ({differing}), and the"
        " other side doesn't tell which of them it has: leave one of them out, or name CSV files as"
        " PyTorch's scripts do, by backend, suite, dtype, mode and device"
    )
