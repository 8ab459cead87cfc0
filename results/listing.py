"""How many names are written as one short text. Pure; no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def first_of(names: Sequence[str], limit: int = 3, separator: str = ", ") -> str:
    """Return the first of some names, and how many more there are: `a, b, c, and 2 more`.

    Args:
        names: in the order in which they are told.
        limit: how many of them are told.
        separator: what stands between two.
    """
    rest = [f"and {len(names) - limit} more"] * (len(names) > limit)
    return separator.join([*names[:limit], *rest])
