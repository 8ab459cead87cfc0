"""What lies within objects, tensors that wrap others, and containers without end."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from judging import judge, precisely
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

from dynamometer.common.checking.checking import Checks
from dynamometer.dynamo.accuracy.changes import change_of
from dynamometer.dynamo.accuracy.expected import are_equal
from dynamometer.dynamo.accuracy.leaves import by_path, collect, keep
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Held:
    """What holds an input, and is no container of torch's."""

    value: torch.Tensor


class OfHeld(nn.Module):
    """Takes its input out of an object."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 8)

    def forward(self, held: Held) -> torch.Tensor:
        """Map `[B, 64]` to `[B, 8]`."""
        y: torch.Tensor = self.layer(held.value)
        return y


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16])
@pytest.mark.parametrize("arm", [lambda module: module, precisely])
def test_inputs_in_objects_are_converted_and_varied(dtype: Dtype, arm: Any) -> None:
    """They have the case's dtype, and rounding is asked of them as of all others."""
    assert isinstance(judge(OfHeld(), Held(torch.randn(4, 64)), arm=arm, dtype=dtype), Checks)


class Scale(nn.Module):
    """Overwrites a buffer of ones by something small, as an observer does."""

    def __init__(self, divisor: float) -> None:
        super().__init__()
        self.layer, self.divisor = nn.Linear(8, 8), divisor
        self.register_buffer("scale", torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 8]` to itself."""
        y: torch.Tensor = self.layer(x)
        self.get_buffer("scale").copy_(y.detach().abs().amax(0) / self.divisor)
        return y


def off_by(factor: float) -> Callable[[nn.Module], Callable[..., Any]]:
    """Return an arm whose buffers are off by a factor."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            found = module(*args)
            for each in module.buffers():
                each.mul_(factor)
            return found

        return call

    return arm


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16])
@pytest.mark.parametrize("divisor", [127.0, 32767.0])
def test_what_is_overwritten_by_something_small_is_compared(
    mode: Mode, dtype: Dtype, divisor: float
) -> None:
    """The change says little of it: it is almost what was there."""
    x = torch.randn(4, 8)
    assert isinstance(judge(Scale(divisor), x, mode=mode, dtype=dtype), Checks)
    wrong = judge(Scale(divisor), x, arm=off_by(1.3), mode=mode, dtype=dtype)
    assert isinstance(wrong, str)
    assert "buffers.scale" in wrong


class Every(nn.Module):
    """Gives twice as much in every fifth call, by what is counted in an object."""

    def __init__(self, counter: Any) -> None:
        super().__init__()
        self.layer, self.counter = nn.Linear(8, 8), counter

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 8]` to itself."""
        if isinstance(self.counter, deque):
            self.counter.append(self.counter.popleft() + 1)
            count = self.counter[0]
        else:
            self.counter.n += 1
            count = self.counter.n
        y: torch.Tensor = self.layer(x)
        return y * 2 if count % 5 == 0 else y


@pytest.mark.parametrize("counter", [SimpleNamespace(n=0), deque([0])])
def test_a_model_that_counts_in_an_object_is_not_blamed_on_an_arm(counter: object) -> None:
    """Eager is asked whether it comes to the same in that call."""
    assert isinstance(judge(Every(counter), torch.randn(4, 8)), Checks)


class Own(torch.Tensor):
    """A tensor with something beside its values."""


def test_tensors_that_wrap_others_are_opened() -> None:
    """Their own operators may compare but one of what they hold."""
    pair = TwoTensor(torch.ones(2), torch.zeros(2))
    found = collect((pair,))
    assert torch.equal(found["output[0].a"].value, torch.ones(2))
    assert torch.equal(found["output[0].b"].value, torch.zeros(2))
    assert list(by_path((pair,), "inputs", is_result=False)) == ["inputs[0]"]
    own = torch.ones(2).as_subclass(Own)
    own.scale = 3  # type: ignore[attr-defined]  # what a user's class may hold
    assert collect(own)["output.scale"].value == 3


def test_lengths_of_rows_are_compared_and_holes_are_not() -> None:
    """Each row is a leaf of its own where there is something between rows."""
    base = torch.randn(3, 4, 2)
    starts, lengths = torch.zeros(3, dtype=torch.long), torch.tensor([2, 1, 3])
    narrowed = torch.nested.narrow(base, 1, starts, lengths, layout=torch.jagged)
    shapes = [tuple(leaf.value.shape) for leaf in collect(narrowed).values()]
    assert shapes == [(2, 2), (1, 2), (3, 2)]


def test_a_large_sparse_result_is_kept_as_it_is_stored() -> None:
    """With all its zeros it would take 160 GB."""
    places = torch.arange(8).view(2, 4)
    size, values = (200_000, 200_000), torch.rand(4)
    found = collect(torch.sparse_coo_tensor(places, values, size, check_invariants=True))
    assert list(found) == ["output.indices()", "output.values()", "output.shape"]


def test_an_iterator_without_end_ends_here() -> None:
    """Of a result it is looked at as far as there is room; of inputs not at all."""
    held = SimpleNamespace(y=torch.ones(2), ids=itertools.count())
    assert "output.ids[9]" in collect(held)
    given = iter([1, 2])
    by_path((given,), "inputs", is_result=False)
    assert list(given) == [1, 2]


def test_arrays_of_several_fields_are_compared_as_a_whole() -> None:
    """One element says nothing of the others."""
    one = np.array([(1, "a"), (2, "b")], dtype=[("n", "i4"), ("t", "U1")])
    other = one.copy()
    assert change_of(one, other) is None
    other["n"][1] = 3
    assert change_of(one, other) is not None


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2], dtype=">i4"),
        np.array([1.5, 2.5], dtype=np.longdouble),
        torch.ones(2, device="meta"),
        np.datetime64("NaT"),
    ],
)
def test_odd_leaves_are_kept_and_equal_to_themselves(value: object) -> None:
    """None of them raises."""
    assert are_equal(keep(value), keep(value))
