"""How many names are written as one short text. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def first_of(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """Return the first of some names, and how many more there are: `a, b, c, and 2 more`.

    Args:
        names: in the order in which they are told.
        most: of them that are told.
        between: what separates them.
    """
    rest = [f"and {len(names) - most} more"] * (len(names) > most)
    return between.join([*names[:most], *rest])
