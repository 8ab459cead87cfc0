"""Functions of a graph by their names, and which of them a file may name.

A name in a file must lead to nothing but computation: never to what reads or writes files, imports,
or reaches Python's own objects. So what may be named is listed, and whatever else is refused, when
a graph is saved as when it is loaded.
"""

from __future__ import annotations

import builtins
import math
import operator
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.dynamo.private import GoneError, private

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping


class UnsaveableError(Exception):
    """A graph, or an input of one, that no file can hold; says why."""


_OPERATORS = frozenset({
    "abs", "add", "and_", "concat", "contains", "eq", "floordiv", "ge", "getitem", "gt", "iadd",
    "iand", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "index", "inv", "invert", "ior",
    "ipow", "irshift", "is_", "is_not", "isub", "itruediv", "ixor", "le", "lshift", "lt",
    "matmul", "mod", "mul", "ne", "neg", "not_", "or_", "pos", "pow", "rshift", "setitem", "sub",
    "truediv", "truth", "xor",
})  # fmt: skip
_BUILTINS = frozenset(
    {"abs", "bool", "divmod", "float", "int", "len", "max", "min", "pow", "round"}
)
_OPERATIONS = "torch.ops."
_NAMESPACES = frozenset({"aten", "prims", "quantized", "torchvision"})
"""Of registered operations."""

_HIGHER_ORDER = frozenset({
    "associative_scan", "auto_functionalized", "auto_functionalized_v2",
    "autograd_function_apply", "cond", "flex_attention", "flex_attention_backward",
    "invoke_subgraph", "map", "map_impl", "out_dtype", "run_and_save_rng_state",
    "run_with_rng_state", "scan", "tag_activation_checkpoint", "while_loop", "wrap",
    "wrap_activation_checkpoint", "wrap_with_autocast", "wrap_with_set_grad_enabled",
})  # fmt: skip
_FOLDERS = frozenset({
    "torch.functional", "torch.nn.functional", "torch._C._fft", "torch._C._linalg",
    "torch._C._nn", "torch._C._special", "torch.fft", "torch.linalg", "torch.special",
})  # fmt: skip
"""Modules whose public functions only compute."""

_SINGLE = frozenset({
    "torch._C._log_api_usage_once", "torch._C._set_grad_enabled", "torch._check", "torch._sym_sqrt",
    "torch.amp.autocast_mode._enter_autocast", "torch.amp.autocast_mode._exit_autocast",
    "torch.cond", "torch.sym_float", "torch.sym_int", "torch.sym_ite", "torch.sym_max",
    "torch.sym_min", "torch.sym_not", "torch.sym_sum", "torch._weight_norm",
})  # fmt: skip
_NO_COMPUTATION = frozenset({
    "boolean_dispatch", "from_file", "handle_torch_function", "load", "overload", "save",
})  # fmt: skip
"""Of these modules and namespaces; the rest of them reads or writes files, or takes functions."""

ATTRIBUTES = frozenset({
    "H", "T", "data", "device", "dtype", "grad", "imag", "is_cpu", "is_cuda", "is_sparse",
    "itemsize", "layout", "mH", "mT", "nbytes", "ndim", "real", "requires_grad", "shape",
})  # fmt: skip
"""What `getattr` may take of a tensor."""

_REFUSED_METHODS = frozenset({
    "apply_", "backward", "const_data_ptr", "data_ptr", "map2_", "map_", "module_load", "numpy",
    "register_hook", "register_post_accumulate_grad_hook", "share_memory_", "storage",
    "untyped_storage",
})  # fmt: skip
_PYTHONS: Mapping[str, tuple[Any, Container[str]]] = {
    "": (builtins, {*_BUILTINS, "getattr"}),  # of which the attribute is looked at, too
    "_operator": (operator, _OPERATORS),
    "math": (math, {each for each in dir(math) if not each.startswith("_")}),
}
_FUNCTIONS = (BuiltinFunctionType, BuiltinMethodType, FunctionType)


def name_of(target: Callable[..., Any]) -> str:
    """Return the name of a function in full; of what has none, that of its type."""
    try:
        name: str = private("torch.fx.node._get_qualified_name")(target)
    except (GoneError, AttributeError, RuntimeError):
        name = getattr(target, "__qualname__", None) or type(target).__qualname__
        module = getattr(target, "__module__", None) or type(target).__module__
        return f"{module}.{name}"
    return name


def saveable_name(target: Callable[..., Any]) -> str:
    """Return the name of a function that a file may name.

    Raises:
        UnsaveableError: it may not, or the name is that of something else.
    """
    name = name_of(target)
    if function_of(name) is not target and function_of(name) != target:
        msg = f"it calls {name}, which is not what that name stands for"
        raise UnsaveableError(msg)
    return name


def function_of(name: str) -> Callable[..., Any]:
    """Return the function of a name.

    Raises:
        UnsaveableError: a file may not name it, or this torch has none such.
    """
    module, _, last = name.rpartition(".")
    try:
        found = _found(module, last, name)
    except (AttributeError, RuntimeError) as error:
        msg = f"it calls {name}, which torch {torch.__version__} doesn't have here"
        raise UnsaveableError(msg) from error
    if found is None:
        msg = f"it calls {name}, which is none of the functions that a file may name"
        raise UnsaveableError(msg)
    return found


def operation_of(name: str) -> Callable[..., Any]:
    """Return the operation of a name: of functions, only these are arguments of others.

    Raises:
        UnsaveableError: there is none, or a file may not name it.
    """
    if not name.startswith(_OPERATIONS):
        msg = f"it hands on the function {name}, which is no operation of torch"
        raise UnsaveableError(msg)
    return function_of(name)


def _found(module: str, last: str, name: str) -> Callable[..., Any] | None:
    if name.startswith(_OPERATIONS):
        return _operation(name)
    if name in _SINGLE:
        return _function(private(name))
    if module in _PYTHONS:
        holder, names = _PYTHONS[module]
        return getattr(holder, last) if last in names else None
    if last.startswith("_") or last in _NO_COMPUTATION:
        return None
    if module == "torch":  # where libraries put functions of their own in place of torch's
        return _function(
            getattr(private("torch._C._VariableFunctions"), last)
        )  # what only computes is generated into it
    return _function(getattr(private(module), last)) if module in _FOLDERS else None


def _operation(name: str) -> Callable[..., Any] | None:
    _, _, namespace, *rest = name.split(".")
    if namespace == "higher_order":
        (last,) = rest
        return getattr(torch.ops.higher_order, last) if last in _HIGHER_ORDER else None
    if namespace not in _NAMESPACES or not rest or rest[0] in _NO_COMPUTATION:
        return None
    found: Any = getattr(torch.ops, namespace)
    for each in rest:
        if each.startswith("__") and not hasattr(found, each):
            return None
        found = getattr(found, each)
    kinds = (private("torch._ops.OpOverload"), private("torch._ops.OpOverloadPacket"))
    return found if isinstance(found, kinds) else None


def _function(found: object) -> Callable[..., Any] | None:
    module = getattr(found, "__module__", None) or "torch"
    ours = isinstance(found, _FUNCTIONS) and module.partition(".")[0] == "torch"
    return found if ours and callable(found) else None


def is_method(name: str) -> bool:
    """Return whether a file may name a method of tensors."""
    is_plain = not name.startswith("_") or (name.startswith("__") and name.strip("_") in _DUNDERS)
    found = getattr(torch.Tensor, name, None)
    return is_plain and name not in _REFUSED_METHODS and callable(found)


_DUNDERS = {each.strip("_") for each in _OPERATORS} | {
    *("bool", "float", "int", "len", "radd", "rdiv", "rfloordiv", "rmatmul", "rmod", "rmul"),
    *("rpow", "rsub", "rtruediv"),
}
