"""What one step of a case is, the same for every arm, and what is looked at to judge it.

In inference a step is a forward pass. In training it is forward, loss, backward and a step of the
optimizer; the compiled region is forward and loss, and where asked for the optimizer's step. The
rest is eager in every arm.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.common.interfaces.suite import copied, require_values
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy.leaves import MOST_DENSE, by_path, map_tensors
from dynamometer.dynamo.trees import once, tree_leaves
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dynamometer.common.interfaces.suite import Inputs, LoadedModel
    from dynamometer.results.values.cases import Case

LEARNING_RATE = 0.01

LOSS_FACTOR = -2.0
"""What the loss is multiplied by where gradients are added to those of the call before. Exact in
every precision; adversarial training changes the sign of a loss."""

_IMAGE_DIMENSIONS = 4
DTYPES = {
    Dtype.FLOAT32: torch.float32,
    Dtype.FLOAT16: torch.float16,
    Dtype.BFLOAT16: torch.bfloat16,
    Dtype.AMP: torch.float32,
}


def configure(loaded: LoadedModel, case: Case, device: torch.device) -> LoadedModel:
    """Put a model and its inputs into the state a case asks for.

    That is its device, dtype and memory format; in training its loss belongs to the module.

    Raises:
        SkippedError: there is nothing to train.
        ValueError: a tensor has no values.
    """
    require_values(*loaded.module.named_parameters(), *loaded.module.named_buffers())
    dtype_for = partial(_dtype_for, dtype=None if loaded.keeps_dtypes else DTYPES[case.dtype])
    _make_lazy_parameters(loaded)

    def move(tensor: torch.Tensor) -> torch.Tensor:
        require_values(("an input", tensor))
        # What is made of a tensor with a gradient has a history, and can't be copied.
        is_trained = tensor.requires_grad and tensor.is_leaf
        moved = (tensor.detach() if is_trained else tensor).to(device, dtype_for(tensor))
        if case.channels_last and moved.dim() == _IMAGE_DIMENSIONS:
            moved = moved.contiguous(memory_format=torch.channels_last)
        return moved.requires_grad_() if is_trained else moved

    with _leaves_kept(loaded.module):
        module = loaded.module.to(device)
        if any(dtype_for(each) is not each.dtype for each in module.parameters()):
            module = module.to(DTYPES[case.dtype])
        if not any(True for _ in module.parameters()):  # its weights are among its buffers
            for each in module.buffers():
                each.data = each.data.to(dtype_for(each))
        # `Module.to` would refuse weights of three-dimensional convolutions; `contiguous` leaves
        # alone what is so in either order.
        for each in (*module.parameters(), *module.buffers()) if case.channels_last else ():
            if each.dim() == _IMAGE_DIMENSIONS:
                each.data = each.data.to(memory_format=torch.channels_last)
    if case.mode is Mode.TRAINING:
        module = WithLoss(_trainable(module))
    if case.dtype is Dtype.AMP:
        module = Autocast(module, device.type)
    moved = loaded.with_inputs(partial(map_tensors, once(move)))
    notes = () if _set_mode(module, case.mode) else (_STAYS,)
    return replace(moved, module=module, notes=(*moved.notes, *notes))


_STAYS = "what was exported stays in the mode it was exported in"


def _set_mode(module: nn.Module, mode: Mode) -> bool:
    """Have a module train or not, but for parts that refuse it; return whether none does."""
    try:
        module.train(mode is Mode.TRAINING)
    except NotImplementedError:
        if getattr(module.train, "__func__", None) is nn.Module.train:  # a part of it refuses
            for each in module.children():
                _set_mode(each, mode)
        return False
    return True


@contextmanager
def _leaves_kept(module: nn.Module) -> Iterator[None]:
    """Convert a module, but let buffers that have gradients be as free of a history as before."""
    every = module.named_buffers(remove_duplicate=False)
    trained = [name for name, each in every if each.requires_grad and each.is_leaf]
    with state.without_gradients():
        yield
    own = dict(module.named_buffers(remove_duplicate=False))
    for name in trained:
        own[name].requires_grad_()


def _make_lazy_parameters(loaded: LoadedModel) -> None:
    """Have a model that learns its sizes from its first inputs learn them now.

    Weights must be there to be copied.
    """
    module = loaded.module
    if not any(is_lazy(each) for each in (*module.parameters(), *module.buffers())):
        return
    was_training = module.training
    args, kwargs = copied_inputs((loaded.args, dict(loaded.kwargs)))
    with state.without_gradients():
        module.eval()(*args, **kwargs)
    module.train(was_training)


def _dtype_for(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype:
    """Return the dtype a tensor is to have where `dtype` is asked for, or its own for `None`.

    A model that is published in float64 stays in it where float32 is asked for: it is so for a
    reason, as rounding in sums that cancel would be all that is left.
    """
    kept = dtype is torch.float32 and tensor.dtype is torch.float64
    if dtype is None or kept or not tensor.is_floating_point():
        return tensor.dtype
    return dtype


def _trainable(module: nn.Module) -> nn.Module:
    if not any(parameter.requires_grad for parameter in module.parameters()):
        msg = "it has no parameters, so there is nothing to train"
        raise SkippedError(msg)
    return module


class WithLoss(nn.Module):
    """A model and its loss in one."""

    def __init__(self, module: nn.Module) -> None:
        """Wrap a model."""
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Return the loss the model computes itself, else a weighted mean square of its outputs.

        Weights rise from 0.5 to 1.5: the plain mean square of an output that is normalised is
        constant, and has no gradient. What is negative counts for half, so that signs matter, and
        the second output 1.25 times, the third 1.5 times, so that their order does.

        Raises:
            SkippedError: no output is of floating point, or complex.
        """
        output = self.module(*args, **kwargs)
        own = getattr(output, "loss", None)
        if isinstance(own, torch.Tensor):
            return own
        tensors = [each for each in tree_leaves(output) if isinstance(each, torch.Tensor)]
        if not tensors:  # of a class that torch doesn't know to be a container
            every = by_path(output, "").values()
            tensors = [each for each in every if isinstance(each, torch.Tensor)]
        numbers = [
            torch.view_as_real(each.resolve_conj()) if each.is_complex() else each
            for each in tensors
        ]
        floating = [_numbers_of(each) for each in numbers if each.is_floating_point()]
        squares = [_mean_square(_wide(each)) for each in floating]
        if not squares:
            msg = "none of its outputs is of floating point, so there is no loss to train with"
            raise SkippedError(msg)
        first, *others = squares
        return torch.stack([first, *(each * (1.25 + i / 4) for i, each in enumerate(others))]).sum()


def _numbers_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the numbers of a tensor that has no single shape, or not each element, in a row."""
    if tensor.is_nested and tensor.layout is not torch.jagged:
        return torch.cat([each.reshape(-1) for each in tensor.unbind()])
    if tensor.layout is torch.sparse_coo:  # Dynamo fails where it can't know how many it stores
        is_small = tensor.numel() <= MOST_DENSE
        return tensor.to_dense() if is_small else tensor.coalesce().values()
    whole = tensor.contiguous() if tensor.is_nested else tensor
    return tensor if tensor.layout is torch.strided else whole.values()


def _mean_square(tensor: torch.Tensor) -> torch.Tensor:
    count = tensor.numel()
    places = torch.arange(count, device=tensor.device, dtype=tensor.dtype)
    weights = 0.5 + (places + 0.5) / max(count, 1)
    flat = tensor.reshape(-1)
    return (flat * nn.functional.leaky_relu(flat, 0.5) * weights).sum() / max(count, 1)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """Return float32 of half precision and less, in which squares overflow."""
    return tensor if tensor.dtype in {torch.float32, torch.float64} else tensor.float()


class Autocast(nn.Module):
    """A model under automatic mixed precision, in the device type's own lower precision."""

    def __init__(self, module: nn.Module, device_type: str) -> None:
        """Wrap a model."""
        super().__init__()
        self.module = module
        self.device_type = device_type

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model under autocast."""
        with torch.autocast(self.device_type):
            return self.module(*args, **kwargs)


@dataclass(frozen=True)
class Step:
    """One step of an arm: a call, or one at each of several sizes.

    Attributes:
        calls: take the step in parts, and give the output at one size, or the loss in training.
        adding: takes the first part, but in training of the loss times `LOSS_FACTOR`, and adds the
            gradients to those that are there.
        loaded: the arm's own module and inputs, which steps may change.
        mode: inference or training.
        forward: the first part's, alone.
        rebind: gives the same step of the same compiled module on other inputs; its second
            argument is called between the forward and the backward of a step that adds.
    """

    calls: tuple[Callable[[], object], ...]
    adding: Callable[[], object]
    loaded: LoadedModel
    mode: Mode
    forward: Callable[[], object]
    rebind: Callable[[LoadedModel, Callable[[], object]], Step]

    def on_other_memory(self, *, overlapping: bool = False) -> Step:
        """Return this step on copies of its inputs; those it was made with stay as they are.

        Args:
            overlapping: have a forward on these between forward and backward of a step that adds.
        """
        meanwhile = self.forward if overlapping else _nothing
        return self.rebind(self.loaded.with_inputs(copied_inputs), meanwhile)

    def with_forward_between(self) -> Step:
        """Return this step with a forward on copies of its inputs, as they are now, in between.

        It comes between forward and backward of a step that adds.
        """
        return self.rebind(self.loaded, self.on_other_memory().forward)

    @property
    def call(self) -> Callable[[], object]:
        """The whole step in one, keeping no more than its last result."""
        if len(self.calls) == 1:
            return self.calls[0]  # as it is: nothing is to be timed with it
        *before, last = self.calls

        def step() -> object:
            for call in before:
                call()
            return last()

        return step


def copied_inputs(tree: Any) -> Any:
    """Copy inputs; what a call has written to with a history is free of it in the copy."""
    return copied(tree, tree_leaves(tree))


def own_module(module: nn.Module) -> nn.Module:
    """Take off what was wrapped around the model here."""
    while isinstance(module, WithLoss | Autocast):
        module = module.module
    return module


def make_step(
    compiled: Callable[..., Any],
    loaded: LoadedModel,
    mode: Mode,
    seed: int,
    compile_function: Callable[[Callable[[], object]], Callable[[], object]] | None = None,
) -> Step:
    """Bind a callable to the model's inputs; the one step that every arm runs.

    Where there are inputs of several sizes, a step goes through all of them.

    Args:
        compiled: the module as an arm compiled it.
        loaded: the arm's own module and inputs.
        mode: inference or training.
        seed: every generator is seeded with it, so that the first step of each arm draws the
            same random numbers.
        compile_function: compiles the optimizer's step; `None` leaves that eager.
    """
    state.seed_everything(seed)
    if mode is Mode.INFERENCE:
        return _inference(compiled, loaded)
    optimizer = make_optimizer(loaded.module.parameters())
    update: Callable[[], object] = optimizer.step
    if compile_function is not None:
        update = compile_function(update)
    return _training(compiled, loaded, optimizer, update, _nothing)


def _inference(compiled: Callable[..., Any], loaded: LoadedModel) -> Step:
    calls = tuple(_forward(compiled, each) for each in loaded.calls)

    def rebind(other: LoadedModel, _: Callable[[], object]) -> Step:
        return _inference(compiled, other)

    return Step(calls, calls[0], loaded, Mode.INFERENCE, calls[0], rebind)


def _training(
    compiled: Callable[..., Any],
    loaded: LoadedModel,
    optimizer: torch.optim.Optimizer,
    update: Callable[[], object],
    meanwhile: Callable[[], object],
) -> Step:
    """Return a training step.

    Args:
        compiled: the module as an arm compiled it.
        loaded: the arm's own module and inputs.
        optimizer: of its weights.
        update: the optimizer's step, compiled or not.
        meanwhile: what happens between the forward and the backward of a step that adds.
    """

    def training(forward: Callable[[], Any]) -> Callable[[], object]:
        def train() -> object:
            optimizer.zero_grad(set_to_none=True)
            loss = forward()
            loss.backward()
            update()
            return loss.detach()

        return train

    forwards = [_forward(compiled, each) for each in loaded.calls]

    def add() -> object:
        loss = forwards[0]()
        meanwhile()
        loss.backward(torch.full_like(loss, LOSS_FACTOR))
        update()
        return loss.detach()

    def rebind(other: LoadedModel, meanwhile: Callable[[], object]) -> Step:
        return _training(compiled, other, optimizer, update, meanwhile)

    calls = tuple(map(training, forwards))
    return Step(calls, add, loaded, Mode.TRAINING, forwards[0], rebind)


def _nothing() -> None:
    pass


def make_optimizer(parameters: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
    """Return the optimizer of every training step.

    Plain SGD: Adam divides small gradients by their own size, and turns rounding into whole steps.
    """
    return torch.optim.SGD(parameters, lr=LEARNING_RATE)


def _forward(compiled: Callable[..., Any], inputs: Inputs) -> Callable[[], Any]:
    args, kwargs = inputs.args, dict(inputs.kwargs)

    def forward() -> Any:
        output = compiled(*args, **kwargs)
        # A generator has computed nothing yet.
        return list(output) if isinstance(output, GeneratorType) else output

    return forward
