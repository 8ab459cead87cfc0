"""Runtimes outside PyTorch compute what eager does, and change what it changes, or refuse."""

from __future__ import annotations

import copy
import importlib
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from graph_cases import Adds, Counts, Net, Several, cases
from torch import nn
from torch.utils._pytree import tree_flatten

from dynamometer.dynamo.backends.unsupported import UnsupportedError

ROOT = Path(__file__).resolve().parents[4]
WHOLE = ["runtimes.onnx_runtime:onnx", "runtimes.openvino_runtime:ov"]
PER_GRAPH = [
    "runtimes.onnx_runtime:onnxrt",
    "runtimes.openvino_runtime:openvino",
    "runtimes.tvm:tvm",
]
CASES = cases()

# What runtimes, and torch.onnx, say of themselves while they are imported or used.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("known_onnx_functions"),
]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()


def load(name: str) -> Any:
    """Return a backend; skip the test where its packages are not installed."""
    module, attribute = name.split(":")
    backend = getattr(importlib.import_module(f"dynamometer.dynamo.backends.{module}"), attribute)
    for package in backend.packages:
        pytest.importorskip(package)
    return backend


def compiled(name: str, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Return a module compiled for inputs like these."""
    return load(name).compile(module, args, kwargs)


def assert_same(found: Any, expected: Any) -> None:
    """Compare structures, types and values."""
    (ours, our_form), (theirs, their_form) = tree_flatten(found), tree_flatten(expected)
    assert our_form == their_form
    for one, two in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, two) if isinstance(two, torch.Tensor) else None
        assert isinstance(two, torch.Tensor) or one == two


@pytest.mark.parametrize("name", [*WHOLE, *PER_GRAPH])
@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_it_computes_what_eager_does(name: str, case: str) -> None:
    """Structures, keyword inputs, kinds of numbers and strides come out as they should, twice."""
    module, args, kwargs = CASES[case]
    module.eval()
    call = compiled(name, copy.deepcopy(module), *args, **kwargs)
    for _ in range(2):
        assert_same(call(*args, **kwargs), module(*args, **kwargs))


@pytest.mark.parametrize("name", [*WHOLE, *PER_GRAPH])
@torch.no_grad()
def test_other_values_give_other_results_and_earlier_ones_stay(name: str) -> None:
    """The caller may keep what it got, whatever is called afterwards."""
    module = Net().eval()
    one, two = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)
    call = compiled(name, module, one)
    first, second = call(one), call(two)
    assert_same((first, second), (module(one), module(two)))
    one.zero_()
    assert_same(call(one), module(one))


@pytest.mark.parametrize("name", [*WHOLE, *PER_GRAPH])
@torch.no_grad()
def test_outputs_alias_as_in_eager(name: str) -> None:
    """An input given back is the input, its view a view, and what is given twice is one."""
    module, (x,), _ = CASES["aliases"]
    same, view, product, transposed, again = compiled(name, module, x)(x)
    assert same is x
    assert view.data_ptr() == x[1:].data_ptr()
    assert again is product
    assert transposed.data_ptr() == product.data_ptr()


class Parts(nn.Module):
    """Gives parts of its input and of what it makes of that, which are views."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Take apart."""
        made = x * 2
        return (*x.chunk(2), *x.split(3), x.unbind(0)[1], made, *made.chunk(2))


@pytest.mark.parametrize("name", [*WHOLE, *PER_GRAPH])
@torch.no_grad()
def test_views_that_come_in_lists_are_views(name: str) -> None:
    """They came out as tensors of their own: what was written to them later was lost."""
    x = torch.arange(8.0).reshape(4, 2)
    expected, found = Parts()(x), compiled(name, Parts(), x)(x)
    assert_same(found, expected)
    own = x.untyped_storage().data_ptr()
    assert [each.untyped_storage().data_ptr() == own for each in found] == [
        each.untyped_storage().data_ptr() == own for each in expected
    ]
    made, first = found[5], found[6]
    first.zero_()
    assert made[:2].eq(0).all()


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
@torch.no_grad()
def test_recurrent_layers_draw_nothing_in_inference(name: str, layer: Any) -> None:
    """Their operators may drop out, and were refused as if they did."""
    module, x = layer(4, 5, batch_first=True).eval(), torch.randn(2, 3, 4)
    assert_same(compiled(name, module, x)(x), module(x))


class Spreads(nn.Module):
    """Asks how far numbers spread, by dimension and over all of them."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute."""
        return x.std(), x.var(), x.var(unbiased=False), x.std(0), *torch.var_mean(x)


@pytest.mark.parametrize("name", [*WHOLE, *PER_GRAPH])
@torch.no_grad()
def test_variances_over_all_dimensions(name: str) -> None:
    """OpenVINO divided by n where no dimension was named."""
    x = torch.randn(3, 4)
    assert_same(compiled(name, Spreads(), x)(x), Spreads()(x))


class Divides(nn.Module):
    """Divides a number by a tensor."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Round down."""
        return 7 // x, -7 // x, x // 2


@pytest.mark.parametrize(
    "name", ["runtimes.openvino_runtime:ov", "runtimes.openvino_runtime:openvino"]
)
@torch.no_grad()
def test_a_number_that_is_divided_by_a_tensor(name: str) -> None:
    """What rounds down took it for a tensor, as torch's own exporter to ONNX does."""
    x = torch.tensor([-3, 2, 4])
    assert_same(compiled(name, Divides(), x)(x), Divides()(x))


@pytest.mark.parametrize("name", [*WHOLE, *PER_GRAPH])
@torch.no_grad()
def test_inputs_are_changed_in_place(name: str) -> None:
    """What the model does to its inputs is done to the caller's tensor."""
    x, expected = torch.zeros(4, 3), torch.zeros(4, 3)
    call = compiled(name, Adds(), x.clone())
    for _ in range(2):
        assert_same((call(x), x), (Adds()(expected), expected))


class Floors(nn.Module):
    """Rounds quotients of whole numbers down, in each of the ways there are."""

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> list[torch.Tensor]:
        """Divide."""
        down = torch.div(one, other, rounding_mode="floor")
        zero = torch.div(one, other, rounding_mode="trunc")
        return [one // other, one // 2, down, zero, one % other, one.float() // 2]


@pytest.mark.parametrize("name", [*WHOLE, *PER_GRAPH])
@torch.no_grad()
def test_negative_quotients_are_rounded_down(name: str) -> None:
    """OpenVINO rounds them towards zero."""
    one = torch.tensor([-7, 7, -8, 8, -1, 0, -128, -127, 127], dtype=torch.int8)
    given = (one, torch.tensor([2, -2, 3, -3, 5, 5, 3, 7, -7], dtype=torch.int8))
    assert_same(compiled(name, Floors(), *given)(*given), Floors()(*given))


class AddsToOne(nn.Module):
    """Changes an input, and reads another."""

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Change the one first."""
        one.add_(1)
        return other * 2


@pytest.mark.parametrize("name", WHOLE)
@torch.no_grad()
def test_inputs_that_share_memory_are_refused_at_any_call(name: str) -> None:
    """The program reads all of them before it changes one."""
    call = compiled(name, AddsToOne(), torch.ones(4), torch.ones(4))
    x = torch.ones(4)
    with pytest.raises(UnsupportedError, match="share memory"):
        call(x, x.view(4))
    assert_same(call(x, torch.ones(4)), torch.full((4,), 2.0))


@pytest.mark.parametrize("name", [*WHOLE, *PER_GRAPH])
@torch.no_grad()
def test_buffers_are_changed_in_place(name: str) -> None:
    """What the model counts goes on, and so does what someone else writes there."""
    ours, theirs, x = Counts(), Counts(), torch.ones(3)
    call = compiled(name, ours, x)
    for _ in range(2):
        assert_same((call(x), ours.count), (theirs(x), theirs.count))
    ours.count.fill_(10)
    theirs.count.fill_(10)
    assert_same(call(x), theirs(x))


@pytest.mark.parametrize("name", PER_GRAPH)
@torch.no_grad()
def test_written_weights_are_followed(name: str) -> None:
    """A graph whose weights were written to computes with the new ones."""
    module, x = nn.Linear(3, 2), torch.randn(4, 3)
    call = compiled(name, module, x)
    call(x)
    module.weight.mul_(2)
    assert_same(call(x), module(x))


class Layers(nn.Module):
    """Two layers of one code, each a graph by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute something in three graphs."""
        for layer in self.layers:
            torch._dynamo.graph_break()
            x = layer(x)
        return x


@pytest.mark.parametrize("name", PER_GRAPH)
@torch.no_grad()
def test_a_graph_of_several_layers_has_each_ones_weights(name: str) -> None:
    """Dynamo may use one graph for all layers."""
    module, x = Layers(), torch.randn(4, 3)
    call = compiled(name, module, x)
    assert_same((call(x), call(x)), (module(x), module(x)))


class Scales(nn.Module):
    """Takes a number."""

    def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        """Compute something."""
        return x * scale


class Turns(nn.Module):
    """Gives a view of an input, which may be used for nothing else, and something computed."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute something."""
        return x.t(), y + 1


class Sized(nn.Module):
    """Computes with a size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute something."""
        return x.reshape(x.shape[0] * 3) * x.shape[0]


@pytest.mark.parametrize("name", PER_GRAPH)
@torch.no_grad()
def test_sizes_may_vary(name: str) -> None:
    """A graph of Dynamo with sizes for inputs serves each of them."""
    call = torch.compile(Sized(), backend=load(name).compiler, dynamic=True)
    for size in (4, 5, 6, 4):
        x = torch.randn(size, 3)
        assert_same(call(x), Sized()(x))


@pytest.mark.parametrize("name", WHOLE)
@torch.no_grad()
def test_other_inputs_than_it_was_exported_for_are_refused(name: str) -> None:
    """Another size, dtype or structure is an error, and no wrong result."""
    one, two = torch.randn(4, 3), torch.randn(4, 3)
    call = compiled(name, Several(), (one, two), scale=torch.ones(3))
    with pytest.raises(ValueError, match=r"of torch.float32 \(3,\), not of torch.float32 \(1,\)"):
        call((one, two), scale=torch.ones(1))
    with pytest.raises(ValueError, match=r"not of torch\.float64"):
        call((one.double(), two), scale=torch.ones(3))
    with pytest.raises(ValueError, match="exported for inputs"):
        call((one, two, one), scale=torch.ones(3))
    call = compiled(name, Scales(), one, math.nan)
    assert bool(call(two, math.nan).isnan().all())
    with pytest.raises(ValueError, match=r"input 1 = nan, not 1\.0"):
        call(two, 1.0)


@pytest.mark.parametrize("name", WHOLE)
@torch.no_grad()
def test_other_strides_are_refused_where_a_result_is_a_view(name: str) -> None:
    """It would be a view of other elements; a copy has those of eager."""
    given, other = torch.randn(3, 3), torch.randn(3, 3)
    for second in (given, other):
        call = compiled(name, Turns(), given, second)
        first = given + 1
        again = first if second is given else other
        assert_same(call(first, again), Turns()(first, again))
        for odd in (given.t(), torch.randn(6, 6)[::2, ::2], torch.randn(4, 3)):
            with pytest.raises(ValueError, match=r"was exported for input \d of .*, not of"):
                call(odd, odd if second is given else other)


@pytest.mark.parametrize("name", WHOLE)
@torch.no_grad()
def test_complex_numbers_are_refused(name: str) -> None:
    """The error names the runtime and the dtype."""
    with pytest.raises(UnsupportedError, match=r"takes no tensors of torch.complex64"):
        compiled(name, Adds(), torch.ones(3, dtype=torch.complex64))


@pytest.mark.parametrize("name", WHOLE)
@torch.no_grad()
def test_random_numbers_are_refused(name: str) -> None:
    """A runtime's random numbers would be others than eager's."""
    with pytest.raises(UnsupportedError, match="draws random numbers"):
        compiled(name, nn.Dropout().train(), torch.ones(3))


@pytest.mark.parametrize("name", WHOLE)
def test_training_is_refused(name: str) -> None:
    """Nothing is computed for which there would be no gradients."""
    with pytest.raises(UnsupportedError, match="computes no gradients"):
        compiled(name, nn.Linear(3, 3), torch.ones(3))


@torch.no_grad()
def test_onnx_runtime_reads_large_weights_where_they_are() -> None:
    """A table that the runtime doesn't pack anew is PyTorch's: a change of it is seen."""
    module, index = nn.Embedding(1000, 8), torch.arange(4)
    call = compiled("runtimes.onnx_runtime:onnx", module, index)
    module.weight.zero_()
    assert not call(index).any()


TWO_COME_AND_GO = """
import faulthandler, gc, signal
import torch
from dynamometer.dynamo.backends.runtimes.openvino_runtime import ov
faulthandler.enable()
with torch.no_grad():
    made = [ov.compile(torch.nn.Linear(3, 3), (torch.ones(2, 3),), {}) for _ in range(2)]
    print(*(tuple(each(torch.ones(2, 3)).shape) for each in made))
while made:
    del made[0]
    gc.collect()
signal.signal(signal.SIGINT, lambda *_: print("handled"))
signal.raise_signal(signal.SIGINT)
"""


def test_signals_can_be_handled_after_openvino() -> None:
    """Its plugins change the stack that signals are handled on; in a process of its own."""
    load("runtimes.openvino_runtime:ov")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TWO_COME_AND_GO],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "(2, 3) (2, 3)\nhandled\n"), done.stderr
