"""Random numbers that a run repeats: orders, padding of the heap, everything drawn."""

from __future__ import annotations

import random


def seeded_rng(*parts: object) -> random.Random:
    """Return a random generator; the same parts give the same numbers in every process.

    Args:
        parts: the run's seed, then what tells this use from others.
    """
    return random.Random("/".join(map(str, parts)))  # noqa: S311  nothing of it is a secret
