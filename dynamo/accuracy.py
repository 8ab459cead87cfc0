"""Whether an arm computes what eager computes, leaf by leaf over the output tree."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

DEFAULT_TOLERANCE = {"cpu": 1e-4, "cuda": 1e-3}
"""Largest accepted error by device type in float32: TorchBench's 1e-4 in PyTorch's own harness
(`benchmarks/dynamo/torchbench.py`), and its 1e-3 for GPUs, where convolutions use TF32."""


@dataclass(frozen=True)
class Comparison:
    """How two output trees differ.

    Attributes:
        max_error: largest deviation of a leaf, relative to the largest magnitude in it.
        mismatch: the first leaf that is wrong: its path, and what is wrong with it.
    """

    max_error: float
    mismatch: str | None


def compare(expected: object, actual: object, tolerance: float) -> Comparison:
    """Compare two output trees: names, kinds, shapes, dtypes and values.

    Tensors agree if no element deviates by more than `tolerance` times the largest magnitude in
    the expected tensor; NaN agrees with NaN, and an infinity with itself. With a tolerance of 0
    they must be equal bit for bit but for the sign of zero. Integers must be equal, and so must
    leaves that are no tensors.
    """
    wanted, found = dict(leaves(expected)), dict(leaves(actual))
    if wanted.keys() != found.keys():
        missing = ", ".join(sorted(wanted.keys() ^ found.keys()))
        return Comparison(math.inf, f"the outputs have different structure: {missing}")
    largest = 0.0
    for path, leaf in wanted.items():
        error, problem = _compare_leaf(leaf, found[path], tolerance)
        largest = max(largest, error)
        if problem:
            return Comparison(largest, f"{path}: {problem}")
    return Comparison(largest, None)


def leaves(tree: object, path: str = "output") -> Iterator[tuple[str, Any]]:
    """Walk mappings (`ModelOutput` is one), sequences and dataclasses down to their leaves.

    A mapping and a plain dictionary of the same keys have the same leaves: TorchScript returns
    the one where the model returns the other. An entry that is `None` counts as absent.
    """
    if tree is None:
        return
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from leaves(value, f"{path}.{key}")
    elif isinstance(tree, Sequence) and not isinstance(tree, str | bytes):
        for index, value in enumerate(tree):
            yield from leaves(value, f"{path}[{index}]")
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        for field in dataclasses.fields(tree):
            yield from leaves(getattr(tree, field.name), f"{path}.{field.name}")
    elif hasattr(tree, "layers") and hasattr(tree, "get_seq_length"):
        # transformers' key-value caches: the tensors are in the layers
        for index, layer in enumerate(tree.layers):
            yield from leaves((layer.keys, layer.values), f"{path}.layers[{index}]")
    else:
        yield path, tree


def _compare_leaf(expected: object, actual: object, tolerance: float) -> tuple[float, str | None]:
    if isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray):
        expected, actual = torch.from_numpy(expected), torch.from_numpy(actual)
    if not isinstance(expected, torch.Tensor):
        same = _is_same(expected, actual)
        return (0.0, None) if same else (math.inf, f"expected {expected!r}, got {actual!r}")
    if not isinstance(actual, torch.Tensor):
        return math.inf, f"expected a tensor, got {type(actual).__name__}"
    if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
        return math.inf, f"expected {_kind(expected)}, got {_kind(actual)}"
    if not (expected.is_floating_point() or expected.is_complex()):
        differing = int((_plain(expected) != _plain(actual)).sum())
        return (math.inf, f"{differing} elements differ") if differing else (0.0, None)
    error = relative_error(expected, actual)
    if error <= tolerance:
        return error, None
    return error, f"error {error:.3g} exceeds the tolerance {tolerance:.3g}"


def _kind(tensor: torch.Tensor) -> str:
    return f"shape {tuple(tensor.shape)} of {tensor.dtype}"


def relative_error(expected: torch.Tensor, actual: torch.Tensor) -> float:
    """Largest deviation of an element, relative to the largest finite magnitude in `expected`.

    Where all of `expected` is zero there is no magnitude to go by, and the deviation is absolute.

    Args:
        expected: any shape, floating point or complex.
        actual: same shape and dtype.

    Returns:
        0 for equal tensors; infinity where one is NaN or infinite and the other is not.
    """
    want, got = _as_float(expected), _as_float(actual)
    same = (want == got) | (want.isnan() & got.isnan())
    if bool(same.all()):
        return 0.0
    difference = torch.where(same, 0.0, (want - got).abs())
    worst = float(difference.nan_to_num(nan=math.inf, posinf=math.inf).max())
    finite = torch.where(want.isfinite(), want.abs(), 0.0)
    magnitude = float(finite.max())
    # Below the smallest normal number of its dtype a relative error says nothing.
    return worst / max(magnitude, torch.finfo(expected.dtype).tiny) if magnitude else worst


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
    if isinstance(expected, float) and isinstance(actual, float):
        return expected == actual or (math.isnan(expected) and math.isnan(actual))
    return bool(expected == actual)
