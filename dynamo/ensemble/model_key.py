"""The key of a model as a whole: equal for models that compute the same on inputs of one kind."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import torch

from dynamometer.dynamo.ensemble.described import Describer, kind_of, sharing_of, tensors_of
from dynamometer.dynamo.trees import map_only, tree_leaves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import nn

_VERSION = "model 5"
"""Keys of another version are other keys."""


class Call(Protocol):
    """What a module is called with."""

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional inputs."""
        ...

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """Keyword inputs."""
        ...


def model_key(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    others: Sequence[Call] = (),
) -> str:
    """Return the hexadecimal SHA-256 of what a model is made of, and of the kinds of its inputs.

    Of each module the class with the code of its methods, settings, attributes, hooks, and what
    its functions refer to are in it, as far as that stands in the same file; of inputs also how
    they are nested. Of tensors it is the kind, never values, and which are the same one. It is
    asked for before anything of the model is captured, so that keys of graphs are not in it.

    Args:
        module: in the mode it is run in, not called so far: it may keep what it computes.
        args: example positional inputs.
        kwargs: example keyword inputs.
        others: inputs of further calls, where a step is several: another step is another model.
    """
    described = Describer()
    parts = [
        _VERSION,
        torch.is_grad_enabled(),
        [[name, *described.module(each)] for name, each in module.named_modules()],
        tensors_of(module),
        sharing_of(module),
        *_of_call(described, args, kwargs),
        *(part for each in others for part in _of_call(described, each.args, each.kwargs)),
    ]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _of_call(described: Describer, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    named = dict(sorted(kwargs.items()))
    # Dynamo takes arrays for tensors.
    inputs = map_only(np.ndarray, lambda array: [str(array.dtype), *array.shape], [*args, named])
    return [described.value(inputs), _tensors((args, named))]


def _tensors(inputs: object) -> list[Any]:
    """Return the kinds of tensors among inputs, and which of them are the same one."""
    tensors = [each for each in tree_leaves(inputs) if isinstance(each, torch.Tensor)]
    first: dict[int, int] = {}
    return [[kind_of(each), first.setdefault(id(each), len(first))] for each in tensors]
