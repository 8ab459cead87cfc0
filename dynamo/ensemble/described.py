"""What Python objects are made of, said so that it is the same in every process.

There are no addresses, no order of sets and no values of tensors in it. A copy of an object is
said to be what the object is.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections import ChainMap, UserDict, UserList, UserString, deque
from enum import Enum
from types import FunctionType, MappingProxyType, MethodType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch
from torch import fx, nn

from dynamometer.dynamo.ensemble.in_files import (
    GETTERS,
    HASH,
    OPERATORS,
    PLAIN,
    QUALIFIED,
    SAID,
    globals_of,
    is_opaque,
    parts_of_code,
    told_of_class,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_MANGLED = re.compile(r"___torch_mangle_\d+\.")
"""Of the name of a scripted class; the number goes up through a whole process."""
_SOURCES = re.compile(r" # .*$", re.MULTILINE)
_MOST_DEEP = 40
_MOST_ITEMS = 10_000
"""Of a container; of what comes after them only the number counts."""
_WHOLE = "biu"
"""Kinds of NumPy's arrays of truth values and whole numbers: sizes and places, which a model may be
built by, where others are weights."""
_HOOKS = re.compile(r"_hooks(_\w+)?$")
"""Attributes of modules that are dictionaries by numbers which go up through a whole process."""
_OF_MODULES = frozenset({"_parameters", "_buffers", "_modules", "_compiled_call_impl", "training"})
"""Attributes of every module, which are described apart or say nothing of what it computes."""


class Describer:
    """Describes objects; what is met again is not gone through again."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: dict[tuple[int, bool], tuple[object, str]] = {}
        self._classes: dict[type, str] = {}
        self._open: list[object] = []

    def module(self, module: nn.Module) -> list[Any]:
        """Describe a module, but not its parameters, buffers and submodules."""
        kind = type(module)
        if isinstance(module, torch.jit.ScriptModule):  # it has no code in Python
            training = getattr(module, "training", None)  # a frozen one doesn't say
            return ["script", training, self._of_script(module)]  # a copy is of another class
        forward = self.value(getattr(kind, "forward", None))
        if isinstance(module, fx.GraphModule):  # its code is all there is; the rest is fx's own
            return [_name(kind), module.training, forward]
        attributes = {
            name: list(value.values()) if _HOOKS.search(name) and isinstance(value, dict) else value
            for name, value in vars(module).items()
            if name not in _OF_MODULES
        }
        return [
            self._class(kind), module.training, _settings(module), forward,
            self._by_name(attributes),
        ]  # fmt: skip

    def value(self, value: object, *, of_function: bool = False) -> Any:
        """Describe whatever a model may hold, or be given.

        Of what can't be looked into it is the class' name: a key fails no model.

        Args:
            value: is described.
            of_function: whether a function refers to it. Of modules it then says what they are
                only: a copy of a model has functions that refer to the model that was copied.
        """
        try:
            return self._value(value, of_function=of_function)
        except Exception:  # noqa: BLE001  an object of a model's may do anything when it is asked
            return [_name(type(value)), "can't be read"]

    def _value(self, value: object, *, of_function: bool) -> Any:
        if isinstance(value, PLAIN):
            return [type(value).__name__, repr(value)]
        if isinstance(value, torch.Tensor):
            return kind_of(value)
        if isinstance(value, SAID):
            return [type(value).__name__, ascii(str(value))]
        if len(self._open) > _MOST_DEEP or any(each is value for each in self._open):
            return [_name(type(value)), "..."]
        known = self._known.get((id(value), of_function))
        if known is None:
            self._open.append(value)
            try:
                parts = self._parts(value, of_function=of_function)
            finally:
                self._open.pop()
            # It is kept, so that no other one gets its number.
            known = self._known[id(value), of_function] = (value, _hashed(parts))
        return known[1]

    def _parts(self, value: Any, *, of_function: bool) -> list[Any]:
        if isinstance(value, nn.Module):
            own = [
                [name, self._class(type(each)), _settings(each)] if of_function
                else [name, self.module(each)]
                for name, each in value.named_modules()
            ]  # fmt: skip
            return [own, tensors_of(value), sharing_of(value)]
        if isinstance(value, type):
            return ["class", _name(value)]
        found = (
            self._of_container(value, of_function=of_function)
            or self._of_callable(value, of_function=of_function)
            or self._of_object(value, of_function=of_function)
        )
        return [_name(type(value)), *found]

    def _of_container(self, value: Any, *, of_function: bool) -> list[Any]:
        inner = functools.partial(self.value, of_function=of_function)
        match value:
            case dict():
                items = itertools.islice(value.items(), _MOST_ITEMS)
                return [len(value), [[inner(key), inner(each)] for key, each in items]]
            case list() | tuple() | deque():
                items = itertools.islice(value, _MOST_ITEMS)
                return [len(value), [inner(each) for each in items]]
            case set() | frozenset():
                if len(value) > _MOST_ITEMS:
                    return [len(value)]
                return [sorted(msgspec.json.encode(inner(each)).decode() for each in value)]
            case np.ndarray():
                return _of_array(value)
        return []

    def _of_callable(self, value: Any, *, of_function: bool) -> list[Any]:
        inner = functools.partial(self.value, of_function=of_function)
        match value:
            case FunctionType():
                return self._of_function(value)
            case _ if isinstance(value, QUALIFIED):
                return [getattr(value, "__module__", None) or "", value.__qualname__]
            case MethodType():
                return [inner(value.__func__), self.value(value.__self__, of_function=True)]
            case functools.partial():
                return [inner(value.func), inner(value.args), inner(value.keywords)]
            case staticmethod() | classmethod() | property() | functools.cached_property():
                named = ("__func__", "fget", "func")
                return [inner(getattr(value, each, None)) for each in named]
        return []

    def _of_object(self, value: object, *, of_function: bool) -> list[Any]:
        kind = type(value)
        if isinstance(value, Enum):
            return [value.name]
        if is_opaque(kind.__module__) and kind is not SimpleNamespace:
            return self._of_opaque(value, of_function=of_function)
        names = [name for base in kind.__mro__ for name in _slots(base)]
        slots = {name: getattr(value, name) for name in names if hasattr(value, name)}
        attributes = {**slots, **getattr(value, "__dict__", {})}
        return [self._class(kind), self._by_name(attributes, of_function=of_function)]

    def _of_opaque(self, value: Any, *, of_function: bool) -> list[Any]:  # noqa: PLR0911  a kind each
        inner = functools.partial(self.value, of_function=of_function)
        match value:
            case MappingProxyType() | ChainMap() | UserDict():
                return [inner(dict(value))]
            case UserList() | UserString():
                return [inner(value.data)]
            case bytearray():
                return [inner(bytes(value))]
            case re.Pattern():
                return [inner(value.pattern), value.flags]
            case np.ufunc():
                return [value.__name__]
            case torch.jit.ScriptFunction():
                return [_MANGLED.sub("", str(value.code))]
        if isinstance(value, OPERATORS):
            return [str(value)]
        if isinstance(value, GETTERS):
            return [inner(value.__reduce__())]
        wrapped = getattr(value, "__wrapped__", None)  # of functools.cache, for one
        return [] if wrapped is None else [inner(wrapped)]

    def _of_script(self, module: torch.jit.ScriptModule) -> Any:
        """Describe a scripted or traced module by its graph, and by what that reads of the module.

        What it calls stands in the graph; of a module without `forward` the class is known alone.
        """
        try:
            graph = _SOURCES.sub("", _MANGLED.sub("", str(module.inlined_graph)))
            names = set(re.findall(r'GetAttr\[name="(\w+)"\]\(%self', graph))
            read = {name: getattr(module, name) for name in names}
        except Exception as error:  # noqa: BLE001  torch raises errors of many kinds
            return type(error).__name__
        plain = {name: each for name, each in read.items() if not isinstance(each, nn.Module)}
        return [graph, self._by_name(plain)]

    def _by_name(self, attributes: Mapping[str, Any], *, of_function: bool = False) -> list[Any]:
        return [
            [name, self.value(each, of_function=of_function)]
            for name, each in sorted(attributes.items())
            if not HASH.search(name)
        ]

    def _class(self, kind: type) -> str:
        """Describe a class: its methods and plain attributes, and those of what it is made of."""
        if kind not in self._classes:
            own = [base for base in kind.__mro__ if not is_opaque(base.__module__)]
            self._classes[kind] = _name(kind)  # for whatever of it refers to it
            of_bases = [
                [_name(base), self._by_name(told_of_class(base), of_function=True)] for base in own
            ]
            self._classes[kind] = _hashed([_name(kind), of_bases])
        return self._classes[kind]

    def _of_function(self, function: FunctionType) -> list[Any]:
        """Describe a function by its code, and what that refers to beside its arguments."""
        cells = [_content(each) for each in function.__closure__ or ()]
        inner = functools.partial(self.value, of_function=True)
        return [
            parts_of_code(function.__code__),
            inner(function.__defaults__),
            inner(function.__kwdefaults__),
            [inner(each) for each in cells],
            inner(getattr(function, "__wrapped__", None)),
            [[name, self._global(each)] for name, each in sorted(globals_of(function).items())],
        ]

    def _global(self, value: Any) -> Any:
        """Describe what a function finds by its name in its file; what torch defines is a name."""
        kind = type(value)
        if issubclass(kind, type):
            return self._class(value)
        if issubclass(kind, FunctionType) and is_opaque(value.__module__):
            return [value.__module__, value.__qualname__]
        return self.value(value, of_function=not issubclass(kind, nn.Module))


def _hashed(parts: list[Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def kind_of(tensor: torch.Tensor) -> list[Any]:
    """Describe a tensor but for its values."""
    try:
        sizes, strides = _sizes(tensor)
    except Exception:  # noqa: BLE001  lazy parameters have none, and other classes may refuse
        return [_name(type(tensor)), "can't be read"]
    return [
        sizes,
        strides,
        *(str(each) for each in (tensor.dtype, tensor.device, tensor.layout)),
        tensor.requires_grad,
    ]


def _sizes(tensor: torch.Tensor) -> tuple[list[Any], list[int]]:
    """Return sizes and strides; of a nested tensor the sizes of each that is in it."""
    if tensor.is_nested:
        return [list(each.shape) for each in tensor.unbind()], []
    strides = list(tensor.stride()) if tensor.layout is torch.strided else []
    return list(tensor.shape), strides


def _of_array(array: np.ndarray[Any, Any]) -> list[Any]:
    is_setting = array.dtype.kind in _WHOLE and array.size <= _MOST_ITEMS
    return [list(array.shape), str(array.dtype), array.tolist() if is_setting else None]


def tensors_of(module: nn.Module) -> list[Any]:
    """Describe the parameters and buffers of a module."""
    return [
        [[name, kind_of(each)] for name, each in module.named_parameters()],
        [[name, kind_of(each)] for name, each in module.named_buffers()],
    ]


def sharing_of(module: nn.Module) -> list[Any]:
    """Describe which modules, parameters and buffers of a module are the same one."""
    first: dict[int, int] = {}

    def number(part: object) -> int | None:
        return None if part is None else first.setdefault(id(part), len(first))

    # Of a scripted one its graph says that; it makes its parts anew whenever it is asked.
    return [
        [[name, number(part)] for name, part in vars(each)[kind].items()]
        for each in module.modules()
        if not isinstance(each, torch.jit.ScriptModule)
        for kind in ("_modules", "_parameters", "_buffers")
    ]


def _settings(module: nn.Module) -> str:
    try:
        return ascii(_ADDRESS.sub("", module.extra_repr()))
    except Exception as error:  # noqa: BLE001  a model's own method may do anything
        return type(error).__name__


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _slots(kind: type) -> list[str]:
    """Name the attributes that a class keeps without a dictionary."""
    slots = vars(kind).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if not name.startswith("__")]


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty still
        return None
