"""Programs for runtimes that compute tensors from tensors and know nothing else.

A runtime such as ONNX Runtime takes tensors and gives new ones. A PyTorch program may also change
its inputs and buffers, return an input, a view, the same tensor twice, a number or nothing. A
`Program` has a functional part for the runtime, and a plan of the rest, which is done around it.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from dynamometer.dynamo import state
from dynamometer.dynamo.backends.unsupported import (
    UnsupportedError,
    read_in_order,
    refuse_overlap,
    refuse_randomness,
)
from dynamometer.dynamo.private import private

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import nn
    from torch.export import ExportedProgram

    Compute = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]
    """From what a program is fed to new tensors."""
    Build = Callable[["Program"], Compute]
    """What a runtime makes of a program."""


@dataclass(frozen=True)
class Made:
    """A tensor that the runtime made.

    Attributes:
        index: of the runtime's outputs.
    """

    index: int

    def of(self, made: Sequence[torch.Tensor], given: Sequence[Any]) -> Any:
        """Return it."""
        del given
        return made[self.index]


@dataclass(frozen=True)
class Given:
    """An input as it was given, which may have been changed in place.

    Attributes:
        index: of the flat inputs.
    """

    index: int

    def of(self, made: Sequence[torch.Tensor], given: Sequence[Any]) -> Any:
        """Return it."""
        del made
        return given[self.index]


@dataclass(frozen=True)
class Known:
    """What is the same at every call: a number, nothing, or a weight.

    Attributes:
        value: it.
    """

    value: Any

    def of(self, made: Sequence[torch.Tensor], given: Sequence[Any]) -> Any:
        """Return it."""
        del made, given
        return self.value


@dataclass(frozen=True)
class ViewOf:
    """A view of something else.

    Attributes:
        base: of what.
        size: of the view.
        stride: of the view.
        offset: of its first element from the base's first one.
    """

    base: Made | Given | Known
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    def of(self, made: Sequence[torch.Tensor], given: Sequence[Any]) -> Any:
        """Return it."""
        base: torch.Tensor = self.base.of(made, given)
        return base.as_strided(self.size, self.stride, base.storage_offset() + self.offset)


Result = Made | Given | Known | ViewOf


@dataclass(frozen=True)
class Program:
    """A functional program, and what is to be done around it.

    Attributes:
        exported: takes tensors, gives distinct new tensors, changes nothing; `None` where there is
            nothing to compute.
        feeds: what it takes: a flat input's index, or a buffer that the program changes.
        examples: of what it is fed.
        outputs: what it gives, as fake tensors.
        results: where each flat output comes from.
        writes: what is changed in place, and with what.
        constants: flat inputs that are no tensors, with their values.
    """

    exported: ExportedProgram | None
    feeds: tuple[int | torch.Tensor, ...]
    examples: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]
    results: tuple[Result, ...]
    writes: tuple[tuple[Known | Given, Result], ...]
    constants: tuple[tuple[int, Any], ...]

    def run(self, compute: Compute, given: Sequence[Any]) -> list[Any]:
        """Return the flat outputs for flat inputs, having changed what the program changes.

        Raises:
            UnsupportedError: it changes inputs, and some of these share memory.
        """
        if self.writes:
            refuse_overlap(given)
        fed = [given[feed] if isinstance(feed, int) else feed for feed in self.feeds]
        made = compute(fed) if fed or self.exported else ()
        for target, result in self.writes:
            target.of(made, given).copy_(result.of(made, given))
        return [result.of(made, given) for result in self.results]

    def moved(self, places: Sequence[int]) -> Program:
        """Return the same for flat inputs of which it takes those at some places."""

        def move(result: Any) -> Any:
            if isinstance(result, Given):
                return Given(places[result.index])
            if isinstance(result, ViewOf):
                return replace(result, base=move(result.base))
            return result

        return replace(
            self,
            feeds=tuple(places[feed] if isinstance(feed, int) else feed for feed in self.feeds),
            results=tuple(map(move, self.results)),
            writes=tuple((move(target), move(result)) for target, result in self.writes),
            constants=tuple((places[index], value) for index, value in self.constants),
        )

    def changes(self, tensor: torch.Tensor) -> bool:
        """Return whether it writes to a buffer."""
        return any(isinstance(to, Known) and to.value is tensor for to, _ in self.writes)


def build_of(program: Program, build: Build) -> Compute:
    """Return what computes a program; a program that computes nothing needs no runtime."""
    return build(program) if program.exported else _nothing


def _nothing(fed: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    del fed
    return ()


def export(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
) -> ExportedProgram:
    """Return a module as a program of functional operations, on the memory of its own weights."""
    with state.exporting():
        functional: ExportedProgram = _traced(module, args, kwargs).run_decompositions({})
        return functional


def _traced(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
) -> ExportedProgram:
    return torch.export.export(module, args, dict(kwargs or {}), strict=False)


def program_of(exported: ExportedProgram, given: Sequence[Any]) -> Program:
    """Separate what a runtime computes from what is done around it.

    Args:
        exported: of functional operations.
        given: the flat inputs that it was exported for.

    Raises:
        UnsupportedError: it draws random numbers, changes one of inputs that overlap, or reads by
            strides what has gaps.
    """
    refuse_randomness(exported.graph_module)
    sources = _sources(exported)
    nodes, results, writes = _Planner(exported, sources).plan()
    if writes:
        refuse_overlap(given)
    changed = {id(to.value) for to, _ in writes if isinstance(to, Known)}
    constants = tuple(
        (index, value) for index, value in enumerate(given) if not isinstance(value, torch.Tensor)
    )
    outputs = tuple(node.meta["val"] for node in nodes)
    if not nodes:
        return Program(None, (), (), (), results, writes, constants)
    flat, feeds = _functional(exported, sources, nodes, changed)
    fed = tuple(given[feed] if isinstance(feed, int) else feed for feed in feeds)
    examples = tuple(each.detach().contiguous() for each in fed)
    # Its operations are functional already, and the runtimes' converters decompose them themselves.
    with state.exporting():
        program = _traced(flat, examples)
    return Program(program, feeds, examples, outputs, results, writes, constants)


def _sources(exported: ExportedProgram) -> dict[str, Known | Given]:
    """Map the name of every input of an exported graph to where its value comes from."""
    from torch.export.graph_signature import InputKind

    kept = {**exported.constants, **exported.state_dict}
    sources: dict[str, Known | Given] = {}
    count = 0
    for spec in exported.graph_signature.input_specs:
        name = spec.arg.name
        if spec.kind is InputKind.USER_INPUT:
            sources[name] = Given(count)
            count += 1
        elif spec.target is not None:
            sources[name] = Known(kept[spec.target])
    return sources


class _Planner:
    """Finds where each output of an exported graph comes from."""

    def __init__(self, exported: ExportedProgram, sources: Mapping[str, Known | Given]) -> None:
        self._exported = exported
        self._sources = sources
        self._by_name = {node.name: node for node in exported.graph.nodes}
        self._made: list[fx.Node] = []
        self._written: dict[fx.Node, Known | Given] = {}

    def plan(
        self,
    ) -> tuple[list[fx.Node], tuple[Result, ...], tuple[tuple[Known | Given, Result], ...]]:
        """Return the nodes that are to be computed, the results, and what is written."""
        from torch.export.graph_signature import OutputKind

        specs = self._exported.graph_signature.output_specs
        outputs = [spec.arg for spec in specs if spec.kind is OutputKind.USER_OUTPUT]
        writes = []
        for spec in specs:
            if spec.kind is not OutputKind.USER_OUTPUT:
                node = self._by_name[spec.arg.name]
                target = self._target(spec)
                writes.append((target, self._plain(node)))
                self._written[node] = target
        bases = [
            _base(self._by_name[arg.name]) if arg.name in self._by_name else None for arg in outputs
        ]
        results = tuple(
            self._result(arg, bases.count(base) > 1)
            for arg, base in zip(outputs, bases, strict=True)
        )
        return self._made, results, tuple(writes)

    def _target(self, spec: Any) -> Known | Given:
        """Return what an output is written to: an input by its name, or a buffer by its path."""
        if spec.target in self._sources:
            return self._sources[spec.target]
        for each in self._exported.graph_signature.input_specs:
            if each.target == spec.target:
                return self._sources[each.arg.name]
        msg = f"{spec.target} is changed in a way that is not known here: {spec.kind}"
        raise UnsupportedError(msg)

    def _result(self, arg: Any, shared: bool) -> Result:  # noqa: FBT001  whether its base is
        node = self._by_name.get(arg.name)
        if node is None:
            return Known(arg.value)
        base = _base(node)
        if node is base or not (shared or base in self._written or base.op == "placeholder"):
            return self._plain(node)
        whole = base.meta["val"]
        if base.op != "placeholder" and not whole.is_contiguous():
            return self._plain(node)
        val = node.meta["val"]
        offset = val.storage_offset() - whole.storage_offset()
        origin = self._plain(base)
        assert not isinstance(origin, ViewOf)
        return ViewOf(origin, tuple(val.size()), tuple(val.stride()), offset)

    def _plain(self, node: fx.Node) -> Made | Given | Known:
        if node in self._written:
            return self._written[node]
        if node.op == "placeholder":
            return self._sources[node.name]
        if not isinstance(node.meta.get("val"), torch.Tensor):
            msg = f"it returns a number that depends on the inputs' values: {node.name}"
            raise UnsupportedError(msg)
        if node not in self._made:
            self._made.append(node)
        return Made(self._made.index(node))


def _base(node: fx.Node) -> fx.Node:
    """Return what a node is a view of; itself where it is none."""
    while True:
        # `chunk` and its like give a list of views.
        is_of_list = node.target is operator.getitem and isinstance(node.args[0], fx.Node)
        made: Any = node.args[0] if is_of_list else node
        if not isinstance(made.target, private("torch._ops.OpOverload")):
            break
        returns = made.target._schema.returns  # noqa: SLF001  there is no other way to ask
        first = made.args[0] if made.args else None
        if len(returns) != 1 or returns[0].alias_info is None or not isinstance(first, fx.Node):
            break
        one, two = node.meta.get("val"), first.meta.get("val")
        if not (isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor)):
            break
        if not _shares(one, two):
            break
        node = first
    return node


def _shares(one: torch.Tensor, two: torch.Tensor) -> bool:
    return bool(one.untyped_storage()._cdata == two.untyped_storage()._cdata)  # noqa: SLF001  fakes have no address


def _functional(
    exported: ExportedProgram,
    sources: Mapping[str, Known | Given],
    nodes: Sequence[fx.Node],
    changed: set[int],
) -> tuple[fx.GraphModule, tuple[int | torch.Tensor, ...]]:
    """Return the part that makes some nodes, with its weights inside, and what it is fed."""
    graph = exported.graph
    output = next(iter(reversed(graph.nodes)))
    output.args = (tuple(nodes),)
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and "assert" in str(node.target) and not node.users:
            graph.erase_node(node)  # a runtime has no word for it
    graph.eliminate_dead_code()
    flat = fx.GraphModule(exported.graph_module, graph)
    read_in_order(flat)
    feeds: list[int | torch.Tensor] = []
    names: dict[int, str] = {}
    for node in [node for node in graph.nodes if node.op == "placeholder"]:
        source = sources[node.name]
        if not node.users and node not in nodes:
            graph.erase_node(node)
        elif isinstance(source, Given):
            feeds.append(source.index)
        elif id(source.value) in changed:
            feeds.append(source.value)
        else:
            name = names.setdefault(id(source.value), f"weight_{len(names)}")
            flat.register_buffer(name, source.value.detach())
            put_constant(graph, node, name)
    flat.recompile()
    return flat, tuple(feeds)


def put_constant(graph: fx.Graph, node: fx.Node, name: str) -> None:
    """Put an attribute of the graph's module in the place of an input."""
    with graph.inserting_before(node):
        attribute = graph.get_attr(name)
    attribute.meta = dict(node.meta)
    node.replace_all_uses_with(attribute)
    graph.erase_node(node)
