"""Where everything random in a run is drawn from."""

from __future__ import annotations

import random


def drawn_from(*parts: object) -> random.Random:
    """Return a source of random orders, the same wherever it is asked for with the same parts.

    Args:
        parts: the run's seed, then what the orders are of.
    """
    return random.Random("/".join(map(str, parts)))  # noqa: S311  an order is no secret
