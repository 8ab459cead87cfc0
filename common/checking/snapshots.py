"""A model's state at one moment: parameters, buffers and inputs, to be looked at and put back."""

from __future__ import annotations

import copy
from collections import deque
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import torch
from torch import nn

from dynamometer.common.checking.steps import own_module
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy import leaves
from dynamometer.dynamo.accuracy.changes import (
    change_of,
    form_of,
    has_arithmetic,
    is_like,
    is_rounding,
    overwritten,
)
from dynamometer.dynamo.accuracy.expected import CHANGE
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.dynamo.accuracy.leaves import Leaf

OVERWRITTEN = ", overwritten"
"""How the paths of what was overwritten end."""


@dataclass(frozen=True)
class Snapshot:
    """The state of a model, kept.

    Attributes:
        loaded: the model it is of.
        kept: copies of its tensors, on their device, and other leaves of its inputs, by path.
            Nobody writes to them: what is the same in other snapshots may be shared with these.
    """

    loaded: LoadedModel
    kept: Mapping[str, object]

    @classmethod
    def of(cls, loaded: LoadedModel, beside: Mapping[str, object] | None = None) -> Snapshot:
        """Keep the state as it is now.

        Args:
            loaded: the model.
            beside: what other snapshots keep, by path; it does for both where it is the same.
        """
        known, now = beside or {}, state_of(loaded)
        return cls(loaded, {path: _kept(each, known.get(path)) for path, each in now.items()})

    def changes(self, but: Collection[str] = ()) -> dict[str, Leaf]:
        """Return what has changed since, by path: the difference, or what is there now.

        Args:
            but: paths that are left out.
        """
        now = {path: each for path, each in state_of(self.loaded).items() if path not in but}
        found = {
            CHANGE + path: leaf
            for path, value in now.items()
            if (leaf := change_of(self.kept.get(path), value)) is not None
        }
        found |= {
            f"{CHANGE}{path}{OVERWRITTEN}": leaf
            for path, value in now.items()
            if CHANGE + path in found
            if (leaf := overwritten(self.kept.get(path), value, whole=_is_set(path))) is not None
        }
        gone = self.kept.keys() - now.keys() - set(but)
        return {**found, **{CHANGE + path: leaves.keep("removed") for path in gone}}

    def rewritten(self, changes: Mapping[str, Leaf]) -> frozenset[str]:
        """Name the changes that are more than a few roundings of what was there.

        Whoever leaves them alone leaves every bit alone, however small they are.

        Args:
            changes: of this state.
        """
        return frozenset(
            path
            for path, leaf in changes.items()
            if not path.endswith(OVERWRITTEN)
            if not is_rounding(self.kept.get(path.removeprefix(CHANGE)), leaf.value)
            and not self._was_zero_buffer(path.removeprefix(CHANGE))
        )

    def _was_zero_buffer(self, path: str) -> bool:
        """Return of a buffer whether eager may have written to it what was there: sums of zero."""
        before = self.kept.get(path)
        if not path.startswith("buffers") or not isinstance(before, torch.Tensor):
            return False
        return has_arithmetic(before) and not bool(before.any())

    def beside_parameters(self) -> Snapshot:
        """Return it with the names of parameters alone, whose values take most of the memory."""
        kept = {
            path: None if path.startswith("parameters") else each
            for path, each in self.kept.items()
        }
        return Snapshot(self.loaded, kept)

    def of_what_is_new(self) -> Snapshot:
        """Keep what is there now and can't be put back, as a call has registered or replaced it."""
        new = {
            path: _copy(each)
            for path, each in state_of(self.loaded).items()
            if path not in self.kept or _is_of_other_kind(each, self.kept[path])
        }
        return Snapshot(self.loaded, new)

    def taken_again(self) -> Snapshot:
        """Keep the state as it is now, of what there was before and was not replaced."""
        now = state_of(self.loaded)
        return Snapshot(
            self.loaded,
            {
                path: each if _is_of_other_kind(now.get(path), each) else _copy(now.get(path))
                for path, each in self.kept.items()
            },
        )

    def restore(self, but: Collection[str] = ()) -> None:
        """Put back in place whatever still has the form it had.

        Args:
            but: paths that are left out.
        """
        for path, value in state_of(self.loaded).items():
            if path not in but:
                _put_back(value, self.kept.get(path))

    def compiled(
        self, before: Mapping[str, object], mode: Mode, replaced: Callable[[], Collection[str]]
    ) -> Snapshot:
        """Put back what compiling has changed, as tracing does; return what calls begin with.

        In inference a backend may put other weights into its copy, as what folds a normalisation
        does. Where it did, parameters stay as they are by then, and are what calls begin with.
        Buffers are no sign of that if the model replaces them by itself.

        Args:
            before: the tensors themselves, by path, as `state_of` gave them before compiling.
            mode: inference or training.
            replaced: names paths that calls put other tensors into.
        """
        now = state_of(self.loaded)
        own = {path for path in before.keys() | now.keys() if not path.startswith("inputs")}
        others = {path for path in own if before.get(path) is not now.get(path)}
        if mode is Mode.TRAINING or not others or others <= set(replaced()):
            self.restore()
            return self
        self.restore(but=others | {path for path in own if path.startswith("parameters")})
        return Snapshot.of(self.loaded)


def state_of(loaded: LoadedModel) -> dict[str, object]:
    """Return parameters, buffers and the leaves of inputs themselves, by path."""
    module = own_module(loaded.module)
    return {
        **{f"parameters.{name}": each for name, each in module.named_parameters()},
        **_buffers_of(module),
        **inputs_of(loaded),
    }


def _buffers_of(module: nn.Module) -> dict[str, object]:
    """Return buffers by path; of a nested one its rows, which can be compared and written to."""
    found: dict[str, object] = {}
    for name, each in module.named_buffers():
        path = f"buffers.{name}"
        found |= leaves.by_path(each, path) if each.is_nested else {path: each}
    return found


Attributes = dict[str, list[tuple[torch.Tensor, int]]]
"""Tensors that modules keep as plain attributes, by path, each with how often it was written to."""


def attributes_of(loaded: LoadedModel) -> Attributes:
    """Return what a model keeps beside its parameters and buffers, be it in a list or by name."""
    return {
        path: tensors
        for path, value in _plain_attributes(loaded)
        if (tensors := [(each, _version(each)) for each in _tensors_in(value)])
    }


def numbers_of(loaded: LoadedModel) -> dict[str, object]:
    """Return the numbers and texts a model keeps as plain attributes, such as a count of calls."""
    return {path: _numbers_in(value, _DEPTH) for path, value in _plain_attributes(loaded)}


def _plain_attributes(loaded: LoadedModel) -> Iterator[tuple[str, object]]:
    """Yield what modules have beside what every module has, by path."""
    own = vars(nn.Module())
    for prefix, module in own_module(loaded.module).named_modules():
        for name, value in vars(module).items():
            if name not in own:
                yield f"attributes.{prefix}.{name}".replace("..", "."), value


_DEPTH = 3
"""Of containers in others that are looked into: one may hold itself."""


def _numbers_in(value: object, depth: int) -> object:
    if type(value) in {bool, int, float, str}:
        return value
    if not depth or isinstance(value, type | ModuleType | nn.Module | torch.Tensor):
        return None
    if isinstance(value, dict | list | tuple | deque):
        values = list(value.values()) if isinstance(value, dict) else list(value)
    else:  # an object that counts, say
        values = list(getattr(value, "__dict__", {}).values())
    return [_numbers_in(each, depth - 1) for each in values]


def written(before: Attributes, now: Attributes) -> list[str]:
    """Name attributes that hold other tensors than before, or some that were written to."""
    known, found = (
        {path: [(id(each), version) for each, version in tensors] for path, tensors in all_.items()}
        for all_ in (before, now)
    )
    return [path for path in known | found if known.get(path) != found.get(path)]


def _tensors_in(value: object) -> list[torch.Tensor]:
    if isinstance(value, dict):
        value = list(value.values())
    values = value if isinstance(value, list | tuple) else [value]
    return [
        each
        for each in values
        if isinstance(each, torch.Tensor) and not isinstance(each, nn.Parameter)
    ]


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version  # noqa: SLF001  no other way to ask


def inputs_of(loaded: LoadedModel) -> dict[str, object]:
    """Return the leaves of a model's inputs themselves, by path; of several sizes with an index.

    Of an array of numbers that is the tensor that shares its memory.
    """
    calls = [{"args": each.args, "kwargs": dict(each.kwargs)} for each in loaded.calls]
    found = leaves.by_path(calls if len(calls) > 1 else calls[0], "inputs", is_result=False)
    shared: dict[int, torch.Tensor] = {}
    for path, each in found.items():
        if isinstance(each, np.ndarray) and each.flags.writeable:
            with suppress(TypeError, ValueError):  # of text, or in an order that torch can't read
                found[path] = shared.setdefault(id(each), torch.from_numpy(each))
    return found


def _is_set(path: str) -> bool:
    """Return of what is not a parameter, to which an optimizer adds, that a model may set it."""
    return not path.startswith("parameters")


def _kept(value: object, known: object) -> object:
    """Return a copy of a value, or the one that is known where it is the same."""
    is_same = _is_plain(value) and _is_plain(known) and is_like(known, value)
    return known if is_same else _copy(value)


def _is_plain(value: object) -> TypeGuard[torch.Tensor]:
    if type(value) not in {torch.Tensor, nn.Parameter} or not isinstance(value, torch.Tensor):
        return False
    return not value.is_nested and has_arithmetic(value)


def _copy(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return copy.copy(value) if isinstance(value, set) else value


def distinct(tensor: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
    """Return a view without elements that share memory with others of a tensor of the same shape.

    Some models expand a weight; each of its elements can be written only once.
    """
    if of.layout is not torch.strided:
        return tensor
    for dimension, (size, stride) in enumerate(zip(of.shape, of.stride(), strict=True)):
        if size > 1 and not stride:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def _is_of_other_kind(now: object, kept: object) -> bool:
    if not isinstance(now, torch.Tensor) or not isinstance(kept, torch.Tensor):
        return False
    return form_of(now) != form_of(kept)


@state.without_gradients()
def _put_back(now: object, kept: object) -> None:
    if not isinstance(now, torch.Tensor) or not isinstance(kept, torch.Tensor):
        return
    if form_of(now) == form_of(kept) and not is_like(kept, now):
        # What was made in that mode may be written to in it alone.
        with torch.inference_mode() if now.is_inference() else nullcontext():
            distinct(now, of=now).copy_(distinct(kept, of=now))
