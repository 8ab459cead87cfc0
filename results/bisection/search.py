"""Where the first bad point may be, and which to look at next. Pure; no torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dynamometer.results.bisection.deciding import Nearer

if TYPE_CHECKING:
    from collections.abc import Mapping

WRONG_P = 0.05
"""Of a whole search: that it names a point that is not the first bad one, about."""

MOST_UNCLEAR = 3
"""Points that stay unclear before a search ends: those beside them would be as well."""


def steps(points: int) -> int:
    """Return how many points between the ends are to be decided, where each can be.

    Args:
        points: of the search with its ends; at least two.
    """
    return max(1, math.ceil(math.log2(points - 1)))


def wrong_p_of_look(points: int, looks: int) -> float:
    """Return how probably one look at a point may mislead, so that all together do by `WRONG_P`.

    Args:
        points: of the search.
        looks: at a point, at most: after each of its runs.
    """
    return WRONG_P / (steps(points) * looks)


def ends(points: int, decided: Mapping[int, Nearer]) -> tuple[int, int]:
    """Return the last point that is known to be good, and the first after it that is bad.

    Args:
        points: of the search; the first is good and the last bad.
        decided: what is known of those between.
    """
    bad = [number for number, each in decided.items() if each is Nearer.BAD]
    first_bad = min([*bad, points - 1])
    good = [n for n, each in decided.items() if each is Nearer.GOOD and n < first_bad]
    return max([0, *good]), first_bad


def next_point(points: int, decided: Mapping[int, Nearer]) -> int | None:
    """Return the point to be looked at next: in the middle, or beside it where nothing can be told.

    `None` where every point between the ends has been looked at, or too many can't be told.
    """
    if sum(each is Nearer.UNCLEAR for each in decided.values()) >= MOST_UNCLEAR:
        return None
    last_good, first_bad = ends(points, decided)
    left = [each for each in range(last_good + 1, first_bad) if each not in decided]
    middle = (last_good + first_bad) // 2
    return min(left, key=lambda each: (abs(each - middle), each), default=None)
