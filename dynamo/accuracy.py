"""Whether an arm computes what eager computes, leaf by leaf over the tree of its results."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dynamometer.results.cases import Dtype, Mode

TOLERANCES: Mapping[tuple[str, Dtype], tuple[float, float]] = {
    ("cpu", Dtype.FLOAT32): (1e-4, 1e-3),
    ("cuda", Dtype.FLOAT32): (1e-3, 1e-2),
    ("cpu", Dtype.FLOAT16): (1e-2, 2e-2),
    ("cuda", Dtype.FLOAT16): (1e-2, 2e-2),
    ("cpu", Dtype.BFLOAT16): (5e-2, 8e-2),
    ("cuda", Dtype.BFLOAT16): (5e-2, 8e-2),
    ("cpu", Dtype.AMP): (5e-2, 8e-2),  # autocast computes in bfloat16 there
    ("cuda", Dtype.AMP): (1e-2, 2e-2),  # and in float16 here
}
"""Largest accepted error in inference and in training, by device type and dtype.

In float32 those of PyTorch's own harness (`benchmarks/dynamo`: TorchBench 1e-4, the other suites
and GPUs 1e-3, where convolutions use TF32; ten times as much in training). In half precision a few
roundings: `eps` is 1e-3 in float16 and 8e-3 in bfloat16, and PyTorch's harness goes up to 8e-2.
"""

EAGER_ERROR_MULTIPLE = 3.0
"""An arm may err this much more than eager does, both against float64: PyTorch's harness allows 2
to 3 times eager's root mean square error (`same` in `torch/_dynamo/utils.py`)."""

SMALLEST_COSINE = 0.99
"""Where a model asks for cosine similarity, as in PyTorch's harness."""

_JUDGED_TOGETHER = ("gradients", "parameters")
"""Results whose leaves have a scale in common (`_negligible_magnitudes`)."""

_USABLE_EAGER_ERROR = 0.1
"""If eager itself is this far from float64, the two did not compute the same thing: a random mask
drawn in another precision is another mask."""


@dataclass(frozen=True)
class Comparison:
    """How two trees differ.

    Attributes:
        max_error: largest deviation of a leaf, relative to the largest magnitude in it.
        mismatch: the first leaf that is wrong: its path, and what is wrong with it.
    """

    max_error: float
    mismatch: str | None


@dataclass(frozen=True)
class Criterion:
    """When a floating-point leaf is right.

    Attributes:
        tolerance: largest accepted deviation, relative to the largest magnitude in the leaf.
        reference: gives the leaves of the same results in float64, by path; asked only if a leaf
            is over the tolerance. It absolves an arm that errs no more than
            `EAGER_ERROR_MULTIPLE` times as much as eager, at the most and in the mean square.
        cosine: compare directions instead: the cosine is `SMALLEST_COSINE` or more.
    """

    tolerance: float
    reference: Callable[[], Mapping[str, Any]] = dict
    cosine: bool = False


def tolerance_of(device: str, dtype: Dtype, mode: Mode) -> float:
    """Give the largest accepted error of a case."""
    inference, training = TOLERANCES[device, dtype]
    return training if mode is Mode.TRAINING else inference


def compare(
    expected: object, actual: object, criterion: Criterion, path: str = "output"
) -> Comparison:
    """Compare two trees: names, shapes, dtypes, strides and values.

    NaN agrees with NaN, and an infinity with itself. With a tolerance of 0 tensors must be equal
    bit for bit but for the sign of zero. Integers must be equal, and so must leaves that are no
    tensors.

    Args:
        expected: eager's.
        actual: the arm's.
        criterion: for floating-point leaves.
        path: of the trees' root; empty if each of its entries is a root of its own.
    """
    wanted, found = dict(leaves(expected, path)), dict(leaves(actual, path))
    if wanted.keys() != found.keys():
        differing = ", ".join(sorted(wanted.keys() ^ found.keys()))
        return Comparison(math.inf, f"the results have different structure: {differing}")
    largest = 0.0
    negligible = _negligible_magnitudes(wanted, criterion.tolerance)
    for leaf_path, leaf in wanted.items():
        place = Place(leaf_path, negligible.get(_root(leaf_path), 0.0))
        error, problem = _compare_leaf(place, leaf, found[leaf_path], criterion)
        largest = max(largest, error)
        if problem:
            return Comparison(largest, f"{leaf_path}: {problem}")
    return Comparison(largest, None)


@dataclass(frozen=True)
class Place:
    """Where a leaf is.

    Attributes:
        path: of the leaf.
        negligible: magnitude below which its own says nothing; errors are relative to this then.
    """

    path: str
    negligible: float


def _root(path: str) -> str:
    return path.partition(".")[0]


def _negligible_magnitudes(wanted: Mapping[str, Any], tolerance: float) -> dict[str, float]:
    """Give the magnitude below which a gradient, or a parameter, is rounding of the others.

    The gradient of a bias in front of a normalisation is zero but for rounding, and so is what such
    a bias becomes when it is trained from zero: relative to themselves no two are alike.
    """
    largest = dict.fromkeys(_JUDGED_TOGETHER, 0.0)
    for path, leaf in wanted.items():
        if _root(path) in largest and isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            largest[_root(path)] = max(largest[_root(path)], _magnitude(_as_float(leaf)))
    return {root: tolerance * magnitude for root, magnitude in largest.items()}


def leaves(
    tree: object, path: str = "output", above: AbstractSet[int] = frozenset()
) -> Iterator[tuple[str, Any]]:
    """Walk containers and objects down to tensors, arrays, numbers and text.

    A mapping (`ModelOutput` is one) and a plain dictionary of the same keys have the same leaves:
    TorchScript returns the one where the model returns the other. An entry that is `None` counts as
    absent. Of other objects, such as distributions and key-value caches, the attributes are walked.

    Args:
        tree: what to walk.
        path: of the tree.
        above: identities of the objects it is in, which are not walked again.
    """
    if tree is None or id(tree) in above:
        return
    children = _children(tree)
    if children is None:
        yield path, tree
        return
    for step, child in children:
        yield from leaves(child, (path + step).removeprefix("."), above | {id(tree)})


def _children(tree: object) -> list[tuple[str, Any]] | None:
    """Give what a tree consists of, each with its step of the path; `None` for a leaf."""
    if isinstance(tree, torch.Tensor | np.ndarray | str | bytes | torch.nn.Module | type):
        return None
    if isinstance(tree, Mapping):
        return [(f".{key}", value) for key, value in tree.items()]
    if isinstance(tree, Sequence):
        return [(f"[{index}]", value) for index, value in enumerate(tree)]
    if dataclasses.is_dataclass(tree):
        return [(f".{field.name}", getattr(tree, field.name)) for field in dataclasses.fields(tree)]
    if hasattr(tree, "__dict__") and not callable(tree):
        return [(f".{name}", value) for name, value in vars(tree).items()]
    return None


def _compare_leaf(
    place: Place, expected: object, actual: object, criterion: Criterion
) -> tuple[float, str | None]:
    if isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray):
        expected, actual = torch.from_numpy(expected), torch.from_numpy(actual)
    if isinstance(expected, float) and isinstance(actual, float):
        expected, actual = (torch.tensor(each, dtype=torch.float64) for each in (expected, actual))
    if not isinstance(expected, torch.Tensor):
        same = _is_same(expected, actual)
        return (0.0, None) if same else (math.inf, f"expected {expected!r}, got {actual!r}")
    if not isinstance(actual, torch.Tensor):
        return math.inf, f"expected a tensor, got {type(actual).__name__}"
    if _kind(expected) != _kind(actual):
        return math.inf, f"expected {_kind(expected)}, got {_kind(actual)}"
    if not (expected.is_floating_point() or expected.is_complex()):
        differing = int((_plain(expected) != _plain(actual)).sum())
        return (math.inf, f"{differing} elements differ") if differing else (0.0, None)
    return _compare_values(place, expected, actual, criterion)


def _kind(tensor: torch.Tensor) -> str:
    """Describe what must be the same of two tensors beside their values.

    Strides matter to whoever takes a view of the output; those of dimensions with one element,
    and of tensors with none, don't.
    """
    text = f"shape {tuple(tensor.shape)} of {tensor.dtype}"
    if tensor.layout is not torch.strided:
        return f"{text}, {tensor.layout}"
    if tensor.numel() == 0 or tensor.is_contiguous():
        return text
    strides = zip(tensor.shape, tensor.stride(), strict=True)
    return f"{text} with strides {tuple(stride for size, stride in strides if size > 1)}"


def _compare_values(
    place: Place, expected: torch.Tensor, actual: torch.Tensor, criterion: Criterion
) -> tuple[float, str | None]:
    least = place.negligible
    error = relative_error(expected, actual, least)
    if criterion.cosine and error > criterion.tolerance:
        cosine = _cosine(expected, actual)
        if cosine >= SMALLEST_COSINE:
            return error, None
        return error, f"cosine similarity {cosine:.4f} is below {SMALLEST_COSINE}"
    if error <= criterion.tolerance:
        return error, None
    problem = f"error {error:.3g} exceeds the tolerance {criterion.tolerance:.3g}"
    truth = criterion.reference().get(place.path)
    if not isinstance(truth, torch.Tensor) or truth.shape != expected.shape:
        return error, problem
    eager_error, arm_error = (relative_error(truth, each, least) for each in (expected, actual))
    worst_fits = arm_error <= EAGER_ERROR_MULTIPLE * eager_error
    usable = eager_error < _USABLE_EAGER_ERROR
    if usable and worst_fits and _errs_as_eager_on_average(truth, expected, actual):
        return error, None
    return error, f"{problem}; against float64 eager errs by {eager_error:.3g}, it {arm_error:.3g}"


def _errs_as_eager_on_average(
    truth: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor
) -> bool:
    eager, arm = (_root_mean_square(truth, each) for each in (expected, actual))
    return arm <= EAGER_ERROR_MULTIPLE * eager


def relative_error(
    expected: torch.Tensor, actual: torch.Tensor, least_magnitude: float = 0.0
) -> float:
    """Largest deviation of an element, relative to the largest finite magnitude in `expected`.

    Where all of `expected` is zero there is no magnitude to go by, and the deviation is absolute.

    Args:
        expected: any shape, floating point or complex.
        actual: same shape.
        least_magnitude: what the deviation is relative to where the elements are smaller.

    Returns:
        0 for equal tensors; infinity where one is NaN or infinite and the other is not.
    """
    want, got = _as_float(expected), _as_float(actual)
    same = (want == got) | (want.isnan() & got.isnan())
    if bool(same.all()):
        return 0.0
    difference = torch.where(same, 0.0, (want - got).abs())
    worst = float(difference.nan_to_num(nan=math.inf, posinf=math.inf).max())
    magnitude = max(_magnitude(want), least_magnitude)
    # Below the smallest normal number of its dtype a relative error says nothing.
    return worst / max(magnitude, torch.finfo(expected.dtype).tiny) if magnitude else worst


def _magnitude(values: torch.Tensor) -> float:
    """Give the largest finite magnitude; 0 of no elements."""
    return float(torch.where(values.isfinite(), values.abs(), 0.0).max()) if values.numel() else 0.0


def _root_mean_square(expected: torch.Tensor, actual: torch.Tensor) -> float:
    difference = (_as_float(expected) - _as_float(actual)).nan_to_num(nan=0.0)
    return math.sqrt(float(difference.square().mean()))


def _cosine(expected: torch.Tensor, actual: torch.Tensor) -> float:
    flat = (_as_float(expected).flatten(), _as_float(actual).flatten())
    return float(torch.nn.functional.cosine_similarity(*flat, dim=0))


def _as_float(tensor: torch.Tensor) -> torch.Tensor:
    plain = _plain(tensor)
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    return plain.to(torch.float64)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Give a dense tensor on the CPU with the same elements."""
    dense = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
    return dense.resolve_conj().cpu()


def _is_same(expected: object, actual: object) -> bool:
    """Compare leaves that are no tensors; of one without an equality of its own, the type."""
    if type(expected) is not type(actual) or type(expected).__eq__ is object.__eq__:
        return type(expected) is type(actual)
    return bool(expected == actual)
