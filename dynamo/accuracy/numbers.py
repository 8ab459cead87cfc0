"""Arithmetic on the numbers of two results: deviations, means and magnitudes."""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

_EXPONENT_BITS = 3
"""Binary exponents that differ in these lowest bits only make one magnitude."""

_LARGE = 1 << 16
"""Bytes from which on memory is compared before elements."""


def distances(centre: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return what each element deviates by; infinity where only one is finite.

    In float32 wherever one of the two is: the difference of two that are close is exact.
    """
    if not centre.is_floating_point():
        return centre != other
    widest = torch.promote_types(torch.promote_types(centre.dtype, other.dtype), torch.float32)
    difference = (centre.to(widest) - other.to(widest)).abs_()
    if other.dtype is not torch.float64:
        difference = difference.float()
    if all_finite(difference):
        return difference
    difference = torch.where(same(centre, other), 0.0, difference)
    return difference.nan_to_num_(nan=math.inf, posinf=math.inf)


def same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Compare element by element; NaN is equal to itself."""
    if not one.is_floating_point():
        return one == other
    return (one == other) | (one.isnan() & other.isnan())


def all_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two dense tensors of one shape and dtype are equal; NaN is equal to itself.

    `torch.equal` takes one element after the other: what are mostly the same bits, as weights
    before and after a call, is found to be so several times as fast.
    """
    if one.nbytes >= _LARGE and _have_same_bits(one, other):
        return True
    if torch.equal(one, other):
        return True
    may_have_nan = one.is_floating_point() and math.isnan(float(one.detach().sum()))
    return may_have_nan and bool(same(one, other).all())


def _have_same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether that is so; not of what isn't plain memory of the host without gaps."""
    plain = [each.detach() for each in (one, other)]
    if one.shape != other.shape or not all(map(_is_plain_memory, plain)):
        return False
    return _memcmp()(one.data_ptr(), other.data_ptr(), one.nbytes) == 0


@cache
def _memcmp() -> Callable[[int, int, int], int]:
    """Return C's function, which reads both and writes nothing, unlike a comparison of arrays."""
    found = ctypes.CDLL(None).memcmp
    found.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return found


def _is_plain_memory(tensor: torch.Tensor) -> bool:
    if type(tensor) is not torch.Tensor or not tensor.is_cpu or not tensor.is_contiguous():
        return False
    is_read_otherwise = tensor.is_conj() or tensor.is_neg() or tensor.is_quantized
    return not is_read_otherwise and tensor.data_ptr() != 0  # where zeros are that nobody stored


def magnitudes_of(values: torch.Tensor) -> torch.Tensor:
    """Group elements by their binary exponents: an index for each, 0 for what has none."""
    wide = values if values.dtype is torch.float64 else values.float()
    exponents = torch.frexp(wide).exponent >> _EXPONENT_BITS
    has_one = values != 0
    if not all_finite(values):
        has_one &= values.isfinite()
    if not bool(has_one.any()):
        return torch.zeros_like(exponents)
    return torch.where(has_one, exponents - exponents[has_one].min() + 1, 0)


def mean_squares(values: torch.Tensor, magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the root mean square of the finite values of each magnitude."""
    return _means(values.flatten().double().square(), magnitudes).sqrt()


def geometric_means(values: torch.Tensor, magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the geometric mean of the positive finite values of each magnitude; 0 without any.

    Zeros take that of the smallest magnitude there is, if it is more: what is zero may be so by
    chance.
    """
    logarithms = values.flatten().double().log()  # of zero it is not finite, and left out
    found = _means(logarithms, magnitudes, empty=-math.inf).exp().to(values.dtype)
    if len(found) > 1:
        found[0] = max(found[0], found[1])
    return found


def _means(flat: torch.Tensor, magnitudes: torch.Tensor, empty: float = 0.0) -> torch.Tensor:
    count = int(magnitudes.max()) + 1 if magnitudes.numel() else 1
    indices = magnitudes.flatten()
    if not all_finite(flat):
        is_finite = flat.isfinite()
        indices, flat = indices[is_finite], flat[is_finite]
    sums = torch.bincount(indices, weights=flat, minlength=count)
    counts = torch.bincount(indices, minlength=count)
    return torch.where(counts > 0, sums / counts.clamp_min(1), empty)


def root_mean_square(values: torch.Tensor) -> float:
    """Return that of the finite elements; 0 of none."""
    return math.sqrt(float(finite(values.double()).square().mean())) if values.numel() else 0.0


def finite(values: torch.Tensor) -> torch.Tensor:
    """Return zero in place of what is not finite."""
    return values if all_finite(values) else torch.where(values.isfinite(), values, 0.0)


def is_all_nan(values: torch.Tensor) -> bool:
    """Return whether there are values, and none is a number; their sum is faster to look at."""
    is_nan = values.is_floating_point() and values.numel() and math.isnan(float(values.sum()))
    return bool(is_nan) and bool(values.isnan().all())


def is_none_finite(values: torch.Tensor) -> bool:
    """Return whether there are values, and all are infinite or no number."""
    if not values.is_floating_point() or not values.numel() or all_finite(values):
        return False
    return not bool(values.isfinite().any())


def all_finite(values: torch.Tensor) -> bool:
    """Return whether all elements are finite; the sum is, if they are, and is found much faster."""
    return math.isfinite(float(values.sum())) or bool(values.isfinite().all())


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of complex numbers as pairs of real ones; what is real as it is."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
