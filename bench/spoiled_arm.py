"""Eager, spoiled in one way (`spoiling`), as an arm that is held to eager."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from spoiling import Part, changed

from dynamometer.common.checking.steps import make_step, own_module
from dynamometer.dynamo.accuracy.leaves import by_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spoiling import Spoiling, Target

    from dynamometer.common.checking.steps import Step
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import Mode


class SpoiledArm:
    """Eager on its own copy of a model, spoiled in one way."""

    def __init__(self, loaded: LoadedModel, spoiling: Spoiling, target: Target) -> None:
        """Spoil a target of a model, which becomes the arm's own."""
        self._loaded, self._spoiling, self._target = loaded, spoiling, target
        self._module = own_module(loaded.module)
        self._calls = -1
        self._first: object = None
        self._arguments: dict[int, tuple[tuple[Any, ...], Mapping[str, Any]]] = {}
        self._first_gradients: dict[str, torch.Tensor | None] = {}
        self._first_weights = _values(self._module.named_parameters())
        self._weights: dict[str, torch.Tensor] = {}

    def step(self, mode: Mode, seed: int) -> Step:
        """Return the step that is checked."""
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
            case Part.ARGUMENTS:
                size = self._calls % len(self._loaded.calls)
                args, kwargs = self._arguments.setdefault(size, (args, kwargs))
            case Part.DRAWS:
                torch.manual_seed(torch.initial_seed())
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
        """Return the first result; in training a loss of that value, its graph of this call."""
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


def inputs_by_path(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, object]:
    """Return the leaves of what a module is called with."""
    return by_path({"args": args, "kwargs": dict(kwargs)}, "inputs")


def _values(named: Any) -> dict[str, torch.Tensor]:
    return {name: each.detach().clone() for name, each in named}
