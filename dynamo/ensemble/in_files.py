"""What functions and classes refer to in their file, and which of it says what they compute."""

from __future__ import annotations

import functools
import operator
import re
import sys
from collections import deque
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodWrapperType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np
import torch
from torch import nn

PLAIN = (type(None), bool, int, float, complex, str, bytes)
SAID = (torch.dtype, torch.device, torch.layout, torch.memory_format, range, slice, PurePath,
         date, time, timedelta, Decimal, Fraction, np.generic, np.dtype)  # fmt: skip
"""What is all there is to it when it is written."""
CONTAINERS = (dict, list, tuple, set, frozenset, deque)
CACHED = type(functools.cache(abs))
OPAQUE = frozenset({*sys.stdlib_module_names, "torch", "numpy"})
"""Packages whose objects are known by their class alone, but for modules and containers."""
QUALIFIED = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, MethodWrapperType,
              ClassMethodDescriptorType)  # fmt: skip
"""Functions written in C, and those of classes; they are known by their names."""
OPERATORS = (type(torch.ops.aten.relu), type(torch.ops.aten.relu.default))
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
HASH = re.compile(r"(^|_)hash$")
"""Attributes that are numbers of this process, such as those transformers keeps of its objects."""
_METHODS = (FunctionType, staticmethod, classmethod, property, functools.cached_property)
_TOLD = (*PLAIN, *SAID, *CONTAINERS, *QUALIFIED, *OPERATORS, *GETTERS, functools.partial,
         nn.Module, torch.Tensor, np.ndarray, np.ufunc, SimpleNamespace)  # fmt: skip
_ATTRIBUTES = (*PLAIN, *SAID, *CONTAINERS, *QUALIFIED, functools.partial, CACHED)


def is_opaque(module: str | None) -> bool:
    """Return whether objects of a module are known by their class alone, functions by name."""
    # What is defined by a script itself is in `__main__`, which is no package.
    return (module or "").partition(".")[0] in OPAQUE - {"__main__"}


def told_of_class(kind: type) -> dict[str, Any]:
    """Return the methods of a class, its plain attributes, containers and functions of others."""
    return {
        name: each
        for name, each in vars(kind).items()
        if issubclass(type(each), _METHODS)
        or (issubclass(type(each), _ATTRIBUTES) and not name.startswith("__"))
    }


def globals_of(function: FunctionType) -> dict[str, Any]:
    """Return what of its own file a function refers to, and of torch's functions and modules."""
    if is_opaque(function.__module__):
        return {}
    named = {name: function.__globals__.get(name) for name in _names(function.__code__)}
    return {
        name: each
        for name, each in named.items()
        if each is not None and not HASH.search(name) and _is_told(each, function.__module__)
    }


def _is_told(value: Any, module: str) -> bool:
    """Return whether a value in a file is described: not what other files define, nor modules.

    Args:
        value: whose class may not tell what it is.
        module: the file's name.
    """
    kind = type(value)
    if issubclass(kind, type):
        return bool(value.__module__ == module)
    if issubclass(kind, CACHED):
        return bool(getattr(value.__wrapped__, "__module__", None) == module)
    if issubclass(kind, FunctionType):
        return value.__module__ == module or is_opaque(value.__module__)
    return issubclass(kind, _TOLD) or kind.__module__ == module


def _names(code: CodeType) -> set[str]:
    """Return what code calls by name, that of functions within it, too."""
    within = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, within))


def parts_of_code(code: CodeType) -> list[Any]:
    """Return bytecode with the names and constants that it has by number."""
    constants = [_constant(each) for each in code.co_consts]
    counts = [code.co_argcount, code.co_kwonlyargcount, code.co_flags]
    return [code.co_code.hex(), code.co_names, constants, counts]


def _constant(value: object) -> Any:
    """Return a constant of code, the same in every process: sets have an order in each."""
    match value:
        case CodeType():
            return parts_of_code(value)
        case frozenset():
            return sorted(map(repr, value))
        case tuple():
            return [_constant(each) for each in value]
        case int():  # however many digits it has
            return [type(value).__name__, hex(value)]
        case _:
            return repr(value)
