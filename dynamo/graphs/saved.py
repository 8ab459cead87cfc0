"""The file of a captured graph: what it says of itself, its nodes, and its small constants.

A zip archive of JSON and of tensors' bytes. Reading it runs no code: there is nothing pickled in
it, no source, and no function but those of a list. It is no program of `torch.export`, as
`torch.export.load` unpickles what a file says is pickled, evaluates texts for symbolic sizes, and
takes any name below `torch` for a function.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from torch import fx

from dynamometer.dynamo.graphs.inputs import describe, dtype_of, refuse_unplain
from dynamometer.dynamo.graphs.key import graph_key, has_varying_sizes
from dynamometer.dynamo.graphs.plain import StrictWriter, read
from dynamometer.dynamo.graphs.targets import UnsaveableError, name_of
from dynamometer.dynamo.placeholders import is_of_dynamo, is_weight, mark_weight, placeholders
from dynamometer.results.store.errors import StoreError
from dynamometer.results.store.graphs.contents import Constant, Contents, read_contents
from dynamometer.results.store.graphs.corpus import (
    DESCRIPTION,
    GRAPH,
    member_of,
    write_archive,
)
from dynamometer.results.values.graphs import SavedGraph, TensorInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.results.values.graphs import Origin

_MOST_CONSTANT_BYTES = 64 * 2**20
_TOO_LARGE = "its constants are larger than 64 MiB"


@dataclass(frozen=True)
class Captured:
    """A graph as it was when it was captured, to be saved once its inputs are known.

    Attributes:
        key: of the graph.
        ops: how often each operation is called.
        nodes: the graph as plain data; `None` if no file can hold it.
        constants: tensors that are attributes of it.
        reason: why no file can hold it.
        weights: of each input whether it is a parameter or buffer.
        is_dynamic: whether it is made for sizes that vary.
        is_of_dynamo: whether gradients may be asked of it.
    """

    key: str
    ops: dict[str, int]
    nodes: list[Any] | None
    constants: tuple[torch.Tensor, ...]
    reason: str | None
    weights: tuple[bool, ...]
    is_dynamic: bool
    is_of_dynamo: bool

    @classmethod
    def of(cls, graph: fx.GraphModule, inputs: Sequence[Any]) -> Captured:
        """Take a graph with what it is compiled for; nothing of it is kept."""
        writer, nodes, reason = StrictWriter(), None, None
        try:
            nodes = writer.graph(graph)
            for each in writer.constants:
                refuse_unplain(each)
            if sum(each.nbytes for each in writer.constants) > _MOST_CONSTANT_BYTES:
                reason, nodes = _TOO_LARGE, None
        except UnsaveableError as error:
            reason, nodes = str(error), None
        return cls(
            key=graph_key(graph, inputs),
            ops=_ops(graph),
            nodes=nodes,
            constants=tuple(writer.constants) if nodes is not None else (),
            reason=reason,
            weights=tuple(map(is_weight, placeholders(graph))),
            is_dynamic=has_varying_sizes(graph, inputs),
            is_of_dynamo=any(map(is_of_dynamo, placeholders(graph))),
        )

    def save(self, path: Path, inputs: Sequence[Any], origin: Origin) -> SavedGraph:
        """Write the file, whole or not at all.

        Args:
            path: of the file.
            inputs: that it is called with, real ones, before it changes them.
            origin: what it was captured of.

        Raises:
            UnsaveableError: it, or an input, is nothing that a file can hold; says why.
            StoreError: the file can't be written.
        """
        if self.nodes is None:
            raise UnsaveableError(self.reason)
        if not self.is_of_dynamo:
            inputs = [x.detach() if isinstance(x, torch.Tensor) else x for x in inputs]
        description = SavedGraph(
            key=self.key,
            origin=origin,
            ops=self.ops,
            inputs=describe(inputs, self.weights),
            is_dynamic=self.is_dynamic,
            torch=str(torch.__version__),
        )
        constants = tuple(
            Constant(
                tuple(each.shape),
                str(each.dtype).removeprefix("torch."),
                str(each.device),
                f"constants/{number}",
                None if each.is_contiguous() else tuple(each.stride()),
            )
            for number, each in enumerate(self.constants)
        )
        members = {
            DESCRIPTION: msgspec.json.encode(description),
            GRAPH: msgspec.json.encode(Contents(self.nodes, constants)),
        }
        for constant, tensor in zip(constants, self.constants, strict=True):
            members[constant.file] = _bytes(tensor)
        write_archive(path, members)
        return description


def load(path: Path) -> tuple[fx.GraphModule, SavedGraph]:
    """Read a graph. Runs no code of the file.

    The nodes of its inputs say which are weights, as Dynamo's do, and hold an example of their
    kind on torch's device `meta`.

    Raises:
        StoreError: there is no such file, it is damaged, was written otherwise, or holds another
            graph than that of its key.
        UnsaveableError: it calls what a file may not name, or this torch doesn't have.
    """
    description, stored = read_contents(path)
    try:
        with zipfile.ZipFile(path) as archive:
            constants = _tensors(stored.constants, archive)
        graph = read(stored.nodes, constants)
        inputs = zip(placeholders(graph), description.inputs, strict=True)
        for node, given in inputs:
            if isinstance(given, TensorInput):
                _give_example(node, given)
            else:
                node.meta["example_value"] = given.value
    except UnsaveableError:
        raise
    except Exception as error:
        msg = f"{path} is damaged, or was not written by dynamometer: {error!r}"
        raise StoreError(msg) from error
    return graph, description


def _give_example(node: fx.Node, given: TensorInput) -> None:
    dtype = dtype_of(given.dtype)
    example = torch.empty_strided(given.shape, given.stride, dtype=dtype, device="meta")
    node.meta["example_value"] = example.requires_grad_(given.requires_grad)
    if given.is_weight:
        mark_weight(node)


def _ops(graph: fx.GraphModule) -> dict[str, int]:
    """Count the operations of a graph and of the graphs within it."""
    counts: Counter[str] = Counter()
    for module in graph.modules():
        for node in module.graph.nodes if isinstance(module, fx.GraphModule) else ():
            if node.op == "call_method":
                counts[f"Tensor.{node.target}"] += 1
            elif node.op in {"call_function", "call_module"}:
                is_text = isinstance(node.target, str)
                counts[node.target if is_text else name_of(node.target)] += 1
    return dict(sorted(counts.items()))


def _bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().flatten()
    if not flat.numel():
        return b""
    return flat.view(torch.uint8).numpy().tobytes()


def _tensors(constants: Sequence[Constant], archive: zipfile.ZipFile) -> list[torch.Tensor]:
    # Of all together, as a file may name the same bytes any number of times.
    if sum(archive.getinfo(each.file).file_size for each in constants) > _MOST_CONSTANT_BYTES:
        raise ValueError(_TOO_LARGE)
    return [_tensor(each, member_of(archive, each.file)) for each in constants]


def _tensor(constant: Constant, data: bytes) -> torch.Tensor:
    dtype = dtype_of(constant.dtype)
    flat = (
        torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype)
        if data
        else torch.empty(0, dtype=dtype)
    )
    return _laid_out(flat.reshape(constant.shape), constant.stride).to(constant.device)


def _laid_out(tensor: torch.Tensor, stride: Sequence[int] | None) -> torch.Tensor:
    """Copy a tensor into memory of given strides."""
    if stride is None:
        return tensor
    length = 1 + sum((size - 1) * each for size, each in zip(tensor.shape, stride, strict=True))
    if length * tensor.element_size() > _MOST_CONSTANT_BYTES:
        raise ValueError(_TOO_LARGE)
    found = written = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype)
    for dim, each in enumerate(stride):
        if not each and tensor.shape[dim]:  # all along it are the same element
            written, tensor = written.narrow(dim, 0, 1), tensor.narrow(dim, 0, 1)
    written.copy_(tensor)
    return found
