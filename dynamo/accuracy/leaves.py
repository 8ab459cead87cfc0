"""The leaves of whatever a model returns: tensors, numbers and text, each with its path."""

from __future__ import annotations

import copy
import dataclasses
import enum
import inspect
from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dynamometer.dynamo.trees import tree_map_only

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Leaf:
    """One leaf of a result, kept from the calls after it.

    Attributes:
        value: a dense tensor on the CPU, or what is no tensor as it is.
        kind: what must be the same beside the values: of a tensor shape, dtype and strides, else
            the type.
        is_comparable: whether two that are not one and the same can be compared.
        resolution: of a difference of stored values, how finely these can be told apart.
    """

    value: Any
    kind: str
    is_comparable: bool = True
    resolution: torch.Tensor | None = None


Leaves = Mapping[str, Leaf]
"""By path, as one would write it in Python."""


def collect(tree: object, path: str = "output") -> dict[str, Leaf]:
    """Walk a result down to its leaves and keep them.

    A mapping (`ModelOutput` is one) and a plain dictionary of the same keys have the same leaves:
    TorchScript returns the one where the model returns the other. So have a list and a tuple. An
    entry that is `None` counts as absent. Of objects, such as distributions, key-value caches and
    callables with a state, the attributes are walked. Iterators are consumed. Two leaves whose
    paths read alike are told apart by a number.

    Args:
        tree: what to walk.
        path: of the tree.
    """
    return keep_all(by_path(tree, path))


def keep_all(values: Mapping[str, object]) -> dict[str, Leaf]:
    """Copy leaves that were walked to, as `keep` does each; strides are part of their kind."""
    return {
        path + step: keep(part, strides=True)
        for path, value in values.items()
        for step, part in _stored(value)
    }


MOST_DENSE = 1 << 26
"""Elements of a sparse result that are all written out, to be compared and for its loss."""


def _stored(value: object) -> Iterator[tuple[str, object]]:
    """Yield what is stored of a sparse tensor that would be too large with all its zeros."""
    if (
        not isinstance(value, torch.Tensor)
        or value.layout is not torch.sparse_coo
        or value.numel() <= MOST_DENSE
    ):
        yield "", value
    else:
        own = value.detach().coalesce()
        yield ".indices()", own.indices()
        yield ".values()", own.values()
        yield ".shape", tuple(own.shape)


_MOST_LEAVES, _MOST_OF_ITERATOR = 1 << 20, 1 << 16
"""Of one tree that are looked at: containers that all hold each other have paths without end, and
an iterator may never end."""


def by_path(tree: object, path: str, *, is_result: bool = True) -> dict[str, object]:
    """Return the leaves of a tree themselves, not copies.

    Args:
        tree: what to walk.
        path: of the tree.
        is_result: whether iterators are consumed, and tensors opened that wrap others; of inputs
            each is a leaf, which the model is given.
    """
    found: dict[str, object] = {}
    counts = Counter[str]()
    walked = _walk(tree, path, frozenset(), is_result=is_result)
    for leaf_path, value in islice(walked, _MOST_LEAVES):
        unique = leaf_path
        while unique in found:
            counts[leaf_path] += 1
            unique = f"{leaf_path} ({counts[leaf_path] + 1})"
        found[unique] = value
    return found


def tensors_in(tree: object) -> list[torch.Tensor]:
    """Return every tensor of a tree of inputs, whatever holds it; iterators are left alone."""
    every = by_path(tree, "", is_result=False).values()
    return [each for each in every if isinstance(each, torch.Tensor)]


def map_tensors(change: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    """Return a tree of inputs like another, with every tensor changed.

    What is in objects, such as data classes, is changed in copies of these.

    Args:
        change: gives what is there instead; the same for the same tensor.
        tree: of inputs.
    """

    def changed(leaf: object) -> object:
        if isinstance(leaf, torch.Tensor):
            return change(leaf)
        if isinstance(leaf, (*_PLAIN, Iterator)):
            return leaf
        within = tensors_in(leaf)
        return copy.deepcopy(leaf, {id(each): change(each) for each in within}) if within else leaf

    return tree_map_only(object, changed, tree)


def structure_of(tree: object) -> str | None:
    """Describe what a result is made of beside its leaves: which containers, of what and in order.

    A list and a tuple are the same, and so are mappings of the same keys; a tensor of a class of
    its own, and a data class, are nothing else. In a mapping or a data class an entry that is
    `None` counts as absent, in a sequence it has its place. `None` if there is something in it that
    can't be looked into here: an object, an iterator, a container that contains itself.
    """
    return _structure(tree, frozenset())


_SEQUENCES = (list, tuple, KeysView, ValuesView, ItemsView, Sequence)
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)


def _structure(tree: object, above: AbstractSet[int]) -> str | None:
    if tree is None:
        return "None"
    if isinstance(tree, (torch.Tensor, *_PLAIN)):
        is_own = isinstance(tree, torch.Tensor) and type(tree) not in _PLAIN_TENSORS
        return type(tree).__name__ if is_own else "."
    if id(tree) in above:
        return None
    within = above | {id(tree)}
    if isinstance(tree, Mapping):
        entries = {key: _structure(each, within) for key, each in tree.items() if each is not None}
        known = [f"{key!r}: {each}" for key, each in entries.items() if each is not None]
        return f"{{{', '.join(known)}}}" if len(known) == len(entries) else None
    if dataclasses.is_dataclass(tree):
        names = {f".{each.name}" for each in dataclasses.fields(tree)}
        held = {step[1:]: each for step, each in _attributes(tree) or () if step in names}
        inner = _structure(held, within)
        return inner and f"{type(tree).__name__}{inner}"
    parts = [_structure(each, within) for each in tree] if isinstance(tree, _SEQUENCES) else [None]
    texts = [each for each in parts if each is not None]
    return f"[{', '.join(texts)}]" if len(texts) == len(parts) else None


def _walk(
    tree: object, path: str, above: AbstractSet[int], *, is_result: bool
) -> Iterator[tuple[str, object]]:
    if tree is None or id(tree) in above:
        return
    is_whole = not is_result and _is_whole(tree)
    children = None if is_whole else _children(tree)
    if children is None:
        yield path, tree
        children = _beside_values(tree) if is_result else []
    for step, child in children:
        below = (path + step).removeprefix(".")
        yield from _walk(child, below, above | {id(tree)}, is_result=is_result)


def _is_whole(tree: object) -> bool:
    """Return whether something is used up by looking into it, or has a gradient as a whole."""
    return isinstance(tree, Iterator) or (isinstance(tree, torch.Tensor) and not tree.is_nested)


def _beside_values(tree: object) -> list[tuple[str, object]]:
    """Return what a tensor of a class of its own holds beside its values, as a scale."""
    if not isinstance(tree, torch.Tensor) or type(tree) in _PLAIN_TENSORS or tree.is_nested:
        return []
    return [(f".{name}", value) for name, value in vars(tree).items()]


OFFSETS = ".offsets()"
"""How the path of where the rows of a nested tensor begin ends."""
_IN_ORDER = (list, tuple, KeysView, ValuesView, ItemsView, Iterator)
_PLAIN = (Number, str, bytes, AbstractSet, np.ndarray, np.generic, torch.nn.Module, type, enum.Enum)


def _children(tree: object) -> Iterable[tuple[str, object]] | None:
    """Return what a tree consists of, each with its step of the path; `None` for a leaf."""
    if isinstance(tree, torch.Tensor):
        return _of_nested(tree) if tree.is_nested else _of_wrapper(tree)
    if isinstance(tree, _IN_ORDER):
        values = islice(tree, _MOST_OF_ITERATOR) if isinstance(tree, Iterator) else tree
        return [(f"[{index}]", value) for index, value in enumerate(values)]
    if isinstance(tree, _PLAIN):
        return _of_compound(tree) if isinstance(tree, np.ndarray) else None
    if isinstance(tree, Mapping):
        return [(_step(key), value) for key, value in tree.items()]
    if isinstance(tree, Sequence):
        return [(f"[{index}]", value) for index, value in enumerate(tree)]
    return _attributes(tree)


def _step(key: object) -> str:
    return f".{key}" if isinstance(key, str) else f"[{key!r}]"


def _of_nested(tensor: torch.Tensor) -> list[tuple[str, object]]:
    if tensor.layout is torch.jagged and tensor.lengths() is None:  # type: ignore[attr-defined]  # of jagged ones alone
        offsets = tensor.offsets()  # type: ignore[attr-defined]  # of jagged ones alone
        return [(".values()", tensor.values()), (OFFSETS, offsets)]
    return [(f"[{index}]", each) for index, each in enumerate(tensor.unbind())]


def _of_wrapper(tensor: torch.Tensor) -> list[tuple[str, object]] | None:
    """Return what a tensor is made of that wraps others; `None` of one that is none."""
    if type(tensor) in _PLAIN_TENSORS or not hasattr(tensor, "__tensor_flatten__"):
        return None
    names, context = tensor.__tensor_flatten__()
    held = [(f".{name}", getattr(tensor, name)) for name in names]
    outer = [(".dtype", tensor.dtype), (".shape", tuple(tensor.shape))]
    return [*held, *outer, (".context", context)]


def _of_compound(array: np.ndarray[Any, Any]) -> list[tuple[str, object]] | None:
    """Return what an array of more than numbers or text consists of; `None` of one that is none."""
    if array.dtype.names:
        return [(_step(name), array[name]) for name in array.dtype.names]
    if isinstance(array, np.ma.MaskedArray):
        return [(".data", array.filled(0)), (".mask", np.ma.getmaskarray(array))]
    if array.dtype.kind == "O":
        return [(".shape", array.shape), (".tolist()", array.ravel().tolist())]
    return None


def _attributes(tree: object) -> list[tuple[str, object]] | None:
    """Return what an object holds in `__dict__` and `__slots__`; `None` if that is nothing."""
    if inspect.isroutine(tree):
        return None
    names = [name for each in type(tree).__mro__ for name in _slots(each)]
    if not (names or hasattr(tree, "__dict__") or dataclasses.is_dataclass(tree)):
        return None
    held: dict[str, object] = {name: getattr(tree, name) for name in names if hasattr(tree, name)}
    held |= getattr(tree, "__dict__", {})
    return [(f".{name}", value) for name, value in held.items()] or None


def _slots(kind: type) -> list[str]:
    """Name the slots of a class written in Python, as its instances know them."""
    names = kind.__dict__.get("__slots__", ())
    names = (names,) if isinstance(names, str) else tuple(names)
    private = f"_{kind.__name__.lstrip('_')}"
    return [
        f"{private}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in {"__dict__", "__weakref__"}
    ]


def keep(value: object, *, strides: bool = False) -> Leaf:
    """Copy a leaf.

    Args:
        value: a tensor, an array, a number, or anything else.
        strides: whether those of a tensor are part of its kind.
    """
    if isinstance(value, torch.Tensor):
        kind = _kind(value) if strides else f"shape {tuple(value.shape)} of {value.dtype}"
        return Leaf("no values", kind) if value.is_meta else Leaf(_plain(value), kind)
    if isinstance(value, np.ndarray):
        return _of_array(value)
    kind = type(value).__name__
    if isinstance(value, float | complex | np.inexact):
        return Leaf(_plain(torch.tensor(value, dtype=_WIDEST[isinstance(value, _COMPLEX)])), kind)
    return Leaf(value, kind, _has_equality(value))


_SINGLE = (enum.Enum, type, torch.dtype, torch.layout, torch.memory_format)
"""Of which there is one of each, so that they are equal if they are the same."""

_COMPLEX = (complex, np.complexfloating)
_WIDEST = {False: torch.float64, True: torch.complex128}


def _of_array(array: np.ndarray[Any, Any]) -> Leaf:
    kind = f"array of shape {array.shape} of {array.dtype}"
    if array.dtype.kind in "biufc":
        native = array.astype(array.dtype.newbyteorder("="))
        with suppress(TypeError):  # of long numbers, which torch doesn't have
            return Leaf(_plain(torch.tensor(native)), kind)
    return Leaf(array.tolist(), kind)


def _has_equality(value: object) -> bool:
    """Return whether `==` says more of two objects than whether they are one and the same."""
    if isinstance(value, _SINGLE):
        return True
    if isinstance(value, AbstractSet):
        return all(_has_equality(each) for each in value)
    has_own = type(value).__eq__ is not object.__eq__
    return has_own and not isinstance(value, torch.Tensor | torch.nn.Module)


def _kind(tensor: torch.Tensor) -> str:
    """Describe what must be the same of two tensors beside their values.

    Strides matter to whoever takes a view of the output; those of dimensions with one element,
    and of tensors with none, don't.
    """
    place = "" if tensor.device.type == "cpu" else f" on {tensor.device.type}"
    text = f"shape {tuple(tensor.shape)} of {tensor.dtype}{place}"
    if tensor.layout is not torch.strided:
        return f"{text}, {tensor.layout}"
    if tensor.numel() == 0 or tensor.is_contiguous():
        return text
    strides = zip(tensor.shape, tensor.stride(), strict=True)
    return f"{text} with strides {tuple(stride for size, stride in strides if size > 1)}"


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a dense copy on the CPU: of complex numbers real and imaginary part."""
    dense = tensor.detach()
    if type(dense) not in _PLAIN_TENSORS and not hasattr(dense, "__tensor_flatten__"):
        dense = dense.as_subclass(torch.Tensor)  # compared by torch's operators, not its own
    if dense.is_quantized:
        dense = dense.dequantize()
    if dense.layout is not torch.strided:
        dense = dense.to_dense()
    dense = dense.resolve_conj().resolve_neg()
    if dense.is_complex():
        dense = torch.view_as_real(dense)
    if dense.is_floating_point() and dense.itemsize == 1:
        dense = dense.float()  # no arithmetic is defined on eight bits
    return dense.to("cpu", copy=True)
