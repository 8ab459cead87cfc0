"""What a backend could do wrong: the ways in which `bench/checker.py` spoils what eager computes.

They were written down before any of them was tried. An arm is eager on its own copy of a model,
spoiled in one way, in some of its calls or in all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.common.steps import make_step, own_module
from dynamometer.dynamo.leaves import by_path
from dynamometer.results.cases import Dtype, Mode

if TYPE_CHECKING:
    from dynamometer.common.steps import Step
    from dynamometer.common.suite import LoadedModel

Change = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
"""Gives what stands in a tensor's place; it draws from a generator seeded alike in every call."""


class Part(StrEnum):
    """What of a step is spoiled."""

    OUTPUT = "output"
    LOSS = "loss"
    GRADIENT = "gradient"
    UPDATE = "update"
    BUFFER = "buffer"
    INPUT = "input"
    PARAMETER = "parameter"
    MEMORY = "memory"
    STALE = "stale"
    GIVEN = "gradient that is given"
    SUMS = "gradients that are added to"


class When(StrEnum):
    """Which of an arm's calls are spoiled."""

    ALWAYS = "every call"
    SECOND = "second call only"
    FROM_THIRD = "from the third call on"
    ONE_IN_TEN = "one call in ten"

    def is_now(self, call: int) -> bool:
        """Tell whether a call, counted from zero, is one of them."""
        match self:
            case When.ALWAYS:
                return True
            case When.SECOND:
                return call == 1
            case When.FROM_THIRD:
                return call > 1
            case When.ONE_IN_TEN:
                return call % 10 == 9  # noqa: PLR2004  the tenth of ten


@dataclass(frozen=True)
class Spoiling:
    """One way to be wrong.

    Attributes:
        name: its row of the table.
        why: a user would call it wrong.
        part: what is spoiled.
        change: what stands in the place of a tensor that is spoiled, where one is.
        factor: what an update is multiplied by.
        when: in which calls.
        dtypes: where it is more than rounding.
    """

    name: str
    why: str
    part: Part
    change: Change = lambda tensor, _: tensor
    factor: float = 1.0
    when: When = When.ALWAYS
    dtypes: tuple[Dtype, ...] = (Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.AMP)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """In which there is such a part."""
        match self.part:
            case Part.OUTPUT | Part.INPUT | Part.PARAMETER:
                return (Mode.INFERENCE,)
            case Part.MEMORY:
                return (Mode.INFERENCE, Mode.TRAINING)
            case _:
                return (Mode.TRAINING,)


def _zero(share: float) -> Change:
    """Zero a share of the elements; one at least."""

    def change(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        count = max(1, round(share * tensor.numel()))
        places = torch.randperm(tensor.numel(), generator=generator)[:count]
        flat = tensor.flatten().clone()
        flat[places.to(flat.device)] = 0
        return flat.view(tensor.shape)

    return change


def _zero_one(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Zero one of the elements that aren't zero."""
    flat = tensor.flatten().clone()
    places = flat.nonzero().flatten()
    if len(places):
        flat[places[torch.randint(len(places), (1,), generator=generator)]] = 0
    return flat.view(tensor.shape)


def _nan_in_one(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    flat = tensor.flatten().clone()
    if flat.is_floating_point():
        flat[torch.randint(flat.numel(), (1,), generator=generator)] = torch.nan
    return flat.view(tensor.shape)


def _scale(factor: float) -> Change:
    return lambda tensor, _: tensor * factor if tensor.is_floating_point() else tensor


def _roll(dimension: int) -> Change:
    return lambda tensor, _: tensor.roll(1, dimension) if tensor.dim() else tensor


def _first_row(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    del generator
    changed = tensor.clone()
    if tensor.dim() and len(tensor) > 1:
        changed[0] = tensor[-1]
    return changed


def _permute(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    order = torch.randperm(tensor.numel(), generator=generator)
    return tensor.flatten()[order.to(tensor.device)].view(tensor.shape)


def _half_zeroed(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    del generator
    flat = tensor.flatten().clone()
    flat[flat.numel() // 2 :] = 0
    return flat.view(tensor.shape)


def _disturb(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Scale numbers; let whole numbers change places, so that none leaves its range."""
    del generator
    if tensor.is_floating_point():
        return tensor * 1.1
    return tensor.flatten().roll(1).view(tensor.shape)


_ZEROED = "a kernel that leaves elements out"
_FLAKY = "a race, or a cache that goes stale: what was right once is what nobody looks at again"

_OUTPUTS = (
    Spoiling("output: one element zeroed", f"{_ZEROED}, at the edge of a tile", Part.OUTPUT,
             _zero_one),
    Spoiling("output: 1 % zeroed", f"{_ZEROED}, in a loop's remainder", Part.OUTPUT, _zero(0.01)),
    Spoiling("output: 50 % zeroed", f"{_ZEROED}, in one of two threads", Part.OUTPUT, _zero(0.5)),
    Spoiling("output: another sample's", "an index that is off by one along the batch",
             Part.OUTPUT, _roll(0)),
    Spoiling("output: one sample's row", "a row that is written over by another", Part.OUTPUT,
             _first_row),
    Spoiling("output: scaled by 1.01", "a constant that is slightly wrong, or less precision",
             Part.OUTPUT, _scale(1.01), dtypes=(Dtype.FLOAT32,)),
    Spoiling("output: scaled by 1.1", "a constant that is wrong: a dropout's, a mean's divisor",
             Part.OUTPUT, _scale(1.1)),
    Spoiling("output: shifted by one", "an index that is off by one along the last dimension",
             Part.OUTPUT, _roll(-1)),
    Spoiling("output: permuted", "strides that are taken for others", Part.OUTPUT, _permute),
    Spoiling("output: sign flipped", "a subtraction the wrong way round", Part.OUTPUT,
             _scale(-1.0)),
    Spoiling("output: one NaN", "memory that was never written", Part.OUTPUT, _nan_in_one),
)  # fmt: skip

_GRADIENTS = (
    Spoiling("loss: scaled by 1.01", "what is trained isn't what is reported", Part.LOSS,
             _scale(1.01), dtypes=(Dtype.FLOAT32,)),
    Spoiling("loss: scaled by 1.1", "what is trained isn't what is reported", Part.LOSS,
             _scale(1.1)),
    Spoiling("gradient: dropped", "a parameter that is never trained", Part.GRADIENT,
             lambda tensor, _: torch.zeros_like(tensor)),
    Spoiling("gradient: scaled by 1.1", "a parameter is trained too fast", Part.GRADIENT,
             _scale(1.1)),
    Spoiling("gradient: another's", "two results in the wrong order", Part.GRADIENT),
    Spoiling("gradient: half zeroed", "part of a parameter is never trained", Part.GRADIENT,
             _half_zeroed),
    Spoiling("gradient: sign flipped", "it is trained away from the minimum", Part.GRADIENT,
             _scale(-1.0)),
    Spoiling("gradient: one NaN", "one step later the whole model is NaN", Part.GRADIENT,
             _nan_in_one),
    Spoiling("gradients: of the loss alone", "whoever scales the loss, or adds another to it, "
             "trains something else", Part.GIVEN),
    Spoiling("gradients: overwritten", "of batches whose gradients are to add up the last one "
             "alone counts", Part.SUMS),
)  # fmt: skip

_STATE = (
    Spoiling("step: skipped", "nothing is trained", Part.UPDATE, factor=0.0),
    Spoiling("step: of half the rate", "it trains at another rate than asked for", Part.UPDATE,
             factor=0.5),
    Spoiling("step: of ten times the rate", "it diverges where eager doesn't", Part.UPDATE,
             factor=10.0),
    Spoiling("step: skipped for one parameter", "a parameter that is never trained", Part.UPDATE,
             factor=0.0),
    Spoiling("buffer: not updated", "running statistics stay what they were, and inference with "
             "the trained model is wrong", Part.BUFFER),
    Spoiling("input: changed in place", "the caller's data is not what it was", Part.INPUT,
             _disturb),
    Spoiling("parameter: changed in inference", "the model is another one afterwards",
             Part.PARAMETER, _disturb),
    Spoiling("memory: the first result for ever", "it doesn't compute at all", Part.MEMORY),
    Spoiling("weights: stale", "weights taken for constants in training: it never learns",
             Part.STALE),
)  # fmt: skip

_LATER = tuple(
    Spoiling(f"{name}, {when}", _FLAKY, part, change, when=when)
    for when in (When.SECOND, When.FROM_THIRD, When.ONE_IN_TEN)
    for name, part, change in (
        ("output: 50 % zeroed", Part.OUTPUT, _zero(0.5)),
        ("output: scaled by 1.1", Part.OUTPUT, _scale(1.1)),
        ("gradient: half zeroed", Part.GRADIENT, _half_zeroed),
        ("gradient: scaled by 1.1", Part.GRADIENT, _scale(1.1)),
    )
)

SPOILINGS = (*_OUTPUTS, *_GRADIENTS, *_STATE, *_LATER)
"""All of them, in the order of the table's rows."""

ONE_PARAMETER = "step: skipped for one parameter"
ANOTHERS = "gradient: another's"


@dataclass(frozen=True)
class Target:
    """What of a case a spoiling is done to.

    Attributes:
        path: of a leaf of the output or the inputs, or a parameter's or buffer's name; empty where
            the spoiling is of all.
        other: the parameter whose gradient takes the place of the first one's.
    """

    path: str = ""
    other: str = ""


class SpoiledArm:
    """Eager on its own copy of a model, spoiled in one way."""

    def __init__(self, loaded: LoadedModel, spoiling: Spoiling, target: Target) -> None:
        """Spoil a target of a model, which becomes the arm's own."""
        self._loaded, self._spoiling, self._target = loaded, spoiling, target
        self._module = own_module(loaded.module)
        self._calls = -1
        self._first: object = None
        self._first_gradients: dict[str, torch.Tensor | None] = {}
        self._first_weights = _values(self._module.named_parameters())
        self._weights: dict[str, torch.Tensor] = {}

    def step(self, mode: Mode, seed: int) -> Step:
        """Give the step that is checked."""
        return make_step(self._forward, self._loaded, mode, seed, self._compile_function)

    @property
    def _is_now(self) -> bool:
        return self._spoiling.when.is_now(self._calls // len(self._loaded.calls))

    def _changed(self, tensor: torch.Tensor) -> torch.Tensor:
        return changed(self._spoiling, tensor)

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
        self._calls += 1
        part = self._spoiling.part if self._is_now else Part.GRADIENT
        match part:
            case Part.BUFFER:
                return self._without_update(args, kwargs)
            case Part.MEMORY:
                return self._remembered(args, kwargs)
            case Part.STALE:
                self._weights = _values(self._module.named_parameters())
                self._put(self._first_weights)
            case Part.SUMS:
                for each in self._module.parameters():
                    each.grad = None
            case _:
                pass
        output = self._loaded.module(*args, **kwargs)
        if part is Part.OUTPUT:
            output = copy.deepcopy(output)  # parts of it may be the model's
        self._spoil_around(part, output, args, kwargs)
        return output

    def _spoil_around(
        self, part: Part, output: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Spoil what a call gave, or what it was made with."""
        match part:
            case Part.OUTPUT | Part.LOSS:
                self._spoil(by_path(output, "output")[self._target.path])
            case Part.GIVEN:
                assert isinstance(output, torch.Tensor)
                output.register_hook(torch.ones_like)
            case Part.INPUT:
                self._spoil(inputs_by_path(args, kwargs)[self._target.path])
            case Part.PARAMETER:
                self._spoil(self._module.get_parameter(self._target.path))
            case _:
                pass

    def _spoil(self, leaf: object) -> None:
        assert isinstance(leaf, torch.Tensor)
        leaf.data.copy_(self._changed(leaf.data))  # unseen by autograd

    def _without_update(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        buffer = self._module.get_buffer(self._target.path)
        before = buffer.detach().clone()
        output = self._loaded.module(*args, **kwargs)
        buffer.data.copy_(before)
        return output

    def _remembered(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Give the first result; in training a loss of that value, whose graph is of this call."""
        if torch.is_grad_enabled():
            loss = self._loaded.module(*args, **kwargs)
            if self._first is None:
                self._first = loss.detach().clone()
            loss.data.copy_(self._first)
            return loss
        if self._first is None:
            self._first = self._loaded.module(*args, **kwargs)
        return copy.deepcopy(self._first)

    def _compile_function(self, update: Callable[[], object]) -> Callable[[], object]:
        def spoiled() -> object:
            if not self._is_now:
                return update()
            match self._spoiling.part:
                case Part.GRADIENT:
                    self._spoil_gradient()
                case Part.MEMORY:
                    self._remember_gradients()
                case Part.STALE:
                    self._put(self._weights)
                case Part.UPDATE:
                    return self._update(update)
                case _:
                    pass
            return update()

        return spoiled

    def _spoil_gradient(self) -> None:
        parameter = self._module.get_parameter(self._target.path)
        assert parameter.grad is not None
        if self._target.other:
            other = self._module.get_parameter(self._target.other).grad
            assert other is not None
            parameter.grad = other.detach().clone()
        else:
            parameter.grad = self._changed(parameter.grad)

    def _remember_gradients(self) -> None:
        parameters = dict(self._module.named_parameters())
        if not self._first_gradients:
            self._first_gradients = {
                name: None if each.grad is None else each.grad.detach().clone()
                for name, each in parameters.items()
            }
        for name, each in parameters.items():
            gradient = self._first_gradients[name]
            each.grad = None if gradient is None else gradient.clone()

    def _update(self, update: Callable[[], object]) -> object:
        before = _values(self._module.named_parameters())
        done = update()
        for name, parameter in self._module.named_parameters():
            if self._target.path in {"", name}:
                change = parameter.data - before[name]
                parameter.data.copy_(before[name] + self._spoiling.factor * change)
        return done

    def _put(self, weights: Mapping[str, torch.Tensor]) -> None:
        for name, parameter in self._module.named_parameters():
            parameter.data.copy_(weights[name])


def changed(spoiling: Spoiling, tensor: torch.Tensor) -> torch.Tensor:
    """Give what a spoiling makes of a tensor, the same every time."""
    return spoiling.change(tensor, torch.Generator().manual_seed(0)).to(tensor.dtype)


def inputs_by_path(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, object]:
    """Give the leaves of what a module is called with."""
    return by_path({"args": args, "kwargs": dict(kwargs)}, "inputs")


def _values(named: Any) -> dict[str, torch.Tensor]:
    return {name: each.detach().clone() for name, each in named}
