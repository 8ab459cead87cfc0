"""What a call has changed: how a tensor that was stored differs from what was there before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from dynamometer.dynamo.accuracy import leaves
from dynamometer.dynamo.accuracy.numbers import all_same, root_mean_square, same

if TYPE_CHECKING:
    from dynamometer.dynamo.accuracy.leaves import Leaf

_ROUNDINGS = 4.0
"""Of itself that a value may be off by which is divided by its own norm once more, or the like."""

_SENTINEL, _OVERWRITTEN = 1e3, 1 / 64
"""A state at least as large is known to be overwritten where so small a share of it is left."""

_SHRUNK = 1 / 4
"""So is a buffer or an input as a whole, however large, of whose root mean square that is left. One
that rounding takes to the limit is told by its change almost as well."""

_STORED = 2.0
"""Roundings of a stored value that a change of it can't be known better than by."""


def change_of(before: object, now: object) -> Leaf | None:
    """Return the difference of what was stored and what is, or what is there now.

    `None` where both are the same.
    """
    if not isinstance(now, torch.Tensor):
        unchanged = before is now or (type(before) is type(now) and _are_same(before, now))
        return None if unchanged else leaves.keep(now)
    if is_like(before, now):
        return None
    if not isinstance(before, torch.Tensor) or form_of(before) != form_of(now):
        return leaves.keep(now)
    return difference(before, now)


def _are_same(before: object, now: object) -> bool:
    """Return whether two objects of one type are equal; of arrays every element must be."""
    return bool(np.all(np.asarray(before == now)))


def difference(before: torch.Tensor, now: torch.Tensor) -> Leaf:
    """Return the difference of two stored tensors of one kind, and how well it is known."""
    was, found = (_dense(each.detach()) for each in (before, now))
    if found.dtype is torch.bool:
        return leaves.keep(found ^ was)
    if not found.is_floating_point():  # torch can't subtract every kind without a sign
        return leaves.keep(found.long() - was.long())
    # Over what is no number, what is written is the change.
    written_over = torch.where(same(was, found), 0.0, found)
    change = leaves.keep(torch.where(was.isfinite(), found - was, written_over))
    stored_in = now.dtype if now.is_floating_point() else found.dtype
    wide = torch.promote_types(found.dtype, torch.float32)
    size = torch.maximum(found.abs(), was.abs()).to("cpu", wide)
    return replace(change, resolution=_STORED * torch.finfo(stored_in).eps * size)


def overwritten(before: object, now: object, *, whole: bool) -> Leaf | None:
    """Return what was written over larger numbers, and zero in other places.

    A running minimum begins with 1e10, say, and a scale with 1: the change of these says little of
    what is there now.

    Args:
        before: what was stored.
        now: what is.
        whole: whether it may have been overwritten as a whole, rather than been added to.
    """
    if not isinstance(before, torch.Tensor) or not isinstance(now, torch.Tensor):
        return None
    if form_of(before) != form_of(now) or not now.is_floating_point():
        return None
    was, found = (_dense(each.detach()) for each in (before, now))
    # Where only zero is left, the change says as much.
    if whole and 0 < root_mean_square(found) <= _SHRUNK * root_mean_square(was):
        return leaves.keep(found)
    is_large = was.isfinite() & (was.abs() >= _SENTINEL)
    is_over = is_large & (found.abs() <= _OVERWRITTEN * was.abs())
    return leaves.keep(torch.where(is_over, found, 0.0)) if bool(is_over.any()) else None


def has_arithmetic(tensor: torch.Tensor) -> bool:
    """Return whether torch can add to a tensor in place: not to sparse, quantized, 8-bit floats."""
    has_eight_bits = tensor.is_floating_point() and tensor.itemsize == 1
    return tensor.layout is torch.strided and not tensor.is_quantized and not has_eight_bits


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """Return real values that torch can subtract."""
    if has_arithmetic(tensor) and not tensor.is_complex():
        return tensor
    kept: torch.Tensor = leaves.keep(tensor).value
    return kept


def is_like(one: object, other: torch.Tensor) -> bool:
    """Return whether something is a tensor of one kind with another, and equal to it.

    A nested tensor's size is its own, and those of inputs don't change in place.
    """
    if not isinstance(one, torch.Tensor) or form_of(one) != form_of(other):
        return False
    return one.is_nested or _are_equal(one, other)


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors of one kind are equal; sparse ones aren't made dense for that."""
    return all(map(all_same, _parts(one), _parts(other)))


def _parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if tensor.layout is torch.sparse_coo:
        own = tensor.detach().coalesce()
        return own.indices(), own.values()
    if tensor.layout is torch.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return (_dense(tensor),)


def is_rounding(before: object, change: object) -> bool:
    """Return whether a change is no more than a few roundings of what was there."""
    if not isinstance(before, torch.Tensor) or not isinstance(change, torch.Tensor):
        return False
    if not before.is_floating_point() or not has_arithmetic(before):
        return False
    if change.shape != before.shape:
        return False
    most = _ROUNDINGS * torch.finfo(before.dtype).eps * before.detach().abs()
    return bool((change.abs() <= most.to(change.device)).all())


def form_of(tensor: torch.Tensor) -> object:
    """Return what two tensors must have in common for one to be written into the other."""
    return tensor.shape, tensor.dtype, tensor.layout
