"""Making a call that is compared, and keeping what it came to.

Arms and eager make the same calls: the first, a second, and one on other inputs. In training each
begins with the weights the first began with: one step of the optimizer makes many a network
chaotic, and nothing could be said of the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import torch

from dynamometer.common.snapshots import Alteration, Snapshot, alter, inputs_of
from dynamometer.common.steps import LEARNING_RATE, make_optimizer, own_module
from dynamometer.dynamo import leaves, state
from dynamometer.dynamo.deviation import IN_FLOAT32, Multiples
from dynamometer.results.cases import Mode

if TYPE_CHECKING:
    from torch import nn

    from dynamometer.common.steps import Step
    from dynamometer.dynamo.leaves import Leaf, Leaves

Taker = Callable[[Callable[[], object]], object]
"""Makes a call and gives its result."""

_MOST_ELEMENTS = 65_536
"""Of each gradient that are kept of a call on other inputs: the first call is compared whole."""

_MOST_BETWEEN = 4_096
"""Of each gradient that are kept of a size between the first and the last."""


class Call(StrEnum):
    """Which of the calls that are compared."""

    FIRST = "first call"
    SECOND = "second call"
    LATER = "later call"
    """Compared with eager's first."""
    ALTERED = "call on other inputs"


@dataclass(frozen=True)
class Settings:
    """What is the same for eager and all arms.

    Attributes:
        seed: every generator is seeded with it before every call.
        tolerance: what share of itself an element may be off by.
        multiples: of what rounding does, which it may be off by as well.
        alteration: what differs in the call on other inputs; `None` where there is no such call.
    """

    seed: int
    tolerance: float
    multiples: Multiples = IN_FLOAT32
    alteration: Alteration | None = None


@dataclass(frozen=True)
class Look:
    """What one call came to.

    Attributes:
        found: output, or in training loss and gradients, and what of the state has changed.
        updates: by parameter, what is wrong with what the optimizer's step made of its gradient.
        draws: whether torch's generator on the CPU is another one afterwards.
        rewritten: paths of changes of parameters and inputs that are more than rounding of these.
    """

    found: Leaves
    updates: Mapping[str, str]
    draws: bool = False
    rewritten: frozenset[str] = frozenset()


def look(
    step: Step,
    before: Snapshot,
    seed: int,
    take: Taker = lambda call: call(),
    most_elements: int | None = None,
) -> Look:
    """Take a step and keep what it came to.

    Where there are several sizes, gradients are kept whole of the first and the last only, as all
    take much memory.

    Args:
        step: to be taken.
        before: the model's state as it is now.
        seed: every generator is seeded with it, so that every step draws the same random numbers.
        take: makes one call; for whoever wants to time it.
        most_elements: of each gradient that are kept, drawn at random; `None` for all.
    """
    state.seed_everything(seed)
    generator = torch.get_rng_state()
    found: dict[str, Leaf] = {}
    updates: dict[str, str] = {}
    ends = {0, len(step.calls) - 1}
    for index, call in enumerate(step.calls):
        size = f"[{index}]" if len(step.calls) > 1 else ""
        if step.mode is Mode.INFERENCE:
            # Kept from the calls after it, which may use its memory, as CUDA graphs do.
            found |= leaves.collect(take(call), f"output{size}")
            continue
        weights = _weights(step)
        inputs = _inputs_with_gradients(step)
        for each in inputs.values():
            each.grad = None
        kept = before if index == 0 else Snapshot.of(step.loaded)
        found |= leaves.collect(take(call), f"loss{size}")
        updates |= _wrong_updates(kept, weights)
        most = most_elements if index in ends else _MOST_BETWEEN
        found |= _gradients({**weights, **inputs}, size, most)
    trained = _weights(step) if step.mode is Mode.TRAINING else ()
    changed = before.changes(but={f"parameters.{name}" for name in trained})
    draws = not torch.equal(generator, torch.get_rng_state())
    return Look({**found, **changed}, updates, draws, before.rewritten(changed))


def _weights(step: Step) -> dict[str, nn.Parameter]:
    named = own_module(step.loaded.module).named_parameters()
    return {name: each for name, each in named if each.requires_grad}


def _inputs_with_gradients(step: Step) -> dict[str, torch.Tensor]:
    found = inputs_of(step.loaded)
    tensors = {path: each for path, each in found.items() if isinstance(each, torch.Tensor)}
    return {path: each for path, each in tensors.items() if each.requires_grad and each.is_leaf}


def _gradients(
    weights: Mapping[str, torch.Tensor], size: str, most_elements: int | None
) -> dict[str, Leaf]:
    """Give gradients; where there is none it is zero, as autograd and AOTAutograd may choose."""
    found = {}
    for name, each in weights.items():
        gradient = torch.zeros_like(each) if each.grad is None else each.grad
        found[f"gradients{size}.{name}"] = leaves.keep(_sample(gradient, name, most_elements))
    return found


def _sample(gradient: torch.Tensor, name: str, most: int | None) -> torch.Tensor:
    if gradient.layout is not torch.strided:
        gradient = gradient.to_dense()
    if most is None or gradient.numel() <= most:
        return gradient.detach()
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    generator = torch.Generator().manual_seed(seed)
    places = torch.randint(gradient.numel(), (most,), generator=generator)
    return gradient.detach().flatten()[places.to(gradient.device)]


def _wrong_updates(before: Snapshot, weights: Mapping[str, nn.Parameter]) -> dict[str, str]:
    """Name parameters that the optimizer did not change as their own gradient asks for.

    That is judged by itself, as updates are small: what a gradient is off by may be less than a
    rounding of the weight it changes.
    """
    problems = {
        name: _wrong_update(before.kept[f"parameters.{name}"], each)
        for name, each in weights.items()
    }
    return {name: problem for name, problem in problems.items() if problem}


_ROUNDINGS = 2.0
_MOST_OF_UPDATE = 0.75


def _wrong_update(before: object, weight: nn.Parameter) -> str | None:
    if not isinstance(before, torch.Tensor) or before.shape != weight.shape:
        return "the model has put another in its place"
    expected = before.clone().requires_grad_()
    expected.grad = None if weight.grad is None else weight.grad.detach()
    make_optimizer([expected]).step()
    now, wanted = weight.detach(), expected.detach()
    if torch.equal(now, wanted):
        return None
    update = (wanted.double() - before.double()).nan_to_num()
    error = (now.double() - wanted.double()).nan_to_num()
    size = before.double().abs() + update.abs()
    allowed = _ROUNDINGS * torch.finfo(now.dtype).eps * size
    is_exact = bool(((error.abs() <= allowed) & (now.isfinite() == wanted.isfinite())).all())
    if is_exact and (not update.any() or error.norm() <= _MOST_OF_UPDATE * update.norm()):
        return None
    return (
        f"the optimizer's step changed it by {_rms(now.double() - before.double()):.3g} in the "
        f"root mean square, where its gradient times {LEARNING_RATE:g} is {_rms(update):.3g}"
    )


def _rms(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt())


def make_call(
    step: Step,
    start: Snapshot,
    call: Call,
    settings: Settings,
    take: Taker = lambda call: call(),
) -> Look:
    """Put the model into the state that a call begins with, and take a step.

    Args:
        step: to be taken.
        start: the model's state before its first call.
        call: which it is; the first begins with the state there is, in inference the second, too.
        settings: what is the same for eager and all arms.
        take: makes one call of the step.
    """
    goes_on = call is Call.SECOND and step.mode is Mode.INFERENCE
    if call is not Call.FIRST and not goes_on:
        start.restore()
    if call is Call.ALTERED and settings.alteration is not None:
        alter(step.loaded, settings.alteration, step.mode)
        now = Snapshot.of(step.loaded)
        # What was drawn once, and is replayed, would be right again under the same seed.
        return look(step, now, settings.seed + 1, take, _MOST_ELEMENTS)
    before = Snapshot.of(step.loaded) if goes_on else start
    return look(step, before, settings.seed, take)
