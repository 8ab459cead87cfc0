"""Models that compute something else, or on other inputs, have other keys."""

from __future__ import annotations

import copy
import functools
import operator
import os
import re
import subprocess
import sys
from collections import UserDict
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn

from dynamometer.dynamo.ensemble.model_key import model_key

if TYPE_CHECKING:
    from collections.abc import Callable

X = torch.ones(2, 3)


def key(forward: Callable[[nn.Module, torch.Tensor], torch.Tensor], x: torch.Tensor = X) -> str:
    """Return the key of a model with some `forward`, as of a class that is called the same."""
    return model_key(type("Made", (nn.Module,), {"forward": forward})(), (x,), {})


def test_equal_models_have_equal_keys() -> None:
    """Made twice; what was drawn for their weights is not in it."""
    made = [nn.Sequential(nn.Linear(3, 4), nn.ReLU()) for _ in range(2)]
    assert model_key(made[0], (X,), {}) == model_key(made[1], (X + 1,), {})


@pytest.mark.parametrize(
    "other",
    [
        lambda self, x: x.cos() * 2.0,
        lambda self, x: x.sin() * 3.0,
        lambda self, x: x.sin() + 2.0,
        lambda self, x: torch.stack([each.sin() * 2.0 for each in x]),
    ],
)
def test_another_forward_is_another_model(
    other: Callable[[nn.Module, torch.Tensor], torch.Tensor],
) -> None:
    """Also where its bytecode differs in what it has by number alone: names and constants."""
    assert key(other) != key(lambda self, x: x.sin() * 2.0)


class Call:
    """What a model is called with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Keep it."""
        self.args, self.kwargs = args, kwargs


def test_a_step_of_other_calls_is_another_model() -> None:
    """Of as many, in the same order, with inputs of the same kinds, it is the same."""
    module, two = nn.Linear(3, 4), torch.ones(5, 3)

    def key_of(*others: Call) -> str:
        return model_key(module, (X,), {}, others)

    assert key_of() == model_key(module, (X,), {})
    assert key_of(Call(two)) == key_of(Call(two + 1))
    steps = [(), (Call(two),), (Call(X),), (Call(input=two),), (Call(two), Call(X)),
             (Call(X), Call(two))]  # fmt: skip
    assert len({key_of(*each) for each in steps}) == len(steps)


def nested(name: str) -> Callable[[nn.Module, torch.Tensor], torch.Tensor]:
    """Make a `forward` whose work is done by a function within it."""
    source = (
        f"def forward(self, x):\n    def inner(y):\n        return y.{name}()\n    return inner(x)"
    )
    found: dict[str, Any] = {}
    exec(source, found)
    forward: Callable[[nn.Module, torch.Tensor], torch.Tensor] = found["forward"]
    return forward


def decorated(
    forward: Callable[[nn.Module, torch.Tensor], torch.Tensor],
) -> Callable[[nn.Module, torch.Tensor], torch.Tensor]:
    """Wrap a `forward`, as transformers does."""

    @functools.wraps(forward)
    def call(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return forward(self, x)

    return call


def test_a_change_deep_inside_is_a_change() -> None:
    """Within a nested function, or under a decorator."""
    assert key(nested("sin")) == key(nested("sin"))
    assert key(nested("sin")) != key(nested("cos"))
    assert key(decorated(nested("sin"))) != key(decorated(nested("cos")))


class Repeats(nn.Module):
    """Does the same several times, which is in an attribute and a default alone."""

    def __init__(self, times: object) -> None:
        """Keep how often."""
        super().__init__()
        self.times = times
        self.inner = nn.Linear(3, 3)

    def forward(self, x: Any, other: object = None) -> torch.Tensor:
        """Add up."""
        del other
        return self.inner(x)


@dataclass
class Config:
    """What a model may be set by."""

    times: int


def of_closure(times: int) -> nn.Module:
    """Make a model whose `forward` refers to a variable of this function."""
    return type("Made", (nn.Module,), {"forward": lambda self, x: [x for _ in range(times)]})()


def of_default(times: int) -> nn.Module:
    """Make a model whose `forward` has a default."""
    return type("Made", (nn.Module,), {"forward": lambda self, x, n=times: [x] * n})()


def of_helper(name: str) -> nn.Module:
    """Make a model that calls another method, which calls a function of the same file."""
    source = (
        f"def helper(x):\n    return x.{name}()\n"
        "def work(self, x):\n    return helper(x)\n"
        "def forward(self, x):\n    return self.work(x)"
    )
    found: dict[str, Any] = {"__name__": "some_file"}
    exec(source, found)
    methods = {each: found[each] for each in ("work", "forward")}
    return type("Made", (nn.Module,), methods)()


def of_class_attribute(times: int) -> nn.Module:
    """Make a model that has a number of its class."""
    return type("Made", (nn.Module,), {"times": times, "forward": lambda self, x: x})()


def changed(change: Callable[[Repeats], object]) -> nn.Module:
    """Make a model, and change it."""
    model = Repeats(1)
    change(model)
    return model


def set_forward(model: Repeats) -> None:
    """Give a model a `forward` of its own, that refers to the model."""
    model.forward = lambda x: model.inner(x) * 2  # type: ignore[method-assign]


PAIRS = {
    "attribute": (Repeats(1), Repeats(2)),
    "text": (Repeats("a"), Repeats("b")),
    "object": (Repeats(Config(1)), Repeats(Config(2))),
    "nested": (Repeats([{"a": (1, 2)}]), Repeats([{"a": (1, 3)}])),
    "set": (Repeats({"a", "b"}), Repeats({"a", "c"})),
    "hidden module": (Repeats([nn.Softmax(0)]), Repeats([nn.Softmax(1)])),
    "partial": (Repeats(functools.partial(max, 1)), Repeats(functools.partial(max, 2))),
    "closure": (of_closure(1), of_closure(2)),
    "default": (of_default(1), of_default(2)),
    "helper": (of_helper("sin"), of_helper("cos")),
    "attribute of the class": (of_class_attribute(1), of_class_attribute(2)),
    "own forward": (Repeats(1), changed(set_forward)),
    "hook": (
        Repeats(1),
        changed(lambda made: made.inner.register_forward_hook(lambda *given: given[2] * 2)),
    ),
    "number in hexadecimal": (Repeats("0x1f"), Repeats("0x2f")),
    "operator": (Repeats(torch.ops.aten.relu.default), Repeats(torch.ops.aten.sigmoid.default)),
    "operators": (Repeats(torch.ops.aten.relu), Repeats(torch.ops.aten.sigmoid)),
    "method of a class": (Repeats(torch.Tensor.relu), Repeats(torch.Tensor.sigmoid)),
    "function of arrays": (Repeats(np.sin), Repeats(np.cos)),
    "item": (Repeats(operator.itemgetter(0)), Repeats(operator.itemgetter(1))),
    "pattern": (Repeats(re.compile("a")), Repeats(re.compile("b"))),
    "cached": (Repeats(functools.cache(nested("sin"))), Repeats(functools.cache(nested("cos")))),
    "bytes": (Repeats(bytearray(b"a")), Repeats(bytearray(b"b"))),
    "dictionary of users": (Repeats(UserDict(a=1)), Repeats(UserDict(a=2))),
    "nested tensor": (
        Repeats(torch.nested.nested_tensor([torch.ones(2), X[0]], layout=torch.jagged)),
        Repeats(torch.nested.nested_tensor([torch.ones(4), X[0]], layout=torch.jagged)),
    ),
    "heads": (nn.MultiheadAttention(64, 1), nn.MultiheadAttention(64, 64)),
}
"""Models that differ in what no weight and no `extra_repr` shows."""


FILE = """
import collections, enum, functools, torch, torch.nn as nn, torch.nn.functional as F
from dataclasses import dataclass
TOP
class Net(nn.Module):
    CLASS
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
    def forward(self, x):
        return BODY
"""
ACTING = "class Own(nn.Module):\n    def forward(self, x): return x.{}()\nA = Own()"
FUNCTION = (
    "class A(torch.autograd.Function):\n    @staticmethod\n    def forward(c, x): return x.{}()"
)
HELPER = "class A:\n    def f(self, x): return x.{}()"
IN_FILES = {
    "dictionary": ("A = {'k': 1}", "A = {'k': 2}", "x * A['k']"),
    "nested": ("A = {'k': [{1}]}", "A = {'k': [{2}]}", "x * len(A['k'])"),
    "tuple": ("A = (1,)", "A = (2,)", "x * A[0]"),
    "deque": ("A = collections.deque([1])", "A = collections.deque([2])", "x * A[0]"),
    "many items": ("A = list(range(20_000))", "A = list(range(20_001))", "x * A[0]"),
    "dtype": ("A = torch.half", "A = torch.bfloat16", "x.to(A)"),
    "torch's function": ("A = torch.relu", "A = torch.sigmoid", "A(x)"),
    "torch's Python function": ("A = F.relu", "A = F.silu", "A(x)"),
    "operator": ("A = torch.ops.aten.relu", "A = torch.ops.aten.silu", "A(x)"),
    "module": ("A = nn.ReLU()", "A = nn.Sigmoid()", "A(x)"),
    "set module": ("A = nn.Softmax(0)", "A = nn.Softmax(1)", "A(x)"),
    "own module": (ACTING.format("sin"), ACTING.format("cos"), "A(x)"),
    "modules": ("A = {1: nn.ReLU()}", "A = {1: nn.Sigmoid()}", "A[1](x)"),
    "function of autograd": (FUNCTION.format("sin"), FUNCTION.format("cos"), "A.apply(x)"),
    "class": (HELPER.format("sin"), HELPER.format("cos"), "A().f(x)"),
    "instance": (
        "@dataclass\nclass C:\n    n: int\nA = C(1)", "@dataclass\nclass C:\n    n: int\nA = C(2)",
        "x * A.n",
    ),
    "cached": (
        "@functools.lru_cache\ndef A(x): return x.sin()",
        "@functools.lru_cache\ndef A(x): return x.cos()", "A(x)",
    ),
    "partial": (
        "def f(x, n): return x.sin()\nA = functools.partial(f, n=1)",
        "def f(x, n): return x.cos()\nA = functools.partial(f, n=1)", "A(x)",
    ),
    "class's dictionary": ("class: A = {1: 1}", "class: A = {1: 2}", "x * self.A[1]"),
    "class's list": ("class: A = [1]", "class: A = [2]", "x * self.A[0]"),
    "class's function": ("class: A = torch.relu", "class: A = torch.sigmoid", "self.A(x)"),
}  # fmt: skip
"""What is in a file beside a model's class, in two states, and what its `forward` does with it."""


def in_file(beside: str, body: str) -> nn.Module:
    """Make the model of a file that has something beside its class, or in it."""
    top, own = ("", beside[7:]) if beside.startswith("class: ") else (beside, "pass")
    file = ModuleType("of_a_user")
    sys.modules[file.__name__] = file
    try:
        source = FILE.replace("TOP", top).replace("CLASS", own).replace("BODY", body)
        exec(compile(source, "of_a_user.py", "exec"), vars(file))
        model: nn.Module = file.Net()
    finally:
        del sys.modules[file.__name__]
    return model


@pytest.mark.parametrize("name", IN_FILES)
def test_what_functions_find_in_their_file_counts(name: str) -> None:
    """A model that is edited there is another one; loaded again, or copied, it is the same."""
    *states, body = IN_FILES[name]
    made = [in_file(state, body) for state in states]
    keys = [model_key(each, (X,), {}) for each in made]
    assert keys[0] != keys[1]
    assert keys == [model_key(copy.deepcopy(each), (X,), {}) for each in made]
    assert keys == [model_key(in_file(state, body), (X,), {}) for state in states]


def test_what_other_files_define_does_not_count() -> None:
    """Of a class or function of theirs, and of modules."""
    keys = {
        model_key(in_file(f"from {file} import {name} as A", "A"), (X,), {})
        for file, name in (("fractions", "Fraction"), ("decimal", "Decimal"), ("os", "path"))
    }
    assert len(keys) == 1


def test_files_that_refer_to_themselves_have_keys() -> None:
    """A dictionary in itself, and a model that its own `forward` finds."""
    for top in ("A = {}\nA['A'] = A", "A = []\nA.append(A)"):
        assert model_key(in_file(top, "A"), (X,), {}) == model_key(in_file(top, "A"), (X,), {})
    models = [in_file("A = []", "A[0](x)") for _ in range(2)]
    for each in models:
        type(each).forward.__globals__["A"].append(each)
    keys = {model_key(each, (X,), {}) for each in (*models, copy.deepcopy(models[0]))}
    assert len(keys) == 1


@pytest.mark.parametrize("name", PAIRS)
def test_models_that_run_other_graphs_have_other_keys(name: str) -> None:
    """Or the second would be given what was decided for the first, and never be timed."""
    one, other = PAIRS[name]
    assert model_key(one, (X,), {}) != model_key(other, (X,), {})


@pytest.mark.parametrize("name", PAIRS)
def test_a_copy_has_the_key_of_what_was_copied(name: str) -> None:
    """A model is recorded, and a copy of it is compiled; weights of other values don't matter."""
    for each in PAIRS[name]:
        copied = copy.deepcopy(each)
        for weight in copied.parameters():
            weight.data.add_(1)
        assert model_key(copied, (X,), {}) == model_key(each, (X,), {})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (([X, X], [X]), ([X], [X, X])),
        (({"a": X}, None), ({"b": X}, None)),
        (([X], None), ((X,), None)),
        ((X, Config(1)), (X, Config(2))),
        ((X, X), (X, X.clone())),
    ],
)
def test_how_inputs_are_nested_counts(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    """Which containers there are, their keys, and whether a tensor is given twice."""
    assert model_key(Repeats(1), one, {}) != model_key(Repeats(1), other, {})


def test_numbers_of_hooks_are_not_in_a_key() -> None:
    """Hooks have numbers that go up in a process; an older one of another model changes nothing."""
    keys = set()
    for _ in range(2):
        model = nn.Linear(3, 3)
        model.register_forward_hook(twice)
        keys.add(model_key(model, (X,), {}))
    assert len(keys) == 1


def twice(module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
    """Double what a module gives."""
    return output * 2


def test_a_captured_program_has_one_key() -> None:
    """Its class is made anew for each copy."""
    program = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    other = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.Sigmoid()))
    keys = [model_key(each, (X,), {}) for each in (program, copy.deepcopy(program), other)]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.slow
def test_a_key_is_the_same_in_every_process() -> None:
    """Whatever order a set has in it, and whatever hash a text."""
    code = (
        "import torch\n"
        "from dynamometer.dynamo.ensemble.model_key import model_key\n"
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.names, self.text_hash = {'one', 'two', 'three'}, hash('one')\n"
        "        self.call, self.held = print, object()\n"
        "    def forward(self, x):\n"
        "        return x if str(x.dtype) in {'one', 'two', 'three', 'four'} else -x\n"
        "print(model_key(Model(), (torch.ones(2),), {}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in (1, 2)
    }  # fmt: skip
    assert len(found) == 1


@pytest.mark.parametrize("x", [torch.ones(2, 4), torch.ones(3, 2).T, torch.ones(2, 3).double()])
def test_inputs_of_another_kind_make_another_key(x: torch.Tensor) -> None:
    """Their sizes, strides and dtypes count."""

    def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x

    assert key(forward, x) != key(forward)


class Secretive:
    """Doesn't tell what it is."""

    @property
    def __class__(self) -> type:  # type: ignore[override]  # it raises whatever it is asked
        """Fail."""
        raise RuntimeError


HOSTILE = {
    "digits": 10**5000,
    "class": Secretive(),
    "jagged": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "lazy": nn.LazyLinear(3),
    "surrogate": {"\udc80": "\udc80"},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cant_be_read_fails_no_model(name: str) -> None:
    """Its class' name is known at least."""
    held = Repeats([HOSTILE[name]])
    assert model_key(held, (X,), {}) == model_key(held, (X,), {}) != key(nested("sin"))
    assert model_key(nn.LazyLinear(3), (X,), {})


def test_a_dictionary_that_is_only_read() -> None:
    """It can't be copied, and has what is in it."""
    read = [Repeats(MappingProxyType({"a": each})) for each in (1, 2, 1)]
    keys = [model_key(each, (X,), {}) for each in read]
    assert keys[0] == keys[2] != keys[1]


class Scaled(nn.Module):
    """Can be scripted."""

    def __init__(self, by: int) -> None:
        """Keep the number."""
        super().__init__()
        self.by = by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        return self.work(x) * self.by

    def work(self, x: torch.Tensor) -> torch.Tensor:
        """Do a part of it."""
        return x + 1


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_scripted_and_traced_modules_have_keys() -> None:
    """By what they compute, as copies do; a model may hold them."""
    scripts = [torch.jit.script(Scaled(2)), torch.jit.script(Scaled(3))]
    traces = [torch.jit.trace(each, X) for each in (Scaled(2), nn.ReLU())]
    made = [*scripts, *traces, nn.Sequential(scripts[0]), nn.Sequential(scripts[1])]
    keys = [model_key(each, (X,), {}) for each in made]
    assert len(set(keys)) == len(made)
    assert keys == [model_key(copy.deepcopy(each), (X,), {}) for each in made]


def test_modes_are_told_apart() -> None:
    """Training, inference, and whether gradients are recorded."""
    model = nn.Linear(3, 3)
    keys = {model_key(model, (X,), {}), model_key(model.eval(), (X,), {})}
    with torch.no_grad():
        keys.add(model_key(model, (X,), {}))
    assert len(keys) == 3


class Stacked(nn.Module):
    """Calls some layers one after the other, which may be the same one."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute something."""
        for each in self.layers:
            x = each(x)
        return x


def _tied(to: int) -> nn.Module:
    layers = [nn.Linear(3, 3, bias=False) for _ in range(3)]
    layers[2].weight = layers[to].weight
    return Stacked([*layers])


def test_what_is_shared_counts() -> None:
    """How often a layer stands in a model, and which layers have one weight."""
    layer = nn.Linear(3, 3)
    made = [Stacked([layer] * count) for count in (1, 2, 12)]
    made += [Stacked([nn.Linear(3, 3), nn.Linear(3, 3)]), _tied(0), _tied(1)]
    made += [Stacked([Stacked([layer] * count)]) for count in (2, 3)]
    keys = [model_key(each, (X,), {}) for each in made]
    assert len(set(keys)) == len(keys)
    assert [model_key(copy.deepcopy(each), (X,), {}) for each in made] == keys


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [([1, 2], [4, 8], False), ([True, False], [False, True], False), ([1.0], [2.0], True)],
)
def test_whole_numbers_of_an_array_count(one: list[Any], other: list[Any], *, same: bool) -> None:
    """They may be sizes; others are taken for weights."""

    def made(values: list[Any]) -> str:
        module = nn.Linear(3, 3)
        module.sizes = np.array(values)  # type: ignore[assignment]  # no tensor
        return model_key(module, (X,), {})

    assert (made(one) == made(other)) is same


def test_arrays_that_are_given_are_as_tensors() -> None:
    """Another seed gives others."""
    module = nn.Linear(3, 3)
    keys = [
        model_key(module, (np.array(each),), {}) for each in ([1, 2], [3, 4], [1, 2, 3], [1.0, 2.0])
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
