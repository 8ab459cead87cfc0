"""The key of a captured graph: equal for equal operations on inputs of equal kinds."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from dynamometer.dynamo.graphs.plain import Writer
from dynamometer.dynamo.placeholders import is_of_dynamo, is_weight, placeholders
from dynamometer.results.store.graphs.contents import KEY_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import fx

_SYMBOL = re.compile(r"[a-z]+\d+")


def graph_key(graph: fx.GraphModule, inputs: Sequence[Any]) -> str:
    """Return the hexadecimal SHA-256 of a graph in canonical form, and of the kinds of its inputs.

    Names of nodes, places in source and values of tensors are not in it. Sizes that vary are in it
    by the order in which they come.

    Args:
        graph: of Dynamo, or of AOTAutograd.
        inputs: it is compiled for, or is called with; may be fake.
    """
    symbols: dict[str, str] = {}
    kinds = [
        _kind(node, given, symbols) for node, given in zip(placeholders(graph), inputs, strict=True)
    ]
    text = msgspec.json.encode([KEY_VERSION, kinds, Writer().graph(graph)])
    return hashlib.sha256(text).hexdigest()


def has_varying_sizes(graph: fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Return whether a graph is made for sizes that vary."""
    found: dict[str, str] = {}
    for node, given in zip(placeholders(graph), inputs, strict=True):
        _kind(node, given, found)
    return bool(found)


def _kind(node: fx.Node, given: Any, symbols: dict[str, str]) -> list[Any]:
    """Return what is said of one input; of a number its value, unless it varies."""
    fake = node.meta.get("example_value", node.meta.get("val"))
    if isinstance(fake, torch.SymInt | torch.SymFloat | torch.SymBool):
        given = fake
    if not isinstance(given, torch.Tensor):
        plain = given is None or isinstance(given, bool | int | float | str)
        return [type(given).__name__, repr(given) if plain else _in_order(str(given), symbols)]
    seen = fake if isinstance(fake, torch.Tensor) and _varies(fake) else given
    return [
        [_size(each, symbols) for each in seen.shape],
        [_size(each, symbols) for each in seen.stride()] if seen.layout is torch.strided else [],
        *(str(each) for each in (given.dtype, given.device, given.layout)),
        given.requires_grad and is_of_dynamo(node),
        is_weight(node),
        *(["conjugate"] if given.is_conj() else []),
        *(["negative"] if given.is_neg() else []),
    ]


def _varies(tensor: torch.Tensor) -> bool:
    return any(isinstance(each, torch.SymInt) for each in tensor.shape)


def _size(size: int | torch.SymInt, symbols: dict[str, str]) -> int | str:
    return _in_order(str(size), symbols) if isinstance(size, torch.SymInt) else size


def _in_order(text: str, symbols: dict[str, str]) -> str:
    """Rename the symbols of an expression by the order in which they came up first."""
    return _SYMBOL.sub(lambda found: symbols.setdefault(found[0], f"size{len(symbols)}"), text)
