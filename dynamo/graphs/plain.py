"""Graphs as plain data, from which they can be built again: numbers, texts and lists.

Nodes are known by their places, functions by their names; no Python source and nothing pickled is
in it. Every name that a graph's generated source would hold is made here, or is checked.
"""

from __future__ import annotations

import keyword
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

from dynamometer.dynamo.graphs.targets import (
    ATTRIBUTES,
    UnsaveableError,
    function_of,
    is_method,
    name_of,
    operation_of,
    saveable_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Data = None | bool | int | float | str | list[Any] | dict[str, Any]


class Writer:
    """Writes a graph as plain data; what no file can hold is told by its type alone."""

    def graph(self, module: fx.GraphModule) -> list[Data]:
        """Return the nodes, each as its kind, target, positional and keyword arguments."""
        places = {node: place for place, node in enumerate(module.graph.nodes)}
        names: dict[Any, str] = {}
        return [self._node(node, places, module, names) for node in module.graph.nodes]

    def function(self, target: Callable[..., Any]) -> str:
        """Return what a function is written as."""
        return name_of(target)

    def method(self, name: str) -> str:
        """Return what a method is written as."""
        return name

    def tensor(self, value: torch.Tensor) -> Data:
        """Return what an attribute of the graph's module is written as."""
        return {"tensor": [*value.shape, *value.stride(), str(value.dtype), str(value.device)]}

    def other(self, value: object) -> Data:
        """Return what anything else is written as."""
        return f"{type(value).__module__}.{type(value).__qualname__}"

    def _node(
        self,
        node: fx.Node,
        places: Mapping[fx.Node, int],
        module: fx.GraphModule,
        names: dict[Any, str],
    ) -> Data:
        target: Data
        match node.op:
            case "placeholder":
                return ["placeholder"]
            case "output":
                target = None
            case "get_attr" | "call_module":
                target = self._attribute(_attribute(module, str(node.target)))
            case "call_method":
                target = self.method(str(node.target))
            case _:
                if node.target not in names:  # asked for once, as looking it up takes time
                    names[node.target] = self.function(node.target)  # type: ignore[arg-type]  # a function
                target = names[node.target]
        args = [self.argument(each, places) for each in node.args]
        kwargs = {name: self.argument(each, places) for name, each in sorted(node.kwargs.items())}
        return [node.op, target, args, kwargs]

    def _attribute(self, value: object) -> Data:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, fx.GraphModule):
            return {"graph": self.graph(value)}
        return self.other(value)

    def argument(self, value: Any, places: Mapping[fx.Node, int]) -> Data:
        """Return what an argument of a call is written as."""
        if value is None or isinstance(value, bool | int | str) or _is_plain_float(value):
            return value  # type: ignore[no-any-return]  # one of these
        if isinstance(value, list):
            return [self.argument(each, places) for each in value]
        kind, data = self._tagged(value, places)
        return {kind: data}

    def _tagged(self, value: Any, places: Mapping[fx.Node, int]) -> tuple[str, Data]:
        """Return what says what something is, and what it is written as."""
        if isinstance(value, fx.Node):
            return "node", places[value]
        if isinstance(value, dict) and all(isinstance(each, str) for each in value):
            return "dict", {key: self.argument(each, places) for key, each in value.items()}
        if type(value) in _CONTAINERS:
            kind, parts = _CONTAINERS[type(value)]
            return kind, [self.argument(each, places) for each in parts(value)]
        if type(value) in _ATOMS:
            return _ATOMS[type(value)], str(value).removeprefix("torch.")
        if type(value).__module__ == "torch._ops":
            return "function", self.function(value)
        return "type", self.other(value)


class StrictWriter(Writer):
    """Writes a graph as it can be read back.

    Attributes:
        constants: tensors that are attributes of the graph, by the number they are written as.
    """

    def __init__(self) -> None:
        """Begin without constants."""
        self.constants: list[torch.Tensor] = []

    def function(self, target: Callable[..., Any]) -> str:
        """Return the name, if a file may name it."""
        return saveable_name(target)

    def method(self, name: str) -> str:
        """Return the name, if a file may name it."""
        return _method(name)

    def tensor(self, value: torch.Tensor) -> Data:
        """Keep the tensor, and return its number."""
        self.constants.append(value)
        return {"constant": len(self.constants) - 1}

    def other(self, value: object) -> Data:
        """Refuse it."""
        msg = f"it holds a {type(value).__module__}.{type(value).__qualname__}, which no file can"
        raise UnsaveableError(msg)


def read(data: Sequence[Any], constants: Sequence[torch.Tensor]) -> fx.GraphModule:
    """Build a graph that a `StrictWriter` wrote.

    Args:
        data: what it wrote.
        constants: by their numbers.

    Raises:
        UnsaveableError: it calls what a file may not name.
        KeyError, TypeError, ValueError, IndexError: it is nothing that was written so.
    """
    root, graph = nn.Module(), fx.Graph()
    nodes: list[fx.Node] = []
    for kind, *rest in data:
        if kind == "placeholder":
            nodes.append(graph.placeholder(f"input_{len(nodes)}"))
            continue
        target, args, kwargs = rest
        args = tuple(_argument(each, nodes) for each in args)
        kwargs = {_identifier(name): _argument(each, nodes) for name, each in kwargs.items()}
        if kind == "get_attr":
            name = f"attribute_{len(nodes)}"
            _put(root, name, target, constants)
            nodes.append(graph.get_attr(name))
        elif kind == "call_method":
            nodes.append(graph.call_method(_method(target), args, kwargs))
        elif kind == "call_function":
            function = function_of(target)
            _check_getattr(function, args, kwargs)
            nodes.append(graph.call_function(function, args, kwargs))
        elif kind == "output":
            nodes.append(graph.output(*args))
        else:
            msg = f"there are no nodes of the kind {kind!r} in a file"
            raise UnsaveableError(msg)
    graph.lint()
    return fx.GraphModule(root, graph)


def _put(root: nn.Module, name: str, target: Any, constants: Sequence[torch.Tensor]) -> None:
    ((kind, value),) = target.items()
    if kind == "constant":
        root.register_buffer(name, constants[value])
    else:
        assert kind == "graph", kind
        root.add_module(name, read(value, constants))


def _attribute(module: nn.Module, path: str) -> object:
    found: Any = module
    for each in path.split("."):
        found = getattr(found, each)
    return found


def _method(name: str) -> str:
    if not is_method(name):
        msg = f"it calls the method {name!r}, which is none that a file may name"
        raise UnsaveableError(msg)
    return name


def _identifier(name: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        msg = f"{name!r} is no name of an argument"
        raise UnsaveableError(msg)
    return name


def _check_getattr(function: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    if function is getattr and (kwargs or args[1:] not in {(each,) for each in ATTRIBUTES}):
        msg = f"it takes the attribute {args[1:]!r}, which a file may not"
        raise UnsaveableError(msg)


def _argument(data: Any, nodes: Sequence[fx.Node]) -> Any:
    if isinstance(data, list):
        return [_argument(each, nodes) for each in data]
    if not isinstance(data, dict):
        return data
    ((kind, value),) = data.items()
    if kind == "node":
        return nodes[value]
    if kind == "dict":
        return {str(key): _argument(each, nodes) for key, each in value.items()}
    if kind in _MADE_OF_PARTS:
        return _MADE_OF_PARTS[kind](tuple(_argument(each, nodes) for each in value))
    return _MADE_OF_TEXT[kind](value)


def _of_torch(kind: type) -> Callable[[str], Any]:
    def find(name: str) -> Any:
        found = getattr(torch, name)
        if not isinstance(found, kind):
            raise TypeError(name)
        return found

    return find


def _size(parts: tuple[Any, ...]) -> Any:
    return torch.Size(parts) if all(isinstance(each, int) for each in parts) else parts


def _is_plain_float(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


_ATOMS: Mapping[type, str] = {
    float: "float",
    torch.device: "device",
    torch.dtype: "dtype",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
    type(...): "ellipsis",
}
"""What is written as a text."""

_CONTAINERS: Mapping[type, tuple[str, Callable[[Any], Sequence[Any]]]] = {
    complex: ("complex", lambda value: (value.real, value.imag)),
    slice: ("slice", lambda value: (value.start, value.stop, value.step)),
    torch.Size: ("size", tuple),
    tuple: ("tuple", tuple),
}
"""What is written as its parts."""

_MADE_OF_PARTS: Mapping[str, Callable[[tuple[Any, ...]], Any]] = {
    "complex": lambda parts: complex(*parts),
    "slice": lambda parts: slice(*parts),
    "size": _size,
    "tuple": tuple,
}
_MADE_OF_TEXT: Mapping[str, Callable[[str], Any]] = {
    "device": torch.device,
    "dtype": _of_torch(torch.dtype),
    "ellipsis": lambda _: ...,
    "float": float,
    "function": operation_of,
    "layout": _of_torch(torch.layout),
    "memory_format": _of_torch(torch.memory_format),
}
