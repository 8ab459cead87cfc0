"""What runtimes that know tensors alone would do otherwise: put in other words, or refused."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch.export import ExportedProgram


_READS = torch.ops.aten.as_strided.default
_WRITES = torch.ops.aten.as_strided_scatter.default


class UnsupportedError(NotImplementedError):
    """A runtime can't compute what a program does, or would compute something else."""


def refuse_training(*groups: Any) -> None:
    """Raise where gradients would be asked of what gives none.

    Raises:
        UnsupportedError: gradients are recorded, and one of the tensors needs them.
    """
    tensors = [each for group in groups for each in group if isinstance(each, torch.Tensor)]
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        msg = "it computes no gradients: use it for inference, under torch.no_grad()"
        raise UnsupportedError(msg)


def refuse_randomness(module: fx.GraphModule) -> None:
    """Refuse what draws random numbers.

    Raises:
        UnsupportedError: an operation does.
    """
    for each in module.modules():
        for node in each.graph.nodes if isinstance(each, fx.GraphModule) else ():
            tags = getattr(node.target, "tags", ())
            if torch.Tag.nondeterministic_seeded in tags and not _is_quiet(node):
                msg = f"it draws random numbers ({node.target}), and a runtime draws others"
                raise UnsupportedError(msg)


def _is_quiet(node: fx.Node) -> bool:
    """Return whether an operation that may drop out, as LSTMs do, is told not to."""
    known = node.target._schema.arguments  # type: ignore[union-attr]  # noqa: SLF001  its tags were read
    given = {each.name: each.default_value for each in known if each.has_default_value()}
    given |= {each.name: value for each, value in zip(known, node.args, strict=False)}
    given |= node.kwargs
    is_training = given.get("train", given.get("training"))
    return is_training is False or given.get("dropout_p", given.get("dropout")) == 0.0


def refuse_overlap(given: Sequence[Any]) -> None:
    """Refuse inputs that share memory, for a program that changes some of them.

    Raises:
        UnsupportedError: some do.
    """
    tensors = [each for each in given if isinstance(each, torch.Tensor) and each.numel()]
    if len({each.untyped_storage().data_ptr() for each in tensors}) < len(tensors):
        msg = "it changes inputs in place, and some of its inputs share memory"
        raise UnsupportedError(msg)


def in_words_of_openvino(exported: ExportedProgram) -> ExportedProgram:
    """Return a program without what OpenVINO (2026.4.1) computes otherwise.

    It rounds -7 // 2 towards zero; and it divides by n rather than n - 1 for a variance over all
    dimensions, unless these are named.
    """
    table: dict[Any, Any] = {}
    if any(map(_floors_whole_numbers, exported.graph.nodes)):
        table |= dict.fromkeys(_DIVISIONS, _floored)
    if any(node.target in _SPREADS for node in exported.graph.nodes):
        table |= {each: partial(_over_dimensions, of) for each, of in _SPREADS.items()}
    if not table:
        return exported
    said: ExportedProgram = exported.run_decompositions(table)
    return said


_SPREADS: Mapping[Any, Any] = {
    each: operator
    for operator in (
        torch.ops.aten.std,
        torch.ops.aten.var,
        torch.ops.aten.std_mean,
        torch.ops.aten.var_mean,
    )
    for each in (operator.default, operator.correction)
}


def _over_dimensions(
    operator: Any,
    x: torch.Tensor,
    dim: Any = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
) -> Any:
    if isinstance(dim, bool):  # of the overload with `unbiased` alone
        dim, correction = None, int(dim)
    if dim:
        return NotImplemented  # the operator as it is
    correction = 1 if correction is None else correction
    dimensions = list(range(x.dim()))
    return operator.correction(x, dimensions, correction=correction, keepdim=keepdim)


_DIVISIONS = (
    torch.ops.aten.div.Tensor_mode,
    torch.ops.aten.div.Scalar_mode,
    torch.ops.aten.floor_divide.default,
    torch.ops.aten.floor_divide.Scalar,
)


def _floors_whole_numbers(node: fx.Node) -> bool:
    made = node.meta.get("val")
    return (
        node.target in _DIVISIONS
        and node.kwargs.get("rounding_mode", "floor") == "floor"
        and isinstance(made, torch.Tensor)
        and not made.is_floating_point()
    )


def _floored(one: Any, other: Any, *, rounding_mode: str | None = "floor") -> torch.Tensor:
    made = torch.result_type(one, other)
    if rounding_mode != "floor" or made.is_floating_point:
        return NotImplemented  # type: ignore[no-any-return]  # the operator as it is
    if not isinstance(one, torch.Tensor):  # a number that is divided by a tensor
        one = torch.full_like(other, one, dtype=made)
    remainder = torch.fmod(one, other)
    is_below = (remainder != 0) & ((remainder < 0) != (other < 0))
    floored: torch.Tensor = torch.div(one, other, rounding_mode="trunc") - is_below.to(made)
    return floored


def read_in_order(module: fx.GraphModule) -> None:
    """Have `as_strided` read tensors whose elements lie in memory in their own order.

    Runtimes take every tensor for contiguous, or for what it is when the program is exported again.
    So what eager lays out otherwise, as what was transposed, is put into the order of its memory
    before its strides are used. The copy is contiguous at any later export.

    Args:
        module: functional, without dead code, with the tensors it was traced with in `meta["val"]`;
            its graph is changed.

    Raises:
        UnsupportedError: what is read has gaps, overlaps or symbols, or lies outside of the tensor;
            or strides are used to write, or in a graph within the graph.
    """
    inner = (each for each in module.modules() if each is not module)
    if any(_uses_strides(node) for graph in inner for node in _nodes(graph)):
        msg = "it uses strides (as_strided) in a part that may or may not run"
        raise UnsupportedError(msg)
    for node in filter(_uses_strides, _nodes(module)):
        if node.target is _WRITES:
            msg = "it writes by strides (as_strided_scatter)"
            raise UnsupportedError(msg)
        source: Any = node.args[0]
        tensor: torch.Tensor = source.meta["val"]
        order = order_in_memory(tensor.shape, tensor.stride())
        arguments: tuple[Any, ...] = (*node.args[1:], *node.kwargs.values(), None)
        size, stride, offset = arguments[:3]
        start = tensor.storage_offset()
        offset = start if offset is None else offset
        if (
            order is None
            or not all(isinstance(each, int) for each in (*size, *stride, offset))
            or offset < start
            or offset - start + _reach(size, stride) >= math.prod(tensor.shape)
        ):
            msg = (
                f"{node.target} by {list(size)}, {list(stride)}, {offset} of a tensor of"
                f" {list(tensor.shape)} that lies in memory by {list(tensor.stride())}, {start}"
            )
            raise UnsupportedError(msg)
        with module.graph.inserting_before(node):
            made = module.graph.call_function
            permuted = made(torch.ops.aten.permute.default, (source, order))
            contiguous: dict[str, Any] = {"memory_format": torch.contiguous_format}
            in_order = made(torch.ops.aten.clone.default, (permuted,), contiguous)
        node.args, node.kwargs = (in_order, size, stride, offset - start), {}


def _nodes(module: nn.Module) -> list[fx.Node]:
    return list(module.graph.nodes) if isinstance(module, fx.GraphModule) else []


def _uses_strides(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target in {_READS, _WRITES}


def _reach(size: Sequence[int], stride: Sequence[int]) -> int:
    """Return how far behind the first element the last one lies; before all there is if none is."""
    if 0 in size:
        return -sys.maxsize
    return sum((each - 1) * step for each, step in zip(size, stride, strict=True))


def order_in_memory(size: Sequence[Any], stride: Sequence[Any]) -> list[int] | None:
    """Return dimensions from the outermost in memory to the innermost; `None` if there are gaps.

    Args:
        size: of a tensor.
        stride: of the same.
    """
    if not all(isinstance(each, int) for each in (*size, *stride)):
        return None
    if 0 in size:
        return list(range(len(size)))
    order = sorted(range(len(size)), key=lambda each: (stride[each], size[each]), reverse=True)
    step = 1
    for dimension in reversed(order):
        if size[dimension] != 1 and stride[dimension] != step:
            return None
        step *= size[dimension]
    return order
