"""Copies of a configured model that compute the same, rounded otherwise."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from dynamometer.common.checking.snapshots import attributes_of
from dynamometer.common.checking.steps import Autocast
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy.leaves import map_tensors, tensors_in
from dynamometer.dynamo.accuracy.numbers import as_real
from dynamometer.dynamo.accuracy.rounding import nudge
from dynamometer.dynamo.trees import once

if TYPE_CHECKING:
    from dynamometer.common.interfaces.suite import LoadedModel


def nudged(loaded: LoadedModel, share: float, seed: int) -> LoadedModel:
    """Return a copy of a configured model whose weights and inputs are off by a share at most.

    Whole numbers are left, unless they are all there is.
    """
    generator = torch.Generator().manual_seed(seed)
    numbers = [*loaded.module.parameters(), *_float_inputs(loaded)]
    real = [
        each for each in map(as_real, numbers) if each.is_floating_point() and each.itemsize > 1
    ]
    only_whole = all(bool((each == each.round()).all()) for each in real)
    change = partial(nudge, share=share, generator=generator, whole=only_whole)
    own = loaded.copy().with_inputs(partial(map_tensors, once(change)))
    with state.without_gradients():
        for each in own.module.parameters():
            each.copy_(change(each))
    return replace(own, nudged_from=loaded)


def _float_inputs(loaded: LoadedModel) -> list[torch.Tensor]:
    tensors = tensors_in([(each.args, dict(each.kwargs)) for each in loaded.calls])
    return [each for each in tensors if each.is_floating_point() or each.is_complex()]


def in_float64(loaded: LoadedModel) -> LoadedModel:
    """Return a copy of a configured model that computes in float64, without autocast."""

    def widen(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point() and not tensor.is_complex():
            return tensor
        wide = torch.complex128 if tensor.is_complex() else torch.float64
        return tensor.detach().to(wide).requires_grad_(tensor.requires_grad)

    own = loaded.copy().with_inputs(partial(map_tensors, once(widen)))
    module = own.module.module if isinstance(own.module, Autocast) else own.module
    for each in (*module.parameters(), *module.buffers()):
        if each.is_complex():  # which `Module.double` leaves as they are
            each.data = each.data.to(torch.complex128)
    for each in _tables(own):
        each.data = widen(each).data
    return replace(own, module=module.double())


def drawn_in(loaded: LoadedModel, dtype: torch.dtype) -> torch.dtype:
    """Return what a configured model draws random numbers in: the dtype of its weights.

    Args:
        loaded: the model.
        dtype: what was asked for; it holds where weights are of several.
    """
    own = {each.dtype for each in loaded.module.parameters() if each.is_floating_point()}
    return own.pop() if len(own) == 1 else dtype


def _tables(loaded: LoadedModel) -> list[torch.Tensor]:
    """Return plain attributes that are tensors of their own memory, which nobody registered.

    What others have a view of stays as it is: they would read what was there.
    """
    every = {id(each): each for held in attributes_of(loaded).values() for each, _ in held}
    plain = [
        each
        for each in every.values()
        if type(each) is torch.Tensor and each.layout is torch.strided and not each.is_inference()
    ]
    registered = (*loaded.module.parameters(), *loaded.module.buffers())
    places = Counter(
        each.untyped_storage().data_ptr()
        for each in (*plain, *registered)
        if each.layout is torch.strided
    )
    return [each for each in plain if places[each.untyped_storage().data_ptr()] == 1]
