"""The same computation, rounded in another way: what eager might as well have given."""

from __future__ import annotations

from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy.numbers import as_real
from dynamometer.dynamo.private import GoneError, private
from dynamometer.dynamo.trees import tree_map_only
from dynamometer.results.values.cases import MatmulPrecision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

try:
    TorchDispatchMode = private("torch.utils._python_dispatch.TorchDispatchMode")
except GoneError:  # operators round and draw as they do: weights are changed all the same
    TorchDispatchMode = nullcontext

_ROUNDINGS_IN_FLOAT32, _ROUNDINGS_IN_HALF = 4.0, 0.5
"""How many roundings to change weights by so that results differ as much as those of other kernels.

In float32 sums of thousands of products are off by several roundings, by how many depends on their
order; in half precision they are summed in float32, and rounded once."""

_FLOAT64_OVER_FLOAT32 = torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps


def change_of(dtype: torch.dtype) -> float:
    """Return what share of itself a weight is changed by at most, for a computation in a dtype."""
    is_half = dtype in {torch.bfloat16, torch.float16}
    return torch.finfo(dtype).eps * (_ROUNDINGS_IN_HALF if is_half else _ROUNDINGS_IN_FLOAT32)


def nudge(
    tensor: torch.Tensor, share: float, generator: torch.Generator, *, whole: bool = False
) -> torch.Tensor:
    """Change each element by at most a share of itself, at random.

    Whole numbers stay what they are, as some are indices, or counts, in floating point.

    Args:
        tensor: of any shape, dtype and device; of whole numbers it is given back.
        share: largest relative change; of float64 as much less as its roundings are.
        whole: whether whole numbers are changed as well.
        generator: on the CPU; the model's own draws are left alone.
    """
    if tensor.is_complex() and tensor.layout is torch.strided:
        parts = nudge(as_real(tensor), share, generator, whole=whole)
        return torch.view_as_complex(parts.detach()).requires_grad_(tensor.requires_grad)
    if not tensor.is_floating_point() or tensor.layout is not torch.strided or tensor.itemsize == 1:
        return tensor
    if tensor.dtype is torch.float64:
        share *= _FLOAT64_OVER_FLOAT32
    draws = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
    factor = 1 + share * draws.to(tensor.device)
    nudged = (tensor.detach().double() * factor).to(tensor.dtype)
    if not whole:
        nudged = torch.where(tensor == tensor.round(), tensor, nudged)
    return nudged.detach().requires_grad_(tensor.requires_grad)


_EPS_OF_TF32 = 2.0**-10
_ROUNDINGS_IN_TF32 = 0.125
"""In eps of TF32. Rounding is off by half an eps at most; operands are off by a fourth of that, as
an arm in float32 may be off by four times as many multiples of what comes of it as one in half
precision (`deviation.Multiples`)."""
_BELOW_TF32 = 2**13 - 1
"""The bits of a float32 that TF32 leaves out."""

_CONVOLUTIONS = {
    "_cudnn_rnn": (0, 1, 3, 4), "_cudnn_rnn_backward": (0, 1, 3, 4, 7),
    "conv1d": (0, 1), "conv2d": (0, 1), "conv3d": (0, 1), "conv_transpose1d": (0, 1),
    "conv_transpose2d": (0, 1), "conv_transpose3d": (0, 1), "convolution": (0, 1),
    "convolution_backward": (0, 1, 2),
}  # fmt: skip
_PRODUCTS = {
    "_addmm_activation": (1, 2), "_euclidean_dist": (0, 1),
    "_native_multi_head_attention": (0, 1, 2, 5, 7),
    "_scaled_dot_product_efficient_attention": (0, 1, 2),
    "_scaled_dot_product_efficient_attention_backward": (0, 1, 2, 3),
    "_transformer_encoder_layer_fwd": (0, 3, 5, 14, 16),
    "addbmm": (1, 2), "addmm": (1, 2), "addmv": (1, 2), "baddbmm": (1, 2), "bmm": (0, 1),
    "bilinear": (0, 1, 2), "cdist": (0, 1), "einsum": (1,), "inner": (0, 1),
    "linalg_multi_dot": (0,), "linear": (0, 1), "matmul": (0, 1), "mm": (0, 1), "mv": (0, 1),
    "scaled_dot_product_attention": (0, 1, 2), "tensordot": (0, 1),
}  # fmt: skip
"""Operators, each with the places of what it multiplies. Those that others are made of are seen as
they are where a model turns on `torch.inference_mode`."""

NOTHING: Mapping[str, Sequence[int]] = MappingProxyType({})


def multiplied_in_tf32(device: str) -> Mapping[str, Sequence[int]]:
    """Return which operators may compute float32 in TF32, as torch is set now.

    Args:
        device: torch's name of it; others than CUDA's are not asked.

    Returns:
        Names of operators, each with the places of what it multiplies.
    """
    if device.partition(":")[0] != "cuda" or not torch.cuda.is_tf32_supported():
        return NOTHING
    convolutions = _CONVOLUTIONS if state.cudnn_uses_tf32() else {}
    products = _PRODUCTS if state.matmul_precision() != MatmulPrecision.HIGHEST else {}
    return {**convolutions, **products}


class OtherKernels(TorchDispatchMode):  # type: ignore[misc, valid-type]  # what torch has
    """Has operators round as other kernels may, where changing weights and inputs doesn't show it.

    Functions that no two libraries round alike are off by a rounding. Beside what weights are off
    by, that is little; but a model may compute constants so, as frequencies of positions, whose
    error counts thousandfold far from the origin.

    What batch normalisation sums in training is off by a few roundings of its size, the same for
    all of a channel, so that running means and gradients of weights and biases are. On CPUs eager
    sums in float64, and errors of single terms cancel in the mean of a hundred thousand; those of
    partial sums in float32 don't.

    What may be multiplied in TF32 is off by about what rounding to it comes to: which kernels round
    depends on the operator and on the layout of what it is given.

    A model in float32 may compute parts in half precision, by an autocast or casts of its own. Who
    fuses operators rounds more seldom there; of what is stored so, some values are the next ones.
    """

    supports_higher_order_operators = True

    def __init__(
        self,
        seed: int,
        roundings: float = 1.0,
        in_tf32: Mapping[str, Sequence[int]] = NOTHING,
        *,
        has_half_parts: bool = False,
    ) -> None:
        """Draw errors from a seed, of so many roundings at most.

        Args:
            seed: of the errors.
            roundings: how many.
            in_tf32: operators that may compute float32 in TF32, each with the places of what it
                multiplies (`multiplied_in_tf32`).
            has_half_parts: whether half precision is that of parts, and not of the whole model.
        """
        super().__init__()
        self._seed, self._roundings, self._in_tf32 = seed, roundings, in_tf32
        self._has_half_parts = has_half_parts

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call an operator, and have it round in another way."""
        name = _name_of(func)
        trains = _SUM_OVER_CHANNELS.get(name)
        if trains is not None and args[trains] and args[0].dtype is torch.float32:
            args = (self._with_other_means(args[0]), *args[1:])
        for place in self._in_tf32.get(name, ()):
            changed = tree_map_only(torch.Tensor, self._off_in_tf32, args[place])
            args = (*args[:place], changed, *args[place + 1 :])
        found = func(*args, **dict(kwargs or {}))
        if self._has_half_parts and _is_rounded_to_half(func, found):
            return self._next_at_times(found)
        if not _is_of_library(name) or not isinstance(found, torch.Tensor):
            return found
        if found.dtype not in {torch.float32, torch.float64}:
            return found  # half precision is computed in float32, and rounded alike
        rounded = torch.where(found == found.round(), found, found + found * self._errors(found))
        return found.copy_(rounded) if args and found is args[0] else rounded

    def _with_other_means(self, values: torch.Tensor) -> torch.Tensor:
        """Shift the values of a channel, which has dimension 1, by few roundings of its size."""
        dimensions = [index for index in range(values.dim()) if index != 1]
        size = values.square().mean(dimensions, keepdim=True).sqrt()
        return values + _ROUNDINGS_IN_FLOAT32 * size * self._errors(size)

    def _off_in_tf32(self, values: torch.Tensor) -> torch.Tensor:
        """Change what TF32 has no number for by less than rounding to it would."""
        if values.dtype is not torch.float32 or values.layout is not torch.strided:
            return values
        changed = values + values * self._errors(values, _ROUNDINGS_IN_TF32 * _EPS_OF_TF32)
        return torch.where((values.view(torch.int32) & _BELOW_TF32) == 0, values, changed)

    def _next_at_times(self, values: torch.Tensor) -> torch.Tensor:
        """Change one value of eight by a rounding, all by a third of that in the mean square."""
        self._seed += 1
        generator = torch.Generator(values.device).manual_seed(self._seed)
        draws = torch.empty(values.shape, device=values.device).uniform_(-1, 1, generator=generator)
        is_other = (draws.abs() < _SHARE_IN_HALF) & (values != values.round()) & values.isfinite()
        most = self._roundings * torch.finfo(values.dtype).eps
        return torch.where(is_other, values * (1 + most * draws.sign()).to(values.dtype), values)

    def _errors(self, like: torch.Tensor, eps: float | None = None) -> torch.Tensor:
        """Draw relative errors of a rounding or so, which is the dtype's unless it is given."""
        self._seed += 1
        generator = torch.Generator(like.device).manual_seed(self._seed)
        most = self._roundings * (torch.finfo(like.dtype).eps if eps is None else eps)
        return torch.empty_like(like).uniform_(-most, most, generator=generator)


def _is_rounded_to_half(func: Any, found: Any) -> bool:
    """Return whether an operator rounds what it gives, in memory of its own, to half precision."""
    if not isinstance(found, torch.Tensor) or found.dtype not in {torch.bfloat16, torch.float16}:
        return False
    name = _name_of(func)
    is_rounded = name in _ROUNDED or _is_of_library(name) or name in _PRODUCTS
    return (is_rounded or name in _CONVOLUTIONS) and not func._schema.is_mutable  # noqa: SLF001  no other way to ask


def _is_of_library(name: str) -> bool:
    return name in _ROUNDED_BY_LIBRARIES or name.startswith(_SPECIAL)


def _name_of(func: Any) -> str:
    """Return an operator's name, in place or not; of one of higher order nothing that is a name."""
    packet = getattr(func, "overloadpacket", None)
    return packet.__name__.removesuffix("_") if packet is not None else ""


_SHARE_IN_HALF = 1 / 8
"""As an arm in float32 may be off by four times as many multiples as one in half precision."""

_ROUNDED = frozenset({
    "_to_copy", "add", "addcdiv", "addcmul", "avg_pool2d", "cumsum", "div", "hardsigmoid",
    "hardswish", "leaky_relu", "lerp", "linalg_vector_norm", "logsumexp", "mean", "mul", "prod",
    "reciprocal", "rsub", "sqrt", "sub", "sum", "var",
})  # fmt: skip
"""Beside products, convolutions and functions: what moves, selects or compares rounds nothing."""

_ROUNDED_BY_LIBRARIES = frozenset({
    "_log_softmax", "_softmax", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "celu",
    "cos", "cosh", "digamma", "elu", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "gelu",
    "hypot", "i0", "igamma", "igammac", "lgamma", "log", "log10", "log1p", "log2",
    "log_sigmoid_forward", "logaddexp", "logaddexp2", "logcumsumexp", "logit", "mish", "mvlgamma",
    "polygamma", "pow", "rsqrt", "sigmoid", "silu", "sin", "sinc", "sinh", "softplus", "tan",
    "tanh", "xlogy",
})  # fmt: skip
_SPECIAL = "special_"
"""Begins the names of others, such as Bessel's functions."""

_SUM_OVER_CHANNELS = {"native_batch_norm": 5, "native_batch_norm_backward": 7}
"""Operators, each with the place of the argument that says whether it is training."""


class DrawsOf(TorchDispatchMode):  # type: ignore[misc, valid-type]  # what torch has
    """Has random numbers in float64 be those that eager draws in its own dtype.

    Most generators give other numbers, not the same ones more finely: with another mask a dropout
    is another computation, and float64 no referee. Operators that may draw and don't, as attention
    and recurrent layers without dropout, compute in float64 like all others.
    """

    supports_higher_order_operators = True

    def __init__(self, dtype: torch.dtype) -> None:
        """Draw in a dtype, and widen."""
        super().__init__()
        self._dtype = dtype

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call an operator; one that draws, on narrower tensors."""
        given = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
            return func(*args, **given)
        is_written_to = func._schema.is_mutable  # noqa: SLF001  no other way to ask
        if given.get("generator") is None and not is_written_to:
            with state.generators_kept():
                before = state.generators()
                found = func(*args, **given)
                draws = state.generators() != before
            if not draws:
                return found
        if given.get("dtype") is torch.float64:
            given["dtype"] = self._dtype
        narrow_args, narrow_kwargs = tree_map_only(torch.Tensor, self._narrow, (args, given))
        drawn = tree_map_only(torch.Tensor, self._widen, func(*narrow_args, **narrow_kwargs))
        if isinstance(drawn, torch.Tensor) and is_written_to:
            return args[0].copy_(drawn)
        return drawn

    def _narrow(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self._dtype) if tensor.dtype is torch.float64 else tensor

    def _widen(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.double() if tensor.dtype is self._dtype else tensor
