"""Whether two runs of eager agree, or differ by more than rounding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from dynamometer.dynamo.accuracy.expected import are_equal
from dynamometer.dynamo.accuracy.numbers import distances, root_mean_square

if TYPE_CHECKING:
    from dynamometer.dynamo.accuracy.expected import Expected
    from dynamometer.dynamo.accuracy.leaves import Leaf, Leaves


def differ(one: Leaves, other: Leaves, share: float) -> bool:
    """Return whether two results differ in some leaf by more than a share of it."""
    return any(
        path not in other
        or leaf.kind != other[path].kind
        or (not are_equal(leaf, other[path]) and _share_of(leaf, other[path]) > share)
        for path, leaf in one.items()
    )


def _share_of(leaf: Leaf, other: Leaf) -> float:
    if not isinstance(leaf.value, torch.Tensor) or not leaf.value.is_floating_point():
        return math.inf
    return relative_error(leaf.value, other.value)


MOST_WANDERING = 0.1
"""Of the elements of a result: if more differ between two runs of eager by more than the tolerance,
it is not rounding."""


def wanders(expected: Expected, again: Leaves, tolerance: float) -> str | None:
    """Return where eager disagrees with itself by more than rounding, if it does.

    Args:
        expected: eager's first run, and its result in float64.
        again: of the same inputs, weights and seed.
        tolerance: what share of itself an element may be off by.
    """
    eager = {path: known.eager for path, known in expected.leaves.items()}
    if eager.keys() != again.keys():
        return "the structure of the results"
    for path, leaf in eager.items():
        if leaf.kind != again[path].kind:
            return f"{path}: {leaf.kind}, then {again[path].kind}"
        share = _wandering_share(leaf, again[path], tolerance)
        if share > MOST_WANDERING and not expected.leaves[path].is_zero:
            return f"{path}: {share:.0%} of its elements"
    return None


def _wandering_share(leaf: Leaf, again: Leaf, tolerance: float) -> float:
    if are_equal(leaf, again):
        return 0.0
    if not isinstance(leaf.value, torch.Tensor):
        return 1.0
    moved = distances(leaf.value, again.value)
    if leaf.value.is_floating_point():
        moved = moved > tolerance * leaf.value.abs()
    return float(moved.double().mean())


def relative_error(expected: torch.Tensor, actual: torch.Tensor) -> float:
    """Return the deviation in the root mean square, as a share of the expected values'."""
    size = root_mean_square(expected)
    error = root_mean_square(distances(expected, actual))
    return error / size if size else error
