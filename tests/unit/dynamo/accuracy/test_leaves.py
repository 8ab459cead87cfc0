from __future__ import annotations

import enum
import functools
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from dynamometer.dynamo.accuracy.leaves import by_path, collect

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Output:
    """What a model may return."""

    logits: object
    loss: object = None


class ModelOutput(OrderedDict[str, Any]):
    """A mapping with attributes, as transformers returns."""


class Layer:
    """One layer of a key-value cache."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Hold the tensors."""
        self.keys, self.values = keys, values


class Cache:
    """A key-value cache, as transformers has."""

    def __init__(self, *layers: Layer) -> None:
        """Hold the layers."""
        self.layers = layers


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("__hidden", "mean", "unset")

    def __init__(self, mean: torch.Tensor) -> None:
        """Leave one slot empty."""
        self.mean = mean
        self.__hidden = mean


class Posterior:
    """A callable that holds a tensor."""

    def __init__(self, mean: torch.Tensor) -> None:
        """Hold it."""
        self.mean = mean

    def __call__(self) -> torch.Tensor:
        """Return it."""
        return self.mean


class Knot:
    """An object that holds itself."""

    def __init__(self) -> None:
        """Tie it."""
        self.x, self.self = X, self


class Colour(enum.Enum):
    """A closed set."""

    RED = 1


X = torch.tensor([1.0, -2.0, 3.0])


@pytest.mark.parametrize(
    ("make", "paths"),
    [
        (lambda: X, ["output"]),
        (lambda: (X, X), ["output[0]", "output[1]"]),
        (lambda: [X, (X,)], ["output[0]", "output[1][0]"]),
        (lambda: deque([X]), ["output[0]"]),
        (lambda: {"a": X, "b": {"c": X}}, ["output.a", "output.b.c"]),
        (lambda: {1: X}, ["output[1]"]),
        ({"a": torch.ones(3)}.values, ["output[0]"]),
        ({"a": torch.ones(3)}.items, ["output[0][0]", "output[0][1]"]),
        (lambda: (each for each in (X, X)), ["output[0]", "output[1]"]),
        (lambda: iter([X]), ["output[0]"]),
        (lambda: map(torch.relu, [X]), ["output[0]"]),
        (lambda: {"a.b": X, "a": {"b": X}}, ["output.a.b", "output.a.b (2)"]),
        (lambda: ModelOutput(logits=X), ["output.logits"]),
        (lambda: Output(X, loss=1.0), ["output.logits", "output.loss"]),
        (lambda: Output(X), ["output.logits"]),
        (lambda: Slotted(X), ["output._Slotted__hidden", "output.mean"]),
        (lambda: Posterior(X), ["output.mean"]),
        (Knot, ["output.x"]),
        (lambda: Colour.RED, ["output"]),
        (lambda: (None, X), ["output[1]"]),
        (lambda: "text", ["output"]),
        (lambda: Cache(Layer(X, X)), ["output.layers[0].keys", "output.layers[0].values"]),
        (
            lambda: torch.nested.nested_tensor([X, X[:2]], layout=torch.jagged),
            ["output.values()", "output.offsets()"],
        ),
        (lambda: None, []),
        (lambda: (), []),
    ],
)
def test_leaves_have_paths(make: Callable[[], object], paths: list[str]) -> None:
    """Every leaf is named as one would write it in Python, and none hides another."""
    assert list(collect(make())) == paths


def test_leaves_are_copies_of_their_own() -> None:
    """A later call that writes to the memory of an output changes nothing that was kept."""
    tree = {"a": X.clone(), "b": np.array([1.0, 2.0])}
    kept = collect(tree)
    tree["a"].zero_()
    tree["b"][:] = 0
    assert kept["output.a"].value.tolist() == X.tolist()
    assert kept["output.b"].value.tolist() == [1.0, 2.0]
    assert by_path(tree, "output")["output.a"] is tree["a"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (X, "shape (3,) of torch.float32"),
        (X.expand(2, 3), "shape (2, 3) of torch.float32 with strides (0, 1)"),
        (
            torch.rand(3, 4).t().contiguous().t(),
            "shape (3, 4) of torch.float32 with strides (1, 3)",
        ),
        (torch.rand(1, 5, 1).transpose(0, 2), "shape (1, 5, 1) of torch.float32"),
        (torch.eye(2).to_sparse(), "shape (2, 2) of torch.float32, torch.sparse_coo"),
        (np.arange(2), "array of shape (2,) of int64"),
        (2.5, "float"),
        (True, "bool"),
        ("text", "str"),
    ],
)
def test_kinds(value: object, kind: str) -> None:
    """Strides are part of what a tensor is; a dimension of one element has none to speak of."""
    assert collect(value)["output"].kind == kind


@pytest.mark.parametrize(
    "value",
    [
        torch.eye(2).to_sparse(),
        torch.tensor([1 + 2j]).conj(),
        torch.rand(3).to(torch.float8_e4m3fn),
        np.array([3.0, 2.0])[::-1],
        np.array([1 + 1j]),
        np.float32(2.5),
        1 + 2j,
    ],
)
def test_whatever_holds_numbers_is_kept_as_a_dense_tensor(value: object) -> None:
    """So that one rule compares all of it."""
    kept = collect(value)["output"].value
    assert isinstance(kept, torch.Tensor)
    assert kept.layout is torch.strided
    assert kept.dtype in {torch.float32, torch.float64}


def test_arrays_of_text_are_kept() -> None:
    """They are no tensors, and compared as lists."""
    assert collect(np.array(["a", "b"]))["output"].value == ["a", "b"]


class Metres(float):
    """A number with a dictionary of its own, which is empty."""


def test_an_object_without_attributes_is_a_leaf() -> None:
    """It is compared, or said not to be."""
    assert collect(Metres(2.5))["output"].value == 2.5
    assert not collect(functools.partial(torch.relu))["output"].is_comparable


@pytest.mark.parametrize("value", [object(), lambda: 1, {object()}, torch.nn.ReLU()])
def test_what_has_no_equality_is_said_to_have_none(value: object) -> None:
    """Two of them can be told apart by identity alone."""
    assert not collect(value)["output"].is_comparable


@pytest.mark.parametrize("value", [7, "text", torch.Size([2]), {1, 2}, Colour.RED, torch.int8, int])
def test_what_has_an_equality_is_compared_by_it(value: object) -> None:
    """Numbers, text and sets of them."""
    assert all(each.is_comparable for each in collect(value).values())
