"""What else than values there is to a call: how results are arranged, and what is on after it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from dynamometer.common.checking.snapshots import attributes_of, state_of
from dynamometer.common.checking.steps import own_module
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy import leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dynamometer.common.interfaces.suite import LoadedModel


@dataclass(frozen=True)
class Form:
    """What is the same of two calls that came to the same, beside values.

    Attributes:
        limits: of results of inference, and of gradients, what keeps a caller from using them
            freely, each with the words for an arm whose results alone are limited so.
        structure: of the results of inference, one for each size (`leaves.structure_of`).
        facts: which results have a history, and what the call has switched on or off, of torch's
            settings, of modules and of tensors.
    """

    limits: frozenset[str] = frozenset()
    structure: tuple[str | None, ...] = ()
    facts: frozenset[str] = frozenset()

    def with_result(
        self, result: object, output: Mapping[str, object], loaded: LoadedModel
    ) -> Form:
        """Add a result.

        Args:
            result: as the model gave it.
            output: its leaves themselves, by path.
            loaded: whose parameters, buffers, inputs and attributes it may share memory with.
        """
        return Form(
            self.limits | _limits_of(output, loaded),
            (*self.structure, leaves.structure_of(result)),
            self.facts | _with_history(output),
        )

    def with_gradients(self, gradients: Mapping[str, torch.Tensor | None]) -> Form:
        """Add gradients of weights, by name: who adds to one, or scales it, must change no other.

        A backward may give them in memory that the next one uses again.
        """
        shared = _overlapping({name: each for name, each in gradients.items() if each is not None})
        return replace(self, limits=self.limits | shared)

    def with_switched(self, before: frozenset[str], loaded: LoadedModel) -> Form:
        """Add what is on now that was not before, and the other way round.

        Args:
            before: what was on (`what_is_on`).
            loaded: as it is now.
        """
        now = what_is_on(loaded)
        begun = {f"{each} after the call" for each in now - before}
        ended = {f"{each} before the call alone" for each in before - now}
        return replace(self, facts=self.facts | begun | ended)

    def problem(self, eager: Form) -> str | None:
        """Say what is otherwise than after eager's call, if something is."""
        if self.limits - eager.limits:
            return min(self.limits - eager.limits)
        for wanted, got in zip(eager.structure, self.structure, strict=True):
            if wanted and got and wanted != got:
                return f"the results have different structure: expected {wanted}, got {got}"
        if self.facts - eager.facts:
            return f"here {min(self.facts - eager.facts)}, in eager not"
        if eager.facts - self.facts:
            return f"in eager {min(eager.facts - self.facts)}, here not"
        return None


@contextmanager
def keeping_what_is_set() -> Iterator[None]:
    """Keep torch's settings as they are for what runs later, other arms among it.

    Raises:
        WrongResultError: some are others in the end.
    """
    before = state.settings()
    with state.keeping_settings():
        yield
        now = state.settings()
    if now - before:
        msg = f"{min(now - before)} once it is compiled, before it not"
        raise WrongResultError(msg)
    if before - now:
        msg = f"{min(before - now)} until it is compiled, then not"
        raise WrongResultError(msg)


def what_is_on(loaded: LoadedModel) -> frozenset[str]:
    """Say which settings are on, which modules are trained, and which tensors have gradients."""
    modules = own_module(loaded.module).named_modules()
    training = {
        f"{name or 'the model'} is in training mode" for name, each in modules if each.training
    }
    gradients = {
        f"{path} requires a gradient"
        for path, each in state_of(loaded).items()
        if isinstance(each, torch.Tensor) and each.requires_grad
    }
    return state.settings() | training | gradients


def _limits_of(output: Mapping[str, object], loaded: LoadedModel) -> set[str]:
    """Say which results can't be written to without harm, or can't take part in training."""
    attributes = {
        f"{path}[{index}]" if len(tensors) > 1 else path: each
        for path, tensors in attributes_of(loaded).items()
        for index, (each, _) in enumerate(tensors)
    }
    kept = attributes | state_of(loaded)
    owners = {address: path for path, each in kept.items() if (address := _address(each))}
    limits = set()
    for path, each in output.items():
        if not isinstance(each, torch.Tensor):
            continue
        if owner := owners.get(_address(each)):
            limits.add(f"{path}: it shares memory with {owner}, eager's does not")
        if each.requires_grad and each.grad_fn is None:
            limits.add(f"{path}: it requires a gradient of its own, eager's does not")
        if each.is_inference() and not torch.is_inference_mode_enabled():  # by what ran before
            limits.add(f"{path}: it is an inference tensor, eager's is not")
    return limits


def _overlapping(gradients: Mapping[str, torch.Tensor]) -> set[str]:
    """Say which gradients have elements in memory of others'."""
    places = sorted(
        (each.data_ptr(), each.data_ptr() + each.numel() * each.itemsize, name)
        for name, each in gradients.items()
        if _address(each) and _is_dense(each)
    )
    return {
        f"gradients.{name}: it shares memory with another's, in eager it does not"
        for pair in pairwise(places)
        if pair[1][0] < pair[0][1]
        for _, _, name in pair
    }


def _is_dense(tensor: torch.Tensor) -> bool:
    """Return whether a tensor fills the memory between its first and its last element."""
    sizes = sorted(zip(tensor.stride(), tensor.shape, strict=True))
    filled = 1
    for stride, size in sizes:
        if size > 1 and stride != filled:
            return False
        filled *= size
    return True


def _address(value: object) -> int:
    """Return where a tensor's memory begins; 0 of what has none, or several."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.is_nested:
        return 0
    with suppress(RuntimeError):  # of a tensor that wraps others
        return value.untyped_storage().data_ptr() if value.numel() else 0
    return 0


def _with_history(output: Mapping[str, object]) -> set[str]:
    """Say which results can be backpropagated through.

    A parameter that is returned as it is doesn't count: a frozen arm returns a constant.
    """
    return {
        f"{path} has a history"
        for path, each in output.items()
        if isinstance(each, torch.Tensor) and each.grad_fn is not None
    }
