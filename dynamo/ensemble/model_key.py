"""The key of a model as a whole: equal for models that compute the same on inputs of one kind."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from dynamometer.dynamo.trees import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

    from torch import nn

_VERSION = "model 1"
"""Keys of another version are other keys."""

_ADDRESS = re.compile(r"0x[0-9a-f]+")


def model_key(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return the hexadecimal SHA-256 of what a model is made of, and of the kinds of its inputs.

    Of each module type, settings and the bytecode of its `forward` are in it, of parameters,
    buffers and inputs the kind, never values.

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
    code = getattr(kind.forward, "__code__", None)
    try:
        said = _ADDRESS.sub("", module.extra_repr())
    except Exception as error:  # noqa: BLE001  a model's own method may do anything
        said = type(error).__name__
    return [f"{kind.__module__}.{kind.__qualname__}", module.training, said, _code(code)]


def _code(code: CodeType | None) -> str:
    return "" if code is None else hashlib.sha256(code.co_code).hexdigest()[:16]


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
