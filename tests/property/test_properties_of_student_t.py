"""The tail of Student's t, beside the same integral with 40 digits."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynamometer.results.history.student_t import two_sided_p

DF = st.integers(1, 5000)


def exact(t: float, df: int) -> float:
    """Integrate with more digits than cancel out; scipy's own is 1 for any small t."""
    with mpmath.workdps(40):
        x = df / (df + mpmath.mpf(t) ** 2)
        return float(mpmath.betainc(mpmath.mpf(df) / 2, 0.5, 0, x, regularized=True))


@given(st.floats(0.0, 60.0), DF)
@example(6.545897519098125e-09, 1)
def test_it_is_exact(t: float, df: int) -> None:
    """Wherever it is in the tail, down to the smallest there are."""
    assert two_sided_p(t, df) == pytest.approx(exact(t, df), rel=1e-10, abs=1e-300)


@given(st.floats(0.0, 1e150), DF)
def test_it_is_a_probability(t: float, df: int) -> None:
    """However far away."""
    assert 0 <= two_sided_p(t, df) <= 1 + 1e-12
    assert two_sided_p(2 * t, df) <= two_sided_p(t, df) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("t", "df", "p"),
    [
        (0.0, 7, 1.0),
        (1.0, 1, 0.5),  # Cauchy
        (math.sqrt(2), 2, 1 - math.sqrt(2) / 2),  # in closed form
        (12.706204736432095, 1, 0.05),  # of any table
        (1.9719, 200, 0.05),
    ],
)
def test_values_that_are_known(t: float, df: int, p: float) -> None:
    """In closed form, or from tables."""
    assert two_sided_p(t, df) == pytest.approx(p, rel=2e-5)
