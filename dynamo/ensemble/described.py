"""What Python objects are made of, said so that it is the same in every process.

There are no addresses, no order of sets and no values of tensors in it. A copy of an object is
said to be what the object is.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import re
import sys
from collections import ChainMap, UserDict, UserList, UserString, deque
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch
from torch import fx, nn

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_SAID = (torch.dtype, torch.device, torch.layout, torch.memory_format, range, slice, PurePath,
         date, time, timedelta, Decimal, Fraction, np.generic, np.dtype)  # fmt: skip
"""What is all there is to it when it is written."""
_OPAQUE = frozenset({*sys.stdlib_module_names, "torch", "numpy"})
"""Packages whose objects are known by their class alone, but for modules and containers."""
_QUALIFIED = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, MethodWrapperType,
              ClassMethodDescriptorType)  # fmt: skip
"""Functions written in C, and those of classes; they are known by their names."""
_OPERATORS = (type(torch.ops.aten.relu), type(torch.ops.aten.relu.default))
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
_MANGLED = re.compile(r"___torch_mangle_\d+\.")
"""Of the name of a scripted class; the number goes up through a whole process."""
_SOURCES = re.compile(r" # .*$", re.MULTILINE)
_MOST_DEEP = 40
_HOOKS = re.compile(r"_hooks(_\w+)?$")
"""Attributes of modules that are dictionaries by numbers which go up through a whole process."""
_HASH = re.compile(r"(^|_)hash$")
"""Attributes that are numbers of this process, such as those transformers keeps of its objects."""
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
        if isinstance(value, _PLAIN):
            return [type(value).__name__, repr(value)]
        if isinstance(value, torch.Tensor):
            return kind_of(value)
        if isinstance(value, _SAID):
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
            return [_settings(value), tensors_of(value)] if of_function else [
                [[name, self.module(each)] for name, each in value.named_modules()],
                tensors_of(value),
            ]  # fmt: skip
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
                return [[[inner(key), inner(each)] for key, each in value.items()]]
            case list() | tuple() | deque():
                return [[inner(each) for each in value]]
            case set() | frozenset():
                return [sorted(msgspec.json.encode(inner(each)).decode() for each in value)]
            case np.ndarray():
                return [list(value.shape), str(value.dtype)]
        return []

    def _of_callable(self, value: Any, *, of_function: bool) -> list[Any]:
        inner = functools.partial(self.value, of_function=of_function)
        match value:
            case FunctionType():
                return self._of_function(value)
            case _ if isinstance(value, _QUALIFIED):
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
        if _is_opaque(kind.__module__) and kind is not SimpleNamespace:
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
        if isinstance(value, _OPERATORS):
            return [str(value)]
        if isinstance(value, _GETTERS):
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
            if not _HASH.search(name)
        ]

    def _class(self, kind: type) -> str:
        """Describe a class: its methods and plain attributes, and those of what it is made of."""
        if kind not in self._classes:
            own = [base for base in kind.__mro__ if not _is_opaque(base.__module__)]
            self._classes[kind] = _name(kind)  # for whatever of it refers to it
            parts = [_name(kind), [[_name(base), self._of_class(base)] for base in own]]
            self._classes[kind] = _hashed(parts)
        return self._classes[kind]

    def _of_class(self, kind: type) -> list[Any]:
        functions = (FunctionType, staticmethod, classmethod, property, functools.cached_property)
        found = {
            name: each
            for name, each in vars(kind).items()
            if isinstance(each, functions)
            or (isinstance(each, (*_PLAIN, *_SAID, tuple)) and not name.startswith("__"))
        }
        return self._by_name(found, of_function=True)

    def _of_function(self, function: FunctionType) -> list[Any]:
        """Describe a function by its code, and what that refers to beside its arguments."""
        cells = [_content(each) for each in function.__closure__ or ()]
        inner = functools.partial(self.value, of_function=True)
        return [
            _code(function.__code__),
            inner(function.__defaults__),
            inner(function.__kwdefaults__),
            [inner(each) for each in cells],
            inner(getattr(function, "__wrapped__", None)),
            self._by_name(_globals(function), of_function=True),
        ]


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


def tensors_of(module: nn.Module) -> list[Any]:
    """Describe the parameters and buffers of a module."""
    return [
        [[name, kind_of(each)] for name, each in module.named_parameters()],
        [[name, kind_of(each)] for name, each in module.named_buffers()],
    ]


def _settings(module: nn.Module) -> str:
    try:
        return ascii(_ADDRESS.sub("", module.extra_repr()))
    except Exception as error:  # noqa: BLE001  a model's own method may do anything
        return type(error).__name__


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_opaque(module: str | None) -> bool:
    # What is defined by a script itself is in `__main__`, which is no package.
    return (module or "").partition(".")[0] in _OPAQUE - {"__main__"}


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


def _globals(function: FunctionType) -> dict[str, Any]:
    """Return the plain values and the functions of its own file that a function refers to."""
    if _is_opaque(function.__module__):
        return {}
    named = {name: function.__globals__.get(name) for name in _names(function.__code__)}
    return {
        name: each
        for name, each in named.items()
        if (isinstance(each, _PLAIN) and each is not None)
        or (isinstance(each, FunctionType) and each.__module__ == function.__module__)
    }


def _names(code: CodeType) -> set[str]:
    """Return what code calls by name, that of functions within it, too."""
    within = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, within))


def _code(code: CodeType) -> list[Any]:
    """Return bytecode with the names and constants that it has by number."""
    constants = [_constant(each) for each in code.co_consts]
    counts = [code.co_argcount, code.co_kwonlyargcount, code.co_flags]
    return [code.co_code.hex(), code.co_names, constants, counts]


def _constant(value: object) -> Any:
    """Return a constant of code, the same in every process: sets have an order in each."""
    match value:
        case CodeType():
            return _code(value)
        case frozenset():
            return sorted(map(repr, value))
        case tuple():
            return [_constant(each) for each in value]
        case int():  # however many digits it has
            return [type(value).__name__, hex(value)]
        case _:
            return repr(value)
