"""What a script does with its test case: it is run in eager and compiled, and results are compared.

The text of this module is written into scripts, as far as each needs it, so that they need torch
alone. Its names are private, so that they are not those of a test case.
"""

import copy as _copy
import copyreg as _copyreg
import dataclasses as _dataclasses
import random as _random
import threading as _threading
from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from collections.abc import Mapping as _Mapping
from types import ModuleType as _ModuleType
from typing import Any as _Any

import torch as _torch


class _Absent:
    """In the place of what is not installed: it may be named, decorate, and be derived from."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _Any:
        """Return another one, but for what Python itself looks for."""
        if name == "__version__":
            return "0.0.0"
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self._name}.{name}")

    def __call__(self, *args: _Any, **options: _Any) -> _Any:
        """Return what is decorated as it is."""
        return args[0] if len(args) == 1 and callable(args[0]) and not options else self

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        """Add nothing to a class that is derived from it."""
        return ()


class _WithLoss(_torch.nn.Module):
    """A model with the loss that it gives, else a weighted mean square of its outputs.

    Weights rise: the plain mean square of what is normalised has no gradient. What is negative
    counts for half.
    """

    def __init__(self, model: _torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: _Any, **kwargs: _Any) -> _torch.Tensor:
        """Return the loss."""
        output = self.model(*args, **kwargs)
        own = getattr(output, "loss", None)
        if isinstance(own, _torch.Tensor):
            return own
        tensors = _tensors(output)
        if not tensors:  # an object, or a generator
            tensors = _tensors(_leaves(output, ""))
        losses = []
        for each in tensors:
            value = _torch.view_as_real(each.resolve_conj()) if each.is_complex() else each
            if value.is_floating_point():
                flat = value.to(_torch.promote_types(value.dtype, _torch.float32)).reshape(-1)
                places = _torch.arange(flat.numel(), device=flat.device, dtype=flat.dtype)
                weights = 0.5 + (places + 0.5) / max(flat.numel(), 1)
                losses.append((flat * _torch.nn.functional.leaky_relu(flat, 0.5) * weights).mean())
        return _torch.stack(losses).sum()


class _Autocast(_torch.nn.Module):
    """A model under automatic mixed precision."""

    def __init__(self, model: _torch.nn.Module, device: str) -> None:
        super().__init__()
        self.model = model
        self.device = device

    def forward(self, *args: _Any, **kwargs: _Any) -> _Any:
        """Call it so."""
        with _torch.autocast(self.device):
            return self.model(*args, **kwargs)


def _seed(number: int) -> None:
    """Have every generator draw the same random numbers from here on."""
    _random.seed(number)
    _torch.manual_seed(number)
    try:
        import numpy as np
    except ImportError:
        return
    np.random.seed(number)  # noqa: NPY002  models draw from the legacy generator


def _moved(value: _Any, device: str, dtype: _torch.dtype | None) -> _Any:
    """Return inputs on a device, what is of floating point in a dtype if there is one."""
    if isinstance(value, dict):
        return {key: _moved(each, device, dtype) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_moved(each, device, dtype) for each in value)
    if not isinstance(value, _torch.Tensor):
        return value
    own = dtype if value.is_floating_point() else None
    return value.detach().to(device, own or value.dtype).requires_grad_(value.requires_grad)


def _copied(model: _torch.nn.Module, inputs: _Any) -> tuple[_torch.nn.Module, _Any]:
    """Return copies; what a model has computed from its weights, and locks, refuse otherwise."""
    _copyreg.pickle(type(_threading.Lock()), lambda _: (_threading.Lock, ()))
    _copyreg.pickle(type(_threading.RLock()), lambda _: (_threading.RLock, ()))
    attributes = [each for part in model.modules() for each in vars(part).values()]
    computed = [each for each in attributes if getattr(each, "grad_fn", None) is not None]
    memo = {id(each): each.detach().clone() for each in computed}
    return _copy.deepcopy(model, memo), _copy.deepcopy(inputs)


def _in_inference(call: _Callable[..., _Any], model: _torch.nn.Module, inputs: _Any) -> _Any:
    """Return what a call gives, and what it may have written to."""
    args, kwargs = inputs
    output = call(*args, **kwargs)
    output = list(output) if isinstance(output, _Iterator) else output
    return {"output": output, "inputs": inputs, "state": _state(model)}


def _in_training(call: _Callable[..., _Any], model: _torch.nn.Module, inputs: _Any) -> _Any:
    """Return the loss of a call, the gradients, and what else it may have written to."""
    args, kwargs = inputs
    trained = {
        **dict(model.named_parameters()),
        **{f"inputs[{place}]": each for place, each in enumerate(_tensors(inputs))},
    }
    trained = {name: each for name, each in trained.items() if each.requires_grad}
    for each in trained.values():
        each.grad = None
    loss = call(*args, **kwargs)
    loss.backward()
    gradients = {
        name: _torch.zeros_like(each) if each.grad is None else each.grad
        for name, each in trained.items()
    }
    return {"loss": loss, "gradients": gradients, "inputs": inputs, "state": _state(model)}


def _state(model: _torch.nn.Module) -> dict[str, _torch.Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _calls(
    step: _Callable[..., _Any],
    call: _Callable[..., _Any],
    model: _torch.nn.Module,
    inputs: _Any,
    seed: int,
) -> dict[str, _Any]:
    """Return what each of two calls comes to, by path."""
    found: dict[str, _Any] = {}
    for name in ("first call", "second call"):
        _seed(seed)
        leaves = _leaves(step(call, model, inputs), name)
        found |= {path: _kept(each) for path, each in leaves.items()}
    return found


def _tensors(value: _Any) -> list[_torch.Tensor]:
    """Return the tensors in a result, or in inputs."""
    if isinstance(value, _torch.Tensor):
        return [value]
    if isinstance(value, _Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return []
    return [tensor for each in value for tensor in _tensors(each)]


def _leaves(value: _Any, path: str, above: tuple[int, ...] = ()) -> dict[str, _Any]:
    """Return what a result consists of, by path: of objects the attributes.

    What is no tensor has its type in its path, as that must be the same.
    """
    if value is None or id(value) in above:
        return {}
    if isinstance(value, _torch.Tensor) and not value.is_nested:
        return {path: value}
    parts = _parts(value)
    if parts is None:
        return {f"{path} ({type(value).__name__})": value}
    found: dict[str, _Any] = {}
    for name, each in parts.items():
        found.update(_leaves(each, path + name, (*above, id(value))))
    return found


def _parts(value: _Any) -> dict[str, _Any] | None:
    """Return what a container or an object holds; `None` if it is neither."""
    if isinstance(value, _Mapping):
        return {f"[{key!r}]": each for key, each in value.items()}
    if isinstance(value, _torch.Tensor):
        value = value.unbind()
    if isinstance(value, list | tuple | _Iterator):
        return {f"[{place}]": each for place, each in enumerate(value)}
    if isinstance(value, type | _ModuleType | _torch.nn.Module):
        return None
    fields = _dataclasses.fields(value) if _dataclasses.is_dataclass(value) else ()
    held = {each.name: getattr(value, each.name) for each in fields}
    held |= getattr(value, "__dict__", {})
    return {f".{name}": each for name, each in held.items()} or None


def _compare(found: dict[str, _Any], expected: dict[str, _Any], tolerance: float) -> None:
    """Raise where something isn't what eager gives but for rounding.

    That is a share of itself and of the largest number beside it, and what is left of sums of which
    nothing is left: of gradients a share of the largest one.
    """
    if found.keys() != expected.keys():
        differing = ", ".join(sorted(found.keys() ^ expected.keys()))
        msg = f"the results have different structure: {differing}"
        raise AssertionError(msg)
    gradients = [_largest(each) for path, each in expected.items() if "['gradients']" in path]
    for path, value in expected.items():
        other = found[path]
        if isinstance(value, _torch.Tensor):
            nothing = 1e-5 * max(gradients) if "['gradients']" in path else 1e-7
            _compare_tensors(other, value, path, tolerance, nothing)
        elif getattr(type(value), "__eq__", None) is not object.__eq__ and value != other:
            msg = f"{path}: {other!r}, expected {value!r}"
            raise AssertionError(msg)


def _compare_tensors(
    found: _torch.Tensor, expected: _torch.Tensor, path: str, tolerance: float, nothing: float
) -> None:
    """Raise where values differ, or strides, which matter to whoever takes a view."""
    rtol = atol = 0.0
    if expected.is_floating_point() or expected.is_complex():
        rtol, atol = tolerance, tolerance * _largest(expected) + nothing
    _torch.testing.assert_close(
        found, expected, rtol=rtol, atol=atol, equal_nan=True, msg=lambda text: f"{path}: {text}"
    )
    strides, wanted = (
        [step for size, step in zip(each.shape, each.stride(), strict=True) if size > 1]
        for each in (found, expected)
    )
    if strides != wanted and expected.numel():
        msg = f"{path}: strides {strides}, expected {wanted}"
        raise AssertionError(msg)


def _largest(value: _torch.Tensor) -> float:
    sizes = value.abs().double()
    return float(sizes[sizes.isfinite()].max()) if sizes.isfinite().any() else 0.0


def _kept(value: _Any) -> _Any:
    """Return what later calls don't change: a tensor of what is a tensor, or a number."""
    if isinstance(value, _torch.Tensor):
        dense = value.detach() if value.layout is _torch.strided else value.detach().to_dense()
        return dense.clone()
    if isinstance(value, float | complex):
        is_real = isinstance(value, float)
        return _torch.tensor(value, dtype=_torch.float64 if is_real else _torch.complex128)
    if type(value).__module__ == "numpy" and value.dtype.kind in "biufc":
        return _torch.as_tensor(value.copy())
    return value
