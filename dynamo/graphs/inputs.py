"""Inputs of a graph: what is said of them, and inputs that are drawn anew from that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.dynamo import state
from dynamometer.dynamo.graphs.targets import UnsaveableError
from dynamometer.results.values.graphs import (
    Frequent,
    InputDescription,
    ScalarInput,
    Spread,
    TensorInput,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEW = 32
"""Distinct values that are told one by one."""

_LOOKED_AT = 4096
"""Elements that are enough to see that a tensor holds more values than these."""


def describe(inputs: Sequence[Any], weights: Sequence[bool] = ()) -> tuple[InputDescription, ...]:
    """Describe what a graph is called with.

    Args:
        inputs: of the graph, in order.
        weights: of each whether it is a parameter or buffer; none is where nothing is said.

    Raises:
        UnsaveableError: one is neither a plain tensor nor a number.
    """
    flags = weights or [False] * len(inputs)
    with state.without_gradients():
        return tuple(_described(*each) for each in zip(inputs, flags, strict=True))


def draw(description: Sequence[InputDescription], seed: int) -> list[Any]:
    """Return fresh inputs of the same kinds and distributions; the same for the same seed.

    Each value is within the least and the most that was seen, so that an index stays valid.
    """
    generator = torch.Generator().manual_seed(seed)
    return [
        _drawn(each, generator) if isinstance(each, TensorInput) else each.value
        for each in description
    ]


def dtype_of(name: str) -> torch.dtype:
    """Return the dtype of a name such as `float32`.

    Raises:
        ValueError: there is none.
    """
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        msg = f"torch {torch.__version__} has no dtype {name!r}"
        raise ValueError(msg)  # noqa: TRY004  what a file holds is wrong, not what the caller gave
    return found


def refuse_unplain(tensor: torch.Tensor) -> None:
    """Raise unless a tensor is dense memory of torch's own class, whose values are as stored.

    Raises:
        UnsaveableError: it isn't.
    """
    plain = type(tensor) in {torch.Tensor, torch.nn.Parameter, torch.nn.Buffer}
    if not plain or tensor.layout is not torch.strided or tensor.is_quantized:
        msg = f"it takes a {type(tensor).__name__} of layout {tensor.layout}, no plain tensor"
        raise UnsaveableError(msg)
    if tensor.is_meta:
        msg = "it takes a tensor on device meta, which has no values"
        raise UnsaveableError(msg)
    if tensor.is_conj() or tensor.is_neg():
        kind = "conjugate" if tensor.is_conj() else "negative"
        msg = f"it takes a tensor that is the {kind} of what is stored"
        raise UnsaveableError(msg)


def _described(given: Any, is_weight: bool) -> InputDescription:  # noqa: FBT001  one of a pair
    if isinstance(given, torch.Tensor):
        refuse_unplain(given)
        return TensorInput(
            shape=tuple(given.shape),
            stride=tuple(given.stride()),
            dtype=str(given.dtype).removeprefix("torch."),
            device=str(given.device),
            requires_grad=given.requires_grad,
            is_weight=is_weight,
            spread=_spread(given.detach()),
        )
    if isinstance(given, torch.SymInt | torch.SymFloat | torch.SymBool):
        kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(given)]
        return ScalarInput(value=kind(given))
    if given is None or isinstance(given, bool | int | float | str):
        return ScalarInput(value=given)
    msg = f"it takes a {type(given).__module__}.{type(given).__qualname__}, which is no tensor"
    raise UnsaveableError(msg)


def _spread(tensor: torch.Tensor) -> Spread:
    if tensor.numel() == 0:
        return Spread()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.is_floating_point():
        return _spread_of_floats(tensor.double())
    whole = tensor.long()
    low, high = int(whole.min()), int(whole.max())
    several = tensor.dim() > 0 and tensor.shape[-1] > 1 and low < high
    is_sorted = several and bool((whole.diff(dim=-1) >= 0).all())
    return Spread(
        low=low,
        high=high,
        zeros=_share(whole == 0),
        values=() if is_sorted else _few(whole),
        is_sorted=is_sorted,
    )


def _spread_of_floats(tensor: torch.Tensor) -> Spread:
    finite = tensor[tensor.isfinite()]
    some = finite[finite != 0]
    spread = Spread(
        zeros=_share(tensor == 0),
        infinite=_share(tensor == math.inf),
        negative_infinite=_share(tensor == -math.inf),
        nan=_share(tensor.isnan()),
    )
    if not finite.numel():
        return spread
    scale = float(some.abs().max()) if some.numel() else 1.0  # squares of the largest overflow
    part = some / scale
    return Spread(
        low=float(finite.min()),
        high=float(finite.max()),
        mean=float(part.mean()) * scale if some.numel() else 0.0,
        std=float(part.std(correction=0)) * scale if some.numel() else 0.0,
        zeros=spread.zeros,
        infinite=spread.infinite,
        negative_infinite=spread.negative_infinite,
        nan=spread.nan,
        values=_few(finite) if finite.numel() == tensor.numel() else (),
    )


def _share(mask: torch.Tensor) -> float:
    return float(mask.double().mean())


def _few(tensor: torch.Tensor) -> tuple[Frequent, ...]:
    """Return every value with its share, if there are few of them."""
    flat: Any = tensor.flatten()  # torch has not annotated `unique`
    if flat[:_LOOKED_AT].unique().numel() > _FEW:
        return ()
    values, counts = flat.unique(return_counts=True)
    if values.numel() > _FEW:
        return ()
    return tuple(
        Frequent(value=value, share=count / flat.numel())
        for value, count in zip(values.tolist(), counts.tolist(), strict=True)
    )


def _drawn(given: TensorInput, generator: torch.Generator) -> torch.Tensor:
    dtype = dtype_of(given.dtype)
    needed = 1 + sum((n - 1) * s for n, s in zip(given.shape, given.stride, strict=True))
    count = 0 if 0 in given.shape else needed
    flat = _values(given.spread, count, dtype, generator)
    # What is drawn fills the memory behind the tensor, so that any strides are as they were.
    tensor = flat.as_strided(given.shape, given.stride)
    if given.spread.is_sorted and count:
        _sort(tensor, int(given.spread.low or 0), int(given.spread.high or 0))
    moved = tensor if given.device == "cpu" else _moved(flat, given)
    return moved.requires_grad_(given.requires_grad)


def _moved(flat: torch.Tensor, given: TensorInput) -> torch.Tensor:
    return flat.to(given.device).as_strided(given.shape, given.stride)


def _sort(tensor: torch.Tensor, low: int, high: int) -> None:
    """Sort along the last dimension, from the least to the most, as offsets into a list must be.

    Where elements share memory they are left as they are.
    """
    if 0 not in tensor.stride():
        tensor.copy_(tensor.sort(dim=-1).values)
        tensor[..., 0], tensor[..., -1] = low, high


def _values(
    spread: Spread, count: int, dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    """Return a flat tensor of values of a distribution."""
    if dtype.is_complex:
        real = _floats(spread, 2 * count, generator).reshape(count, 2)
        return torch.view_as_complex(real).to(dtype)
    if spread.values:
        return _one_of(spread.values, count, dtype, generator)
    if dtype.is_floating_point:
        return _floats(spread, count, generator).to(dtype)
    low, high = int(spread.low or 0), int(spread.high or 0)
    if high == torch.iinfo(torch.int64).max:
        high -= 1
    return torch.randint(low, high + 1, (count,), generator=generator).to(dtype)


def _one_of(
    values: Sequence[Frequent], count: int, dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    kind = torch.float64 if dtype.is_floating_point else torch.int64
    of = torch.tensor([each.value for each in values], dtype=kind)
    if len(values) == 1:
        return of.expand(count).to(dtype).clone()
    edges = torch.tensor([each.share for each in values], dtype=torch.float64).cumsum(0)
    places = torch.bucketize(torch.rand(count, generator=generator, dtype=torch.float64), edges)
    return of[places.clamp_(max=len(values) - 1)].to(dtype)


def _floats(spread: Spread, count: int, generator: torch.Generator) -> torch.Tensor:
    drawn = torch.empty(count, dtype=torch.float64).normal_(generator=generator)
    if spread.low is not None and spread.high is not None:
        drawn.mul_(spread.std or 0.0).add_(spread.mean or 0.0).clamp_(spread.low, spread.high)
    at = torch.rand(count, generator=generator, dtype=torch.float64)
    until = 0.0
    for share, value in (
        (spread.zeros, 0.0),
        (spread.infinite, math.inf),
        (spread.negative_infinite, -math.inf),
        (spread.nan, math.nan),
    ):
        drawn[(at >= until) & (at < until + share)] = value
        until += share
    return drawn
