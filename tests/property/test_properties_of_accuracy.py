"""What no set of runs excuses: a number that is far from all that they gave."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from dynamometer.dynamo.accuracy.accuracy import Comparison, compare
from dynamometer.dynamo.accuracy.deviation import multiples_of
from dynamometer.dynamo.accuracy.expected import Expected
from dynamometer.dynamo.accuracy.leaves import Leaves, collect

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 8e-3, torch.float16: 1e-3}
ODD = [math.nan, math.inf, -math.inf, 0.0, float(torch.finfo(torch.float16).min)]
SIZES = st.floats(0.125, 8.0).map(lambda size: round(size, 3))
NUMBERS = st.one_of(SIZES, SIZES.map(lambda size: -size), st.sampled_from(ODD))
VALUES = st.lists(NUMBERS, min_size=1, max_size=12)
ROUNDINGS = st.lists(st.integers(-2, 2), min_size=12, max_size=12)
LOST = st.sets(st.integers(0, 11), max_size=3)
"""Elements of which a run has no number, or another kind of none."""

RUNS = st.lists(st.tuples(ROUNDINGS, LOST), min_size=2, max_size=4)


def _run(values: list[float], run: tuple[list[int], set[int]], dtype: torch.dtype) -> torch.Tensor:
    """Return eager's values off by a few roundings, without some numbers."""
    roundings, lost = run
    eps = torch.finfo(dtype).eps
    exact = torch.tensor(values, dtype=torch.float64)
    off = exact * (1 + eps * torch.tensor(roundings[: len(values)]))
    off[[index for index in lost if index < len(values)]] = math.nan
    return off.to(dtype)


def _judged(
    values: list[float], runs: list[tuple[list[int], set[int]]], found: torch.Tensor
) -> Comparison:
    dtype = found.dtype
    eager, truth = (_run(values, run, dtype) for run in runs[:2])
    others: list[Leaves] = [collect(_run(values, run, dtype)) for run in runs[2:]]
    expected = Expected.of(collect(eager), collect(truth.double()), others, TOLERANCES[dtype])
    return compare(expected, collect(found), TOLERANCES[dtype], multiples_of(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@given(
    values=VALUES, runs=RUNS, place=st.integers(0, 11), wrong=st.sampled_from([50.0, -3e4, 0.02])
)
def test_no_run_excuses_a_number_that_none_gave(
    dtype: torch.dtype,
    values: list[float],
    runs: list[tuple[list[int], set[int]]],
    place: int,
    wrong: float,
) -> None:
    """Whoever has no number says nothing of numbers."""
    assume(place < len(values) and values[place] != 0)
    found = _run(values, runs[0], dtype)
    if math.isnan(float(found[place])):  # eager's own: then its runs decide what may be there
        assume(all(place in run[1] for run in runs))
    found[place] = wrong
    assume(abs(float(found[place]) - values[place]) > 0.1)
    assert _judged(values, runs, found).mismatch


@pytest.mark.parametrize("dtype", DTYPES)
@given(values=VALUES, runs=RUNS)
def test_eager_is_never_accused_of_itself(
    dtype: torch.dtype, values: list[float], runs: list[tuple[list[int], set[int]]]
) -> None:
    """Whatever float64 and the other runs came to."""
    assert _judged(values, runs, _run(values, runs[0], dtype)).mismatch is None
