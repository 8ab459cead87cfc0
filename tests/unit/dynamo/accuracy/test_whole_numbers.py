"""Indices, counts and truth values: what no run gave, and is right."""

from __future__ import annotations

import numpy as np
import torch

from dynamometer.dynamo.accuracy.accuracy import compare
from dynamometer.dynamo.accuracy.deviation import IN_HALF
from dynamometer.dynamo.accuracy.expected import Expected
from dynamometer.dynamo.accuracy.leaves import Leaves, collect

PLACES = 1000


def _flipped(*places: int) -> Leaves:
    values = torch.zeros(PLACES, dtype=torch.bool)
    values[list(places)] = True
    return collect(values)


def test_as_many_truth_values_may_be_new_as_runs_had_alone() -> None:
    """What each of three runs decides alone in one place, an arm does in as many."""
    eager, truth = _flipped(*range(20)), _flipped()
    runs = [_flipped(*range(20), 100 + run) for run in range(3)]
    expected = Expected.of(eager, truth, runs)
    found = compare(expected, _flipped(500, 600), 1e-3, IN_HALF)
    assert found.mismatch is None
    assert found.loose
    assert compare(expected, _flipped(*range(500, 510)), 1e-3, IN_HALF).mismatch


def test_not_more_than_eager_is_off() -> None:
    """An arm that is farther from float64 than eager is wrong."""
    runs = [_flipped(100 + run) for run in range(5)]
    assert compare(Expected.of(_flipped(), _flipped(), runs), _flipped(500), 1e-3).mismatch


def test_no_truth_value_is_new_where_all_runs_agree() -> None:
    """Without a run that decides otherwise there is nothing to decide."""
    assert compare(
        Expected.of(_flipped(1), _flipped(), [_flipped(1)]), _flipped(500), 1e-3
    ).mismatch


def test_counts_lie_in_the_range_of_runs() -> None:
    """How many are beyond a threshold differs from run to run."""
    eager, *runs = (collect(torch.tensor([count, 7])) for count in (4100, 4108, 4112, 4104))
    expected = Expected.of(eager, eager, runs)
    assert compare(expected, collect(torch.tensor([4115, 7])), 1e-3).mismatch is None
    assert compare(expected, collect(torch.tensor([4150, 7])), 1e-3).mismatch
    assert compare(expected, collect(torch.tensor([4108, 8])), 1e-3).mismatch


def test_indices_are_no_counts() -> None:
    """One that three runs draw otherwise, of ten, may not be any between these."""
    eager, *runs = (collect(torch.tensor([index, *range(9)])) for index in (3, 500, 900, 17))
    expected = Expected.of(eager, eager, runs)
    assert compare(expected, collect(torch.tensor([400, *range(9)])), 1e-3).mismatch


def test_of_two_values_one_is_no_count() -> None:
    """An index that no run gave is wrong, between others or not."""
    expected = Expected.of(collect(torch.tensor([3])), None, [collect(torch.tensor([9]))])
    assert compare(expected, collect(torch.tensor([6])), 1e-3).mismatch


def test_whole_numbers_in_floating_point_are_whole() -> None:
    """One of 20,000 is less than the tolerance."""
    eager, truth, run = (collect(torch.tensor([20000.0])) for _ in range(3))
    expected = Expected.of(eager, truth, [run])
    assert compare(expected, collect(torch.tensor([19999.0])), 1e-4).mismatch
    assert compare(expected, collect(torch.tensor([20000.002])), 1e-4).mismatch is None


def test_arrays_are_looked_into() -> None:
    """A mask that is lost shows; numbers in records are compared as numbers."""
    numbers = np.ma.MaskedArray(np.arange(3.0), mask=[True, False, False])
    assert set(collect(numbers)) == {"output.data", "output.mask"}
    assert compare(Expected.of(collect(numbers)), collect(np.arange(3.0)), 1e-4).mismatch
    records = np.array([(1.0, 2)], dtype=[("score", "f4"), ("label", "i4")])
    nearly = np.array([(1.0 + 1e-6, 2)], dtype=records.dtype)
    assert compare(Expected.of(collect(records)), collect(nearly), 1e-4).mismatch is None
    objects = np.array([[torch.ones(2), None]], dtype=object)
    assert compare(Expected.of(collect(objects)), collect(objects.copy()), 1e-4).mismatch is None
