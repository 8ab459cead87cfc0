"""The tail of Student's t, beside scipy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from dynamometer.results.history.student_t import two_sided_p

DF = st.integers(1, 5000)


@given(st.floats(0.0, 60.0), DF)
def test_it_is_that_of_scipy(t: float, df: int) -> None:
    """Wherever it is in the tail, down to the smallest there are."""
    expected = 2 * float(special.stdtr(df, -t))
    assert two_sided_p(t, df) == pytest.approx(expected, rel=1e-10, abs=1e-300)


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
