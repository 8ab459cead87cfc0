"""The table that PyTorch's team posts every week, of both sides. Pure functions; no torch."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dynamometer.results.comparison.quantities import COMPILE_TIME, MEMORY_RATIO, SPEEDUP
from dynamometer.results.statistics.significance import geometric_mean
from dynamometer.results.statistics.summary import is_counted
from dynamometer.results.values.comparison import Cell, Column, Share, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dynamometer.results.comparison.entries import Entry
    from dynamometer.results.comparison.judging import Judged
    from dynamometer.results.comparison.pairing import Pair, Pairs
    from dynamometer.results.comparison.quantities import Kind
    from dynamometer.results.values.records import Ratio

    _Sides = tuple[list[Entry], list[Entry]]
    _Average = Callable[[Sequence[float]], float]

_NAMES = {"torchbench": "Torchbench", "huggingface": "Huggingface", "timm_models": "TIMM models"}
"""Suites as that table calls them, in its order."""

DYNAMIC = "Dynamic"


@dataclass(frozen=True)
class _Place:
    """Where an arm of a case counts: in which table, and in which column of it."""

    mode: str
    arm: str
    dtype: str
    device: str
    group: str

    @property
    def title(self) -> tuple[str, str, str, str]:
        """What the table is called by."""
        return self.mode, self.arm, self.dtype, self.device


def tables(pairs: Pairs, judged: Iterable[Judged]) -> list[Table]:
    """Return a table for each arm, mode, dtype and device; training first, as theirs.

    Args:
        pairs: all arms of all cases.
        judged: what was judged of them.
    """
    by_pair: dict[int, dict[str, Judged]] = {}
    for each in judged:
        by_pair.setdefault(id(each.pair), {})[each.kind.name] = each
    pairs = _counted(pairs)
    own: dict[_Place, _Sides] = {}
    common: dict[_Place, list[Pair]] = {}
    for pair in pairs.common:
        place = _place(pair.after, pair.before)
        common.setdefault(place, []).append(pair)
        sides = own.setdefault(place, ([], []))
        sides[0].append(pair.before)
        sides[1].append(pair.after)
    arms = {(each.before.arm, each.after.arm) for each in pairs.common}
    [(was, now)] = arms if len(arms) == 1 else [("", "")]
    for index, entries in enumerate((pairs.gone, pairs.new)):
        for entry in entries:
            # Of two arms that are taken for one, what one lacks counts with them.
            is_of_two = was != now and entry.arm == (was, now)[index]
            place = _place(entry)
            place = replace(place, arm=_of_two(was, now)) if is_of_two else place
            own.setdefault(place, ([], []))[index].append(entry)
    dtypes, devices = {each.dtype for each in own}, {each.device for each in own}
    return [
        Table(
            title=", ".join(
                filter(None, (mode, arm, dtype * (len(dtypes) > 1), device * (len(devices) > 1)))
            ),
            columns=tuple(
                _column(place, own[place], common.get(place, []), by_pair)
                for place in sorted(own, key=_column_order)
                if place.title == (mode, arm, dtype, device)
            ),
        )
        for mode, arm, dtype, device in sorted({each.title for each in own}, key=_title_order)
    ]


def _counted(pairs: Pairs) -> Pairs:
    """Leave what a run's own figures are of: cases without overrides, or all where none is without.

    A pair of which one side counts alone is there as an arm that the other side lacks.
    """
    sides = (
        [*(each.before for each in pairs.common), *pairs.gone],
        [*(each.after for each in pairs.common), *pairs.new],
    )
    left_out = [
        {id(each) for each in side if each.has_overrides}
        if any(not each.has_overrides for each in side)
        else set[int]()
        for side in sides
    ]
    common = tuple(
        each
        for each in pairs.common
        if id(each.before) not in left_out[0] and id(each.after) not in left_out[1]
    )
    of_both = {id(entry) for each in common for entry in (each.before, each.after)}
    gone, new = (
        tuple(each for each in side if id(each) not in of_both | ids)
        for side, ids in zip(sides, left_out, strict=True)
    )
    return replace(pairs, common=common, gone=gone, new=new)


def _place(entry: Entry, before: Entry | None = None) -> _Place:
    was = entry.arm if before is None else before.arm
    arm = entry.arm if was == entry.arm else _of_two(was, entry.arm)
    identity = entry.identity
    mode, dtype, device = (identity.get(name, "") for name in ("mode", "dtype", "device"))
    return _Place(mode, arm, dtype, device, entry.group)


def _of_two(before: str, after: str) -> str:
    return f"{before} -> {after}"


def _title_order(title: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    return title[0] != "training", title


def _column_order(place: _Place) -> tuple[bool, int, str]:
    known = list(_NAMES)
    rank = known.index(place.group) if place.group in known else len(known)
    return place.group == DYNAMIC, rank, place.group


def _column(
    place: _Place, own: _Sides, common: Sequence[Pair], judged: Mapping[int, Mapping[str, Judged]]
) -> Column:
    both = [
        each for each in common if each.both_passed and not each.doubt and not each.why_incomparable
    ]

    def of_both(kind: Kind, mean: _Average) -> Cell:
        measured = [
            each for each in both
            if _condition(kind, each.before) == _condition(kind, each.after) is not None
        ]  # fmt: skip
        ratios = [
            found[kind.name].ratio
            for each in measured
            if kind.name in (found := judged.get(id(each), {}))
        ]
        sides = [each.before for each in measured], [each.after for each in measured]
        return _cell(kind, mean, sides, ratios)

    return Column(
        name=_NAMES.get(place.group, place.group or "all"),
        passrate=(_share(own[0]), _share(own[1])),
        speedup=_cell(SPEEDUP, _geometric, own),
        compile_time=_cell(COMPILE_TIME, statistics.fmean, own),
        memory_ratio=_cell(MEMORY_RATIO, statistics.fmean, own),
        common_passrate=_shares(common),
        common_speedup=of_both(SPEEDUP, _geometric),
        common_compile_time=of_both(COMPILE_TIME, statistics.fmean),
        common_memory_ratio=of_both(MEMORY_RATIO, statistics.fmean),
    )


def _geometric(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def _condition(kind: Kind, entry: Entry) -> str | None:
    """Return under which condition a quantity was measured; `None` if it wasn't."""
    found = entry.quantities.get(kind.name)
    return None if found is None else found.condition or "any"


def _cell(kind: Kind, mean: _Average, sides: _Sides, ratios: Sequence[Ratio] = ()) -> Cell:
    """Average a quantity over the models of each side that passed and were not disturbed."""
    was, now = (
        [
            each.quantities[kind.name].value
            for each in side
            if each.passed and not each.doubt and kind.name in each.quantities
        ]
        for side in sides
    )
    return Cell(
        before=mean(was) if was else None,
        after=mean(now) if now else None,
        n_before=len(was),
        n_after=len(now),
        ratio=geometric_mean(ratios),
    )


def _share(entries: Iterable[Entry]) -> Share:
    counted = [each for each in entries if is_counted(each.outcome)]
    return Share(passed=sum(each.passed for each in counted), counted=len(counted))


def _shares(common: Iterable[Pair]) -> tuple[Share, Share]:
    counted = [
        each
        for each in common
        if is_counted(each.before.outcome) and is_counted(each.after.outcome)
    ]
    return _share(each.before for each in counted), _share(each.after for each in counted)
