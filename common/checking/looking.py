"""Making a call that is compared, and keeping what it came to.

Arms and eager make the same calls: the first, a second, and one on other inputs. In training each
begins with the weights the first began with: one step of the optimizer makes many a network
chaotic, and nothing could be said of the next. A later call, and the one on other inputs, add their
gradients to those of the call before, of a loss that is multiplied: a backward that takes what it
is given for 1, or overwrites, shows there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import torch

from dynamometer.common.checking.alteration import Alteration, alter
from dynamometer.common.checking.form import Form, what_is_on
from dynamometer.common.checking.snapshots import Snapshot, attributes_of, state_of
from dynamometer.common.checking.steps import LEARNING_RATE, LOSS_FACTOR, make_optimizer, own_module
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy import leaves
from dynamometer.dynamo.accuracy.changes import difference
from dynamometer.dynamo.accuracy.deviation import IN_FLOAT32, Multiples
from dynamometer.dynamo.accuracy.expected import CHANGE, are_identical
from dynamometer.dynamo.accuracy.numbers import as_real
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from torch import nn

    from dynamometer.common.checking.steps import Step
    from dynamometer.dynamo.accuracy.leaves import Leaf, Leaves

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
    ADDING = "call that adds its gradients to others"
    """Likewise: what is added is what the first call gives."""
    ALTERED = "call on other inputs"


@dataclass(frozen=True)
class Settings:
    """What is the same for eager and all arms.

    Attributes:
        seed: every generator is seeded with it before every call.
        tolerance: what share of itself an element may be off by.
        multiples: of the effect of rounding, which an element may be off by in addition.
        alteration: what differs in the call on other inputs; `None` where there is no such call.
        overlapping: whether another forward comes between forward and backward of that call, as in
            networks that are called twice for one loss.
        is_brief: whether eager and arms are called as seldom as will do.
        goes_on: whether in training what the first call made of buffers is left to the second, as
            in inference; weights are put back.
    """

    seed: int
    tolerance: float
    multiples: Multiples = IN_FLOAT32
    alteration: Alteration | None = None
    overlapping: bool = False
    is_brief: bool = False
    goes_on: bool = True


@dataclass(frozen=True)
class Look:
    """What one call came to.

    Attributes:
        found: output, or in training loss and gradients, and what of the state has changed.
        updates: by parameter, what is wrong with what the optimizer's step made of its gradient.
        draws: whether a generator of random numbers is another one afterwards.
        rewritten: paths of changes that are more than rounding of what was there.
        form: what else there is to it.
    """

    found: Leaves
    updates: Mapping[str, str]
    draws: bool = False
    rewritten: frozenset[str] = frozenset()
    form: Form = field(default_factory=Form)

    def is_like(self, other: Look) -> bool:
        """Return whether another call came to the same, bit for bit."""
        one, two = ((each.draws, each.rewritten, each.form) for each in (self, other))
        return one == two and are_identical(self.found, other.found)

    def gives_like(self, other: Look) -> bool:
        """Return whether another call gave the same, bit for bit, whatever it made of the state."""
        one, two = (
            {path: leaf for path, leaf in each.found.items() if not path.startswith(CHANGE)}
            for each in (self, other)
        )
        return are_identical(one, two)


def look(
    step: Step,
    before: Snapshot,
    seed: int,
    take: Taker = lambda call: call(),
    most_elements: int | None = None,
    *,
    adding: bool = False,
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
        adding: whether gradients are added to those of the step before (`Step.adding`), which are
            multiplied by as much; what is kept of them is what was added, once.
    """
    state.seed_and_draw(seed)
    generators = state.generators()
    found: dict[str, Leaf] = {}
    updates: dict[str, str] = {}
    form, was_on = Form(), what_is_on(step.loaded)
    ends = {0, len(step.calls) - 1}
    for index, call in enumerate(step.calls):
        size = f"[{index}]" if len(step.calls) > 1 else ""
        if step.mode is Mode.INFERENCE:
            result = take(call)
            output = leaves.by_path(result, f"output{size}")
            form = form.with_result(result, output, step.loaded)
            # Kept from the calls after it, which may use its memory, as CUDA graphs do.
            found |= leaves.keep_all(output)
            del result, output
            continue
        weights = _weights(step)
        others = _others_with_gradients(step)
        adds = adding and index == 0
        for each in () if adds else others.values():
            each.grad = None
        kept = before if index == 0 else Snapshot.of(step.loaded)
        most = most_elements if index in ends else _MOST_BETWEEN
        sums = _own_gradients({**weights, **others}, most) if adds else {}
        found |= leaves.collect(take(step.adding if adds else call), f"loss{size}")
        updates |= _wrong_updates(kept, weights)
        form = form.with_gradients({name: each.grad for name, each in weights.items()})
        for name, each in {**weights, **others}.items():
            gradient = _sample(_gradient(each), name, most)
            found[f"gradients{size}.{name}"] = _added(gradient, sums.get(name))
    trained = _weights(step) if step.mode is Mode.TRAINING else ()
    changed = before.changes(but={f"parameters.{name}" for name in trained})
    draws = generators != state.generators()
    rewritten = before.rewritten(changed)
    return Look(
        {**found, **changed}, updates, draws, rewritten, form.with_switched(was_on, step.loaded)
    )


def _weights(step: Step) -> dict[str, nn.Parameter]:
    named = own_module(step.loaded.module).named_parameters()
    return {name: each for name, each in named if each.requires_grad}


def _others_with_gradients(step: Step) -> dict[str, torch.Tensor]:
    """Return the buffers, inputs and plain attributes that have gradients of their own."""
    attributes = {
        f"{path}[{index}]": each
        for path, tensors in attributes_of(step.loaded).items()
        for index, (each, _) in enumerate(tensors)
    }
    return {
        path: each
        for path, each in {**state_of(step.loaded), **attributes}.items()
        if isinstance(each, torch.Tensor) and not path.startswith("parameters")
        if each.requires_grad and each.is_leaf
    }


def _own_gradients(
    tensors: Mapping[str, torch.Tensor], most_elements: int | None
) -> dict[str, torch.Tensor]:
    """Give gradients memory of their own, multiply them, and return what is kept of them.

    What is there may be an output of a CUDA graph, which the next call overwrites. Multiplied by
    what the loss is, a call that gives the same again adds to them without any rounding.
    """
    for each in tensors.values():
        each.grad = None if each.grad is None else each.grad * LOSS_FACTOR
    return {
        name: _sample(_gradient(each), name, most_elements).clone()
        for name, each in tensors.items()
    }


def _gradient(tensor: torch.Tensor) -> torch.Tensor:
    """Return a gradient; where there is none it is zero, as autograd and AOTAutograd may choose."""
    return torch.zeros_like(tensor) if tensor.grad is None else tensor.grad


def _added(gradient: torch.Tensor, before: torch.Tensor | None) -> Leaf:
    """Return what was added to a gradient, for the loss once; the whole of it without a before."""
    if before is None:
        return leaves.keep(gradient)
    added = difference(before, gradient)
    assert added.resolution is not None  # of floating point there is one
    resolution = added.resolution / abs(LOSS_FACTOR)
    return replace(added, value=added.value / LOSS_FACTOR, resolution=resolution)


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
    rounding of the weight it changes. Weights that a call has made since are not the optimizer's.
    """
    problems = {
        name: _wrong_update(before.kept[f"parameters.{name}"], each)
        for name, each in weights.items()
        if f"parameters.{name}" in before.kept
    }
    return {name: problem for name, problem in problems.items() if problem}


_ROUNDINGS = 2.0
"""Of the weight and its update, by which an element may be off."""
_MOST_OF_UPDATE = 0.75
"""Share of the update, by norm, that all errors together may be."""
_AS_NEAR = 1.25
"""Times as far from the exact update as eager's is: the other of two values it lies between."""


def _wrong_update(before: object, weight: nn.Parameter) -> str | None:
    if not isinstance(before, torch.Tensor) or before.shape != weight.shape:
        return "the model has put another in its place"
    now, before = as_real(weight.detach()), as_real(before)
    gradient = None if weight.grad is None else as_real(weight.grad)
    wanted = _updated(before, gradient)
    if torch.equal(now, wanted):
        return None
    update = (wanted.double() - before.double()).nan_to_num()
    error = (now.double() - wanted.double()).nan_to_num()
    exact = _updated(before.double(), gradient)
    off, eagers = ((each.double() - exact).abs().nan_to_num() for each in (now, wanted))
    error = torch.where(off <= _AS_NEAR * eagers, 0.0, error)
    size = before.double().abs() + update.abs()
    limits = torch.finfo(now.dtype)
    allowed = _ROUNDINGS * limits.eps * (size + limits.tiny)  # no less than a subnormal number
    is_exact = bool(((error.abs() <= allowed) & (now.isfinite() == wanted.isfinite())).all())
    if is_exact and (not update.any() or error.norm() <= _MOST_OF_UPDATE * update.norm()):
        return None
    return (
        f"the optimizer's step changed it by {_rms(now.double() - before.double()):.3g} in the "
        f"root mean square, where its gradient times {LEARNING_RATE:g} is {_rms(update):.3g}"
    )


def _updated(before: torch.Tensor, gradient: torch.Tensor | None) -> torch.Tensor:
    """Return what the optimizer makes of a weight, in the weight's own precision."""
    weight = before.clone().requires_grad_()
    weight.grad = None if gradient is None else gradient.detach().to(before.dtype)
    make_optimizer([weight]).step()
    return weight.detach()


def _rms(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt())


def look_on_others(
    step: Step, settings: Settings, start: Snapshot, take: Taker = lambda call: call()
) -> Look:
    """Take a step whose inputs were made others, and in training its weights, and keep it."""
    now = Snapshot.of(step.loaded, beside=start.kept)
    # What was drawn once, and is replayed, would be right again under the same seed.
    return look(step, now, settings.seed + 1, take, _MOST_ELEMENTS, adding=True)


def replaced_by(step: Step) -> set[str]:
    """Name parameters and buffers that the first calls put other tensors into, by path.

    Args:
        step: of a model in whatever state, which it changes.
    """
    found = set[str]()
    with state.keeping_settings():
        for _ in range(_CALLS_WHILE_COMPILING):
            before = state_of(step.loaded)
            step.call()
            now = state_of(step.loaded)
            paths = before.keys() | now.keys()
            found |= {path for path in paths if before.get(path) is not now.get(path)}
    return found


_CALLS_WHILE_COMPILING = 3
"""That a backend may need: to warm up, to trace, and to check what it traced."""


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
            In training that begins with the weights of the first.
        settings: what is the same for eager and all arms.
        take: makes one call of the step.
    """
    with state.keeping_settings():
        return _make_call(step, start, call, settings, take)


def _make_call(step: Step, start: Snapshot, call: Call, settings: Settings, take: Taker) -> Look:
    trains = step.mode is Mode.TRAINING
    goes_on = call is Call.SECOND and (settings.goes_on or not trains)
    if goes_on and trains:
        start.restore(but={path for path in start.kept if path.startswith("buffers")})
    elif call is not Call.FIRST and not goes_on:
        start.restore()
    if call is Call.ALTERED and settings.alteration is not None:
        # Who reads the tensors of the first call for ever finds in them what they were.
        other = step.on_other_memory(overlapping=settings.overlapping)
        new = start.of_what_is_new()
        alter(other.loaded, settings.alteration, step.mode)
        try:
            return look_on_others(other, settings, start, take)
        finally:
            new.restore()
    before = Snapshot.of(step.loaded, beside=start.kept) if goes_on else start
    return look(step, before, settings.seed, take, adding=call is Call.ADDING)
