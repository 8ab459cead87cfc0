"""What a backend could do wrong: the ways in which `bench/checker.py` spoils what eager computes.

They were written down before any of them was tried. An arm is eager on its own copy of a model,
spoiled in one way, in some of its calls or in all (`spoiled_arm`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import torch

from dynamometer.results.values.cases import Dtype, Mode

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
    ARGUMENTS = "arguments"
    DRAWS = "random numbers"
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
        """Return whether a call, counted from zero, is one of them."""
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
            case Part.MEMORY | Part.ARGUMENTS | Part.DRAWS:
                return (Mode.INFERENCE, Mode.TRAINING)
            case (
                Part.LOSS
                | Part.GRADIENT
                | Part.UPDATE
                | Part.BUFFER
                | Part.STALE
                | Part.GIVEN
                | Part.SUMS
            ):
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
    Spoiling("gradient: one element zeroed", "a kernel that leaves elements out, at the edge of a "
             "tile", Part.GRADIENT, _zero_one),
    Spoiling("gradient: 1 % zeroed", "a kernel that leaves elements out, in a loop's remainder",
             Part.GRADIENT, _zero(0.01)),
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
    Spoiling("memory: the first call's tensors for ever", "a graph that is replayed without a copy "
             "of what it is given", Part.ARGUMENTS),
    Spoiling("random numbers: the same at every call", "one dropout mask for ever", Part.DRAWS),
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


def changed(spoiling: Spoiling, tensor: torch.Tensor) -> torch.Tensor:
    """Return what a spoiling makes of a tensor, the same every time."""
    return spoiling.change(tensor, torch.Generator().manual_seed(0)).to(tensor.dtype)
