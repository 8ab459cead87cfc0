from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from dynamometer.dynamo.accuracy import (
    TOLERANCES,
    Comparison,
    Criterion,
    leaves,
    relative_error,
    tolerance_of,
)
from dynamometer.dynamo.accuracy import compare as compare_by
from dynamometer.results.cases import Dtype, Mode

TOLERANCE = 1e-4


def compare(expected: object, actual: object, tolerance: float) -> Comparison:
    """Compare by a tolerance alone."""
    return compare_by(expected, actual, Criterion(tolerance))


@dataclass
class Output:
    """What a model may return."""

    logits: object
    loss: object = None


class ModelOutput(OrderedDict[str, Any]):
    """A mapping with attributes, as transformers returns."""


class Layer:
    """One layer of a key-value cache."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Hold the tensors."""
        self.keys, self.values = keys, values


class Cache:
    """A key-value cache, as transformers has."""

    def __init__(self, *layers: Layer) -> None:
        """Hold the layers."""
        self.layers = layers


def tensor(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Make a vector."""
    return torch.tensor(values, dtype=dtype)


X = tensor(1.0, -2.0, 3.0)
F32 = "torch.float32"
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("tree", "paths"),
    [
        (X, ["output"]),
        ((X, X), ["output[0]", "output[1]"]),
        ([X, (X,)], ["output[0]", "output[1][0]"]),
        ({"a": X, "b": {"c": X}}, ["output.a", "output.b.c"]),
        (ModelOutput(logits=X), ["output.logits"]),
        (Output(X, loss=1.0), ["output.logits", "output.loss"]),
        (Output(X), ["output.logits"]),
        ((None, X), ["output[1]"]),
        ("text", ["output"]),
        (Cache(Layer(X, X)), ["output.layers[0].keys", "output.layers[0].values"]),
        (None, []),
        ((), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_leaves_have_paths(tree: object, paths: list[str]) -> None:
    """Every leaf is named as one would write it in Python; `None` is no leaf."""
    assert [path for path, _ in leaves(tree)] == paths


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (X, X.clone()),
        (X, X * (1 + 0.5 * TOLERANCE)),
        ((X, X), [X, X]),
        ({"a": X}, ModelOutput(a=X)),
        ({"logits": X}, Output(X)),
        ({"a": X, "b": None}, {"a": X}),
        (tensor(NAN, 1.0), tensor(NAN, 1.0)),
        (tensor(INF, -INF, 1.0), tensor(INF, -INF, 1.0)),
        (tensor(0.0), tensor(-0.0)),
        (torch.empty(0, 3), torch.empty(0, 3)),
        (tensor(1, 2, dtype=torch.int64), tensor(1, 2, dtype=torch.int64)),
        (torch.tensor([True, False]), torch.tensor([True, False])),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 2j + 1e-6])),
        (torch.zeros(3), torch.full((3,), 1e-6)),
        (X.to(torch.bfloat16), X.to(torch.bfloat16)),
        (torch.eye(2).to_sparse(), torch.eye(2).to_sparse()),
        (X.requires_grad_(requires_grad=False), X.clone().requires_grad_()),
        (7, 7),
        (2.5, 2.5),
        (2.5, 2.5 * (1 + 0.5 * TOLERANCE)),
        (NAN, NAN),
        ("text", "text"),
        (object(), object()),
        (None, None),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0])),
    ],
    ids=lambda value: str(value).replace("\n", " ")[:40],
)
def test_what_agrees(expected: object, actual: object) -> None:
    """Equal trees agree, whatever they are made of, and small errors are tolerated."""
    assert compare(expected, actual, TOLERANCE).mismatch is None


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        ((X, X), (X, X + 1), ["output[1]", "error 0.333 exceeds the tolerance 0.0001"]),
        ({"a": X}, {"a": X[:2]}, ["output.a", f"shape (3,) of {F32}, got shape (2,) of {F32}"]),
        (X, X[None], ["output", f"shape (3,) of {F32}, got shape (1, 3) of {F32}"]),
        (X, X.double(), ["output", f"shape (3,) of {F32}, got shape (3,) of torch.float64"]),
        (X, [1.0, -2.0, 3.0], ["different structure", "output[0]"]),
        (X, 1.0, ["output", "expected a tensor, got float"]),
        (1.0, torch.tensor(1.0), ["output", "expected 1.0, got tensor(1.)"]),
        ((X, X), (X,), ["different structure", "output[1]"]),
        ((X,), (X, X), ["different structure", "output[1]"]),
        ({"a": X}, {"b": X}, ["different structure", "output.a", "output.b"]),
        ({"a": X, "b": X}, {"a": X, "b": None}, ["different structure", "output.b"]),
        (Output(X, 1), Output(X, 2), ["output.loss", "expected 1, got 2"]),
        (1, 1.0, ["expected 1, got 1.0"]),
        (1, True, ["expected 1, got True"]),
        ("a", "b", ["expected 'a', got 'b'"]),
        (NAN, 1.0, ["output: error inf"]),
        (1.0, NAN, ["output: error inf"]),
        (1.0, 1.01, ["output: error 0.01"]),
        (tensor(1.0, NAN), tensor(1.0, 2.0), ["output", "error inf"]),
        (tensor(1.0, 2.0), tensor(1.0, NAN), ["output", "error inf"]),
        (tensor(1.0, INF), tensor(1.0, -INF), ["output", "error"]),
        (tensor(1.0, 2.0), tensor(1.0, INF), ["output", "error"]),
        (torch.tensor([1 + 2j]), torch.tensor([1 - 2j]), ["output", "error"]),
        (torch.tensor([True]), torch.tensor([False]), ["output: 1 elements differ"]),
        (torch.tensor([10**9, 1]), torch.tensor([10**9 + 1, 1]), ["output: 1 elements differ"]),
        (torch.arange(5), torch.arange(5).flip(0), ["output: 4 elements differ"]),
        (X, X.double()[:2], [f"shape (3,) of {F32}, got shape (2,) of torch.float64"]),
        (tensor(0.0), tensor(1e-3), ["output", "error"]),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0]), ["output"]),
    ],
    ids=lambda value: str(value).replace("\n", " ")[:40],
)
def test_what_does_not_agree(expected: object, actual: object, words: list[str]) -> None:
    """A mismatch names the path and what is wrong there."""
    found = compare(expected, actual, TOLERANCE)
    assert found.mismatch is not None
    for word in words:
        assert word in found.mismatch
    assert found.max_error > TOLERANCE


def test_one_element_ten_times_over_the_tolerance_is_found() -> None:
    """One wrong element among many is not averaged away."""
    expected = torch.linspace(-1, 1, 10_001)
    actual = expected.clone()
    actual[1234] += 10 * TOLERANCE
    found = compare({"y": expected}, {"y": actual}, TOLERANCE)
    assert found.mismatch is not None
    assert found.mismatch.startswith("output.y: error 0.001")
    assert found.max_error == pytest.approx(10 * TOLERANCE, rel=1e-3)


def test_a_swapped_output_is_found() -> None:
    """Outputs of equal shape in the wrong order are not eager's."""
    first, second = torch.rand(5), torch.rand(5) + 1
    found = compare((first, second), (second, first), TOLERANCE)
    assert found.mismatch is not None
    assert found.mismatch.startswith("output[0]")


def test_errors_are_relative_to_the_largest_magnitude_of_the_leaf() -> None:
    """A small element next to a large one is held to the large one's scale."""
    expected = tensor(1000.0, 0.001)
    assert compare(expected, expected + tensor(0.0, 0.05), TOLERANCE).mismatch is None
    assert compare(expected[1:], expected[1:] + 0.05, TOLERANCE).mismatch is not None


def test_the_largest_error_of_all_leaves_is_given() -> None:
    """What agrees still tells how well."""
    outputs = [X, X * (1 + 5e-5), X * (1 + 2e-5)]
    found = compare([X, X, X], outputs, TOLERANCE)
    assert found.mismatch is None
    assert found.max_error == pytest.approx(5e-5, rel=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_without_tolerance_the_last_bit_counts(dtype: torch.dtype) -> None:
    """Two eager runs that differ in one bit differ."""
    one = torch.ones(3, dtype=dtype)
    other = one.clone()
    other[1] += torch.finfo(dtype).eps
    assert compare(one, one.clone(), 0.0).mismatch is None
    assert compare(one, other, 0.0).mismatch is not None


def test_without_tolerance_large_integers_are_told_apart() -> None:
    """Integers that share a float are not equal."""
    expected = torch.tensor([2**53], dtype=torch.int64)
    assert compare(expected, expected + 1, 0.0).mismatch is not None


def test_without_tolerance_nan_and_infinity_still_agree_with_themselves() -> None:
    """A model that gives NaN twice is deterministic."""
    expected = tensor(NAN, INF, 1.0)
    assert compare(expected, expected.clone(), 0.0).mismatch is None


def test_conjugate_views_are_compared() -> None:
    """A complex output that torch conjugates lazily is a tensor like any other."""
    expected = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert compare(expected, expected + 1e-6, TOLERANCE).mismatch is None


@pytest.mark.parametrize(
    ("expected", "actual"),
    [((1.0, NAN), (1.0, 2.0)), ((1.0, 2.0), (1.0, NAN)), ((1.0, 2.0), (1.0, INF))],
)
def test_not_finite_where_the_other_is_means_an_infinite_error(
    expected: tuple[float, float], actual: tuple[float, float]
) -> None:
    """NaN or infinity on one side alone is as wrong as can be."""
    assert relative_error(tensor(*expected), tensor(*actual)) == math.inf


def test_relative_error_by_hand() -> None:
    """The largest deviation over the largest finite magnitude expected."""
    expected, actual = tensor(-4.0, 1.0, INF), tensor(-4.0, 1.5, INF)
    assert relative_error(expected, actual) == pytest.approx(0.5 / 4)
    assert relative_error(expected, expected.clone()) == 0.0


class Knot:
    """An object that holds itself."""

    def __init__(self) -> None:
        """Tie it."""
        self.x, self.self = X, self


def test_an_object_within_itself_is_walked_once() -> None:
    """A cycle ends."""
    assert [path for path, _ in leaves(Knot())] == ["output.x"]


def test_strides_are_part_of_a_result() -> None:
    """A view of other strides is found; a dimension of one element has no stride to speak of."""
    expected = torch.rand(3, 4)
    view = expected.t().contiguous().t()
    found = compare({"y": expected}, {"y": view}, TOLERANCE).mismatch
    assert found is not None
    assert found.startswith("output.y: expected shape (3, 4)")
    assert "with strides (1, 3)" in found
    single = torch.rand(1, 5, 1)
    assert compare(single, single.transpose(0, 2), TOLERANCE).mismatch is None


def test_roots_of_their_own_have_no_common_name() -> None:
    """Several results are compared at once, each under its own name."""
    found = compare_by({"loss": X, "inputs": X}, {"loss": X, "inputs": X + 1}, Criterion(0.1), "")
    assert (found.mismatch or "").startswith("inputs: error")


def by_float64(eager_error: float, arm_error: float) -> Comparison:
    """Compare where eager and an arm miss the truth by so much, relative to its magnitude."""
    truth = torch.ones(1000, dtype=torch.float64)
    expected, actual = (truth * (1 + error) for error in (eager_error, -arm_error))
    criterion = Criterion(TOLERANCE, reference=lambda: {"output": truth})
    return compare_by(expected.float(), actual.float(), criterion)


def test_an_arm_may_err_as_eager_does() -> None:
    """Where eager itself is inaccurate an arm over the tolerance is absolved."""
    assert by_float64(0.01, 0.02).mismatch is None
    assert by_float64(0.01, 0.02).max_error == pytest.approx(0.03, rel=0.05)


@pytest.mark.parametrize(("eager", "arm"), [(1e-6, 1e-3), (0.001, 0.01), (0.2, 0.2)])
def test_an_arm_may_not_err_much_more_than_eager(eager: float, arm: float) -> None:
    """Nor is anything absolved where eager and float64 computed different things."""
    mismatch = by_float64(eager, arm).mismatch or ""
    assert "exceeds the tolerance 0.0001; against float64 eager errs by" in mismatch


def test_one_wrong_element_is_not_absolved() -> None:
    """The mean square error of many elements hides none."""
    truth = torch.linspace(-1, 1, 10_001, dtype=torch.float64)
    expected = truth.float()
    actual = expected.clone()
    actual[77] += 10 * TOLERANCE
    criterion = Criterion(TOLERANCE, reference=lambda: {"output": truth})
    assert compare_by(expected, actual, criterion).mismatch is not None


def test_float64_is_not_asked_for_where_all_is_well() -> None:
    """The reference costs as much as a run of eager."""

    def reference() -> dict[str, Any]:
        pytest.fail("asked for")

    assert compare_by(X, X.clone(), Criterion(TOLERANCE, reference)).mismatch is None


def test_cosine_where_asked() -> None:
    """Directions are compared only where elements are over the tolerance."""
    close, opposite = X + tensor(0.05, 0.0, 0.0), -X
    assert compare(X, close, TOLERANCE).mismatch is not None
    criterion = Criterion(TOLERANCE, cosine=True)
    assert compare_by(X, close, criterion).mismatch is None
    assert "cosine similarity -1.0000" in (compare_by(X, opposite, criterion).mismatch or "")


def test_every_case_has_a_tolerance() -> None:
    """For each device type and dtype; training's is never the smaller."""
    assert set(TOLERANCES) == {(device, dtype) for device in ("cpu", "cuda") for dtype in Dtype}
    for device, dtype in TOLERANCES:
        inference = tolerance_of(device, dtype, Mode.INFERENCE)
        assert 0 < inference <= tolerance_of(device, dtype, Mode.TRAINING) < 0.1


@pytest.mark.parametrize("root", ["gradients", "parameters"])
def test_rounding_of_what_is_zero_is_not_compared(root: str) -> None:
    """A bias that a normalisation undoes has a gradient of rounding errors, never two alike."""
    expected = {root: {"weight": tensor(1.0, 2.0), "bias": tensor(1e-8, -2e-8)}}
    actual = {root: {"weight": tensor(1.0, 2.0), "bias": tensor(-1e-8, 1e-8)}}
    criterion = Criterion(tolerance_of("cpu", Dtype.FLOAT32, Mode.TRAINING))
    assert compare_by(expected, actual, criterion, "").mismatch is None
    wrong = {root: {"weight": tensor(1.0, 2.0), "bias": tensor(1e-3, 0.0)}}
    found = compare_by(expected, wrong, criterion, "").mismatch
    assert found is not None
    assert found.startswith(f"{root}.bias: error")


def test_outputs_are_each_judged_by_their_own_magnitude() -> None:
    """A small output beside a large one is an output all the same."""
    expected, actual = (X * 1e6, X * 1e-6), (X * 1e6, X * 2e-6)
    assert compare(expected, actual, TOLERANCE).mismatch is not None
