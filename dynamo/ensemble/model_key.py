"""The key of a model as a whole: equal for models that compute the same on inputs of one kind."""

from __future__ import annotations

import hashlib
import inspect
import re
from types import CodeType
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from dynamometer.dynamo.trees import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

_VERSION = "model 1"
"""Keys of another version are other keys."""

_ADDRESS = re.compile(r"0x[0-9a-f]+")


def model_key(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return the hexadecimal SHA-256 of what a model is made of, and of the kinds of its inputs.

    Of each module type, settings and the code of its `forward` are in it, but not of what that
    calls; of parameters, buffers and inputs the kind, never values.

    Args:
        module: in the mode it is run in.
        args: example positional inputs.
        kwargs: example keyword inputs.
    """
    parts = [
        _VERSION,
        torch.is_grad_enabled(),
        [[name, *_module(each)] for name, each in module.named_modules()],
        [[name, _kind(each)] for name, each in module.named_parameters()],
        [[name, _kind(each)] for name, each in module.named_buffers()],
        [_kind(each) for each in tree_leaves((args, dict(sorted(kwargs.items()))))],
        sorted(kwargs),
    ]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _module(module: nn.Module) -> list[Any]:
    kind = type(module)
    code = getattr(inspect.unwrap(kind.forward), "__code__", None)
    try:
        said = _ADDRESS.sub("", module.extra_repr())
    except Exception as error:  # noqa: BLE001  a model's own method may do anything
        said = type(error).__name__
    return [f"{kind.__module__}.{kind.__qualname__}", module.training, said, _code(code)]


def _code(code: CodeType | None) -> list[Any]:
    """Return bytecode with the names and constants that it has by number."""
    if code is None:
        return []
    constants = [_constant(each) for each in code.co_consts]
    return [code.co_code.hex(), code.co_names, constants]


def _constant(value: object) -> Any:
    """Return a constant of code, the same in every process: sets have an order in each."""
    match value:
        case CodeType():
            return _code(value)
        case frozenset():
            return sorted(map(repr, value))
        case tuple():
            return [_constant(each) for each in value]
        case _:
            return repr(value)


def _kind(value: object) -> list[Any]:
    if not isinstance(value, torch.Tensor):
        plain = value is None or isinstance(value, bool | int | float | str)
        return [type(value).__name__, repr(value) if plain else ""]
    strides = list(value.stride()) if value.layout is torch.strided else []
    return [
        list(value.shape),
        strides,
        *(str(each) for each in (value.dtype, value.device, value.layout)),
        value.requires_grad,
    ]
