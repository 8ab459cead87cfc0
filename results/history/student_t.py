"""The tail of Student's t distribution. Pure.

scipy has it, too, and takes longer to import than a year of runs takes to be searched.
"""

from __future__ import annotations

import math


def two_sided_p(t: float, df: float) -> float:
    """Return how often the absolute value of t would be that or more by chance.

    It is the regularized incomplete beta function of df/2 and 1/2 at df/(df + t^2), to some 8
    digits up to a million degrees of freedom, also where it is tiny.

    Args:
        t: at least 0.
        df: degrees of freedom, at least 1.

    Source:
        NIST Digital Library of Mathematical Functions, 8.17.22 (continued fraction), 8.17.4
        (symmetry); evaluated after W. J. Lentz, Applied Optics 15(3), 1976, as modified by
        I. J. Thompson and A. R. Barnett, J. Comput. Phys. 64(2), 1986.
    """
    a, b = df / 2, 0.5
    below = t * t / df  # so that x is 1 / (1 + below), and 1 - x isn't a difference
    if math.isinf(below):
        return 0.0
    x, rest = 1 / (1 + below), below / (1 + below)
    if not rest:
        return 1.0
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    factor = math.exp(scale - a * math.log1p(below) + b * math.log(rest))
    if x < (a + 1) / (a + b + 2):  # where the fraction converges fast
        return factor * _fraction(a, b, x) / a
    return 1 - factor * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, from its front."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            c, d = 1 + term / c, 1 / (1 + term * d)
            change *= c * d
        found *= change
        if abs(change - 1) < _PRECISE:
            break
    return found


_MOST_TERMS = 1000
_PRECISE = 1e-15
