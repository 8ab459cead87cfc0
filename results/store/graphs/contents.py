"""What the file of a graph holds beside its description, and whether it is the graph of its key.

Without torch, so that whoever takes files from somebody else can tell.
"""

from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING, Any

import msgspec

from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.graphs.corpus import GRAPH, member_of, read_description
from dynamometer.results.values.graphs import TensorInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dynamometer.results.values.graphs import InputDescription, SavedGraph

KEY_VERSION = "graph 1"
"""Keys of another version are other keys."""

_STRIDED = "torch.strided"


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tensor that is an attribute of a graph; its bytes are a file of the archive."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    file: str
    stride: tuple[int, ...] | None = None
    """In elements; `None` where they are those of its shape."""


class Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The nodes of a graph as plain data, and its constants."""

    nodes: list[Any]
    constants: tuple[Constant, ...]


def read_contents(path: Path, called: str | None = None) -> tuple[SavedGraph, Contents]:
    """Read the file of a graph, all but the bytes of its constants.

    Args:
        path: of the file.
        called: what errors call it, if that isn't its path.

    Raises:
        StoreError: there is no such file, it is damaged, of another format, or holds another graph
            than that of its key.
    """
    called = called or str(path)
    description = read_description(path, called)
    try:
        with zipfile.ZipFile(path) as archive:
            contents = msgspec.json.decode(member_of(archive, GRAPH), type=Contents)
            for each in contents.constants:
                archive.getinfo(each.file)
        _check(description.inputs, contents)
        key = key_of(description.inputs, contents)
    except Exception as error:  # zipfile and what unpacks for it raise errors of many kinds
        msg = f"{called} is damaged, or was not written by dynamometer: {error!r}"
        raise StoreError(msg) from error
    # Where sizes vary the key holds symbols, which a file doesn't.
    if key != description.key and not description.is_dynamic:
        msg = (
            f"{called} is damaged: it holds another graph than that of its key,"
            " or was written by an earlier version; record it anew"
        )
        raise StoreError(msg)
    return description, contents


def holds(path: Path, key: str) -> bool:
    """Return whether a file is there, whole, and holds the graph of a key."""
    try:
        return read_contents(path)[0].key == key
    except StoreError:
        return False


def key_of(inputs: Sequence[InputDescription], contents: Contents) -> str:
    """Return the key of a graph that a file holds, as `dynamo/graphs/key.py` does of one in torch.

    It is that of no graph where sizes vary: a key has symbols for them.
    """
    kinds = [_kind(each) for each in inputs]
    nodes = _with_kinds(contents.nodes, contents.constants)
    return hashlib.sha256(msgspec.json.encode([KEY_VERSION, kinds, nodes])).hexdigest()


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor without gaps, as torch counts them."""
    found, step = [], 1
    for size in reversed(shape):
        found.append(step)
        step *= max(size, 1)
    return tuple(reversed(found))


def _check(inputs: Sequence[InputDescription], contents: Contents) -> None:
    """Raise `ValueError` unless inputs are those of the nodes, and tensors can be made."""
    wanted = sum(node[0] == "placeholder" for node in contents.nodes)
    if wanted != len(inputs):
        msg = f"the graph takes {wanted} inputs, and {len(inputs)} are described"
        raise ValueError(msg)
    tensors = [each for each in inputs if isinstance(each, TensorInput)]
    laid_out = [
        *((each.shape, each.stride) for each in tensors),
        *((each.shape, each.stride) for each in contents.constants if each.stride is not None),
    ]
    for shape, stride in laid_out:
        if len(shape) != len(stride) or any(size < 0 for size in (*shape, *stride)):
            msg = f"there is no tensor of shape {shape} and strides {stride}"
            raise ValueError(msg)


def _kind(given: InputDescription) -> list[Any]:
    if not isinstance(given, TensorInput):
        return [type(given.value).__name__, repr(given.value)]
    place = [f"torch.{given.dtype}", given.device, _STRIDED]
    return [given.shape, given.stride, *place, given.requires_grad, given.is_weight]


def _with_kinds(nodes: Sequence[Any], constants: Sequence[Constant]) -> list[Any]:
    """Put the kind of each constant in the place of its number."""
    found = []
    for node in nodes:
        if node[0] == "get_attr":
            kind, target, *rest = node
            found.append([kind, _attribute(target, constants), *rest])
        else:
            found.append(node)
    return found


def _attribute(target: Mapping[str, Any], constants: Sequence[Constant]) -> dict[str, Any]:
    ((kind, value),) = target.items()
    if kind == "graph":
        return {kind: _with_kinds(value, constants)}
    found = constants[value]
    stride = found.stride if found.stride is not None else contiguous(found.shape)
    return {"tensor": [*found.shape, *stride, f"torch.{found.dtype}", found.device]}
