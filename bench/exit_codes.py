"""Exit codes of programs that a script has started (docs/reliability.md has what they mean)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ALL_WAS_RUN = {0, 1}
"""Models may have failed, or have ended otherwise than was expected: these are results."""


def worst(codes: Iterable[int]) -> int:
    """Return the highest code that says that something could not be run, or else 0.

    Args:
        codes: as `subprocess` has them, where those of signals are negative; shells add 128.
    """
    return max((128 - each if each < 0 else each for each in {*codes} - _ALL_WAS_RUN), default=0)
