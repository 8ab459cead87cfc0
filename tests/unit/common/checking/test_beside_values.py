"""What a wrong arm gets right by luck: memory, random numbers, structure, settings, other kinds."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from judging import judge, reservations_of
from torch import nn

from dynamometer.common.checking.checking import Checks
from dynamometer.dynamo import state
from dynamometer.dynamo.backends.backends import aot_eager
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    Forward = Callable[..., Any]
    Arm = Callable[[nn.Module], Forward]

ROW = (8, 16)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Give models and inputs the same numbers in every order of tests."""
    torch.manual_seed(0)


class Calls(nn.Module):
    """Hands what a linear layer gives to a function."""

    def __init__(self, of: Callable[[torch.Tensor], Any], outputs: int = 16) -> None:
        super().__init__()
        self.layer, self.of = nn.Linear(16, outputs), of

    def forward(self, x: torch.Tensor) -> Any:
        """Return what the function makes of the layer's output."""
        return self.of(self.layer(x))


def plain() -> nn.Module:
    """Return a layer alone."""
    return Calls(lambda y: y)


def giving(change: Callable[[Any], Any]) -> Arm:
    """Return an arm that changes results."""
    return lambda module: lambda *args: change(module(*args))


def doing(act: Callable[[nn.Module], object]) -> Arm:
    """Return an arm that does something else, too, after each call."""

    def arm(module: nn.Module) -> Forward:
        def call(*args: Any) -> Any:
            found = module(*args)
            act(module)
            return found

        return call

    return arm


# Memory


def reading_the_first(module: nn.Module) -> Forward:
    """Read the tensors of the first call for ever, as a graph replayed without its copies does."""
    kept: list[tuple[Any, ...]] = []

    def call(*args: Any) -> Any:
        kept.append(args)
        return module(*kept[0])

    return call


@pytest.mark.parametrize("mode", Mode)
def test_whoever_reads_the_tensors_of_the_first_call_is_found(mode: Mode) -> None:
    """New inputs lie elsewhere."""
    found = judge(plain(), torch.randn(*ROW), mode=mode, arm=reading_the_first)
    assert "call on other inputs" in str(found)


class OneSlot(torch.autograd.Function):
    """A linear layer that keeps what its backward needs in memory that the next call writes to."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, slot: list[Any]) -> torch.Tensor:
        """Keep the input."""
        ctx.slot, ctx.weight = slot, weight
        slot[:] = [x.detach().clone()]
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Use whatever was kept last."""
        return gradients[0] @ ctx.weight, gradients[0].T @ ctx.slot[0], None


def keeping_one(module: nn.Module) -> Forward:
    """Be right as long as each backward follows its own forward."""
    inner: Any = module.module  # the loss is around it
    slot: list[Any] = []
    layer = inner.layer
    layer.forward = lambda x: OneSlot.apply(x, layer.weight, slot) + layer.bias
    return module


def test_activations_that_the_next_forward_overwrites_are_found() -> None:
    """Two forwards before the first backward are what siamese networks do."""
    found = judge(plain(), torch.randn(*ROW), mode=Mode.TRAINING, arm=keeping_one)
    assert "call on other inputs: gradients.layer.weight" in str(found)
    assert not reservations_of(judge(plain(), torch.randn(*ROW), mode=Mode.TRAINING))


class WritesWhatItNeeds(nn.Module):
    """Can't be called twice before its backward: it writes to what that needs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.register_buffer("scale", torch.ones(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale by what grows with each call."""
        self.scale.mul_(1.5)
        scaled: torch.Tensor = self.layer(x) * self.scale
        return scaled


def test_a_model_that_allows_no_other_forward_is_called_on_other_inputs_all_the_same() -> None:
    """Each backward then follows its own forward."""
    model, x = WritesWhatItNeeds(), torch.randn(*ROW)
    assert not reservations_of(judge(model, x, mode=Mode.TRAINING))
    found = judge(model, x, mode=Mode.TRAINING, arm=reading_the_first)
    assert "call on other inputs" in str(found)


class Looks(nn.Module):
    """Copies from a table that it keeps as a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.tables = nn.Linear(16, 16), [torch.randn(32, 16), torch.randn(32, 16)]

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows of one, too."""
        return self.layer(x), self.tables[0][:8].clone()


def test_a_result_in_the_memory_of_an_attribute_is_found() -> None:
    """Whoever writes to it would change the model."""

    def view(module: nn.Module) -> Forward:
        model: Any = module
        return lambda x: (model.layer(x), model.tables[0][:8])

    found = judge(Looks(), torch.randn(*ROW), arm=view)
    assert found == "output[1]: it shares memory with attributes.tables[0], eager's does not"


class ReturnsItsWeight(nn.Module):
    """Returns a parameter as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the layer's weight, too."""
        return self.layer(x), self.layer.weight


def test_a_copy_of_a_parameter_is_right() -> None:
    """It requires a gradient as eager's does."""

    def copied(module: nn.Module) -> Forward:
        model: Any = module
        return lambda x: (model.layer(x), nn.Parameter(model.layer.weight.detach().clone()))

    found = judge(ReturnsItsWeight(), torch.randn(*ROW), arm=copied)
    assert reservations_of(found) == "output[1]: other inputs don't change it"


@torch.inference_mode()
def _without_autograd(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x)


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        (lambda module: partial(_without_autograd, module), "is an inference tensor"),
        (giving(lambda y: y.requires_grad_()), "requires a gradient of its own"),
    ],
)
def test_results_that_can_not_be_used_freely_are_found(arm: Arm, words: str) -> None:
    """Eager's can be written to, and be part of what is trained."""
    assert words in str(judge(plain(), torch.randn(*ROW), arm=arm))


# Random numbers


@pytest.mark.parametrize("mode", Mode)
def test_whoever_seeds_generators_again_is_found(mode: Mode) -> None:
    """Every step would have the same dropout."""

    def again(module: nn.Module) -> Forward:
        def call(*args: Any) -> Any:
            torch.manual_seed(torch.initial_seed())
            return module(*args)

        return call

    noisy = Calls(lambda y: y + torch.randn_like(y))
    found = judge(noisy, torch.randn(*ROW), mode=mode, arm=again)
    assert "wrong" in str(found) or "always the same" in str(found)
    assert not reservations_of(judge(noisy, torch.randn(*ROW), mode=mode))


# Structure


@dataclass
class Pair:
    """Two results."""

    one: torch.Tensor
    two: torch.Tensor


class Named(torch.Tensor):
    """A tensor of a class of its own."""


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda y: {"a": y, "b": -y}, lambda found: dict(reversed(found.items()))),
        (lambda y: Pair(y, -y), vars),
        (lambda y: y.as_subclass(Named), lambda found: found.as_subclass(torch.Tensor)),
        (lambda y: {0: y, 1: -y}, lambda found: list(found.values())),
        (lambda y: (y, None), lambda found: found[:1]),
        (lambda y: (None, y), lambda found: found[::-1][:1]),
        (lambda y: (y, None), lambda found: (*found, {}, [])),
    ],
)
def test_results_in_another_structure_are_found(make: Any, change: Any) -> None:
    """Whoever takes them apart would get something else, or an error."""
    found = judge(Calls(make), torch.randn(*ROW), arm=giving(change))
    assert "structure" in str(found)
    assert not reservations_of(judge(Calls(make), torch.randn(*ROW)))


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda y: (y, -y), list),
        (lambda y: deque([y, -y]), list),
        (lambda y: {"a": y, "b": -y}.values(), list),
        (lambda y: {"a": y, "b": None}, lambda found: {"a": found["a"]}),
    ],
)
def test_what_torchscript_returns_instead_is_right(make: Any, change: Any) -> None:
    """A list for any sequence, and a mapping without what is `None`."""
    assert not reservations_of(judge(Calls(make), torch.randn(*ROW), arm=giving(change)))


# Settings and flags


def _thaw(module: nn.Module) -> None:
    module.layer.weight.requires_grad_()  # type: ignore[union-attr, operator]  # a layer's weight


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (
            lambda _: torch.set_grad_enabled(True),
            "here gradients are recorded after the call",
        ),
        (
            lambda _: torch.use_deterministic_algorithms(mode=True),
            "here algorithms are deterministic after the call",
        ),
        (lambda module: module.train(), "here layer is in training mode after the call"),
        (_thaw, "here parameters.layer.weight requires a gradient after the call"),
    ],
)
def test_what_an_arm_leaves_on_is_found(act: Any, words: str) -> None:
    """Whatever runs after it would run otherwise."""
    model = plain()
    model.layer.weight.requires_grad_(requires_grad=False)  # type: ignore[union-attr, operator]  # likewise
    try:
        assert words in str(judge(model, torch.randn(*ROW), arm=doing(act)))
    finally:
        torch.use_deterministic_algorithms(mode=False)
        torch.set_grad_enabled(True)


class Settles(Calls):
    """Leaves torch otherwise than it was, in each call."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(lambda y: y.relu())
        self.act = act

    def forward(self, x: torch.Tensor) -> Any:
        """Act first."""
        self.act()
        return super().forward(x)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "act",
    [
        lambda: torch.use_deterministic_algorithms(mode=True),
        lambda: torch.set_grad_enabled(True),
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.autocast("cpu").__enter__(),
    ],
)
def test_what_the_model_itself_leaves_on_accuses_nobody(act: Any, mode: Mode) -> None:
    """Each call that is compared begins with the settings of the first."""
    with state.keeping_settings():
        found = judge(Settles(act), torch.randn(*ROW), mode=mode, calls=2)
    assert isinstance(found, Checks), found


class Drifts(nn.Module):
    """Keeps a number that grows by a rounding in each call."""

    drift: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.register_buffer("drift", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the layer gives."""
        self.drift += torch.finfo(torch.float32).eps
        found: torch.Tensor = self.layer(x)
        return found


def _forgets_and_trains(module: nn.Module) -> None:
    module.drift.fill_(1.0)  # type: ignore[union-attr, operator]  # a buffer
    module.train()


def test_what_is_left_on_is_found_where_a_buffer_differs_by_rounding() -> None:
    """The buffer's change is there in eager alone, and small enough to be missing."""
    found = judge(Drifts(), torch.randn(*ROW), arm=doing(_forgets_and_trains))
    assert "is in training mode after the call" in str(found)


class Forces(nn.Module):
    """Records gradients whatever the caller says, as models of energies and forces do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what can be backpropagated through."""
        with torch.enable_grad():
            energy: torch.Tensor = self.layer(x).tanh()
        return energy


def test_a_result_without_its_history_is_found() -> None:
    """Nobody could derive forces from it."""
    cut = giving(lambda output: output.detach())
    assert judge(Forces(), torch.randn(*ROW), arm=cut) == "in eager output has a history, here not"
    compiled = partial(aot_eager.compile, args=(), kwargs={})
    torch._dynamo.reset()
    assert not reservations_of(judge(Forces(), torch.randn(*ROW), arm=compiled))


def test_gradients_of_other_tensors_than_parameters_are_compared() -> None:
    """Prompts and the like may be buffers, or plain attributes."""

    class Prompted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 16)
            self.register_buffer("prompt", torch.randn(16, requires_grad=True))
            self.bias = torch.randn(16, requires_grad=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            prompted: torch.Tensor = self.layer(x * self.prompt) + self.bias
            return prompted

    def without(name: str) -> Arm:
        def arm(module: nn.Module) -> Forward:
            inner: Any = module.module
            setattr(inner, name, getattr(inner, name).detach())
            return module

        return arm

    model, x = Prompted(), torch.randn(*ROW)
    assert not reservations_of(judge(model, x, mode=Mode.TRAINING))
    assert "prompt" in str(judge(model, x, mode=Mode.TRAINING, arm=without("prompt")))
    assert "bias" in str(judge(model, x, mode=Mode.TRAINING, arm=without("bias")))
    assert not reservations_of(judge(model, x, mode=Mode.TRAINING, dtype=Dtype.BFLOAT16))


def test_a_result_that_contains_itself_is_compared() -> None:
    """Its structure has no end, and is left out."""

    def endless(y: torch.Tensor) -> list[Any]:
        found: list[Any] = [y]
        found.append(found)
        return found

    assert not reservations_of(judge(Calls(endless), torch.randn(*ROW)))


# The yardstick


@pytest.mark.filterwarnings("ignore:Warning only once for all operators")
def test_a_kernel_that_is_put_in_the_place_of_torchs_is_found() -> None:
    """Eager's further runs would take its errors for rounding."""
    library = torch.library.Library("aten", "IMPL")
    try:

        def arm(module: nn.Module) -> Forward:
            def sloppy(bias: torch.Tensor, x: torch.Tensor, y: torch.Tensor, **_: Any) -> Any:
                return (x.bfloat16() @ y.bfloat16()).float() + bias

            library.impl("addmm", sloppy, "CPU")
            return module

        found = judge(plain(), torch.randn(*ROW), arm=arm)
    finally:
        library._destroy()
    assert found == "output: since the arms are there eager differs"


def test_an_arm_that_has_eager_round_otherwise_is_not_accused_for_that() -> None:
    """A bias before a normalisation is rounding, and differs from itself by all it is."""

    class Layers(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(
                nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4)
            )

    before = torch._C._get_mkldnn_enabled()

    def arm(module: nn.Module) -> Forward:
        torch._C._set_mkldnn_enabled(not before)
        return module

    try:
        found = judge(Layers(), torch.randn(4, 3, 16, 16), mode=Mode.TRAINING, arm=arm)
    finally:
        torch._C._set_mkldnn_enabled(before)
    assert reservations_of(found) in {
        "",  # where both are the same
        "what rounding does: since the arms are there eager rounds otherwise",
    }


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: torch.set_grad_enabled(True), "gradients are recorded"),
        (lambda: torch.autocast("cpu").__enter__(), "autocast is on"),
        (
            lambda: torch.set_autocast_dtype("cpu", torch.float16),
            "autocast on cpu casts to",
        ),
        (lambda: torch.set_default_device("meta"), "the default device is"),
    ],
)
def test_an_arm_does_not_pay_for_another(act: Callable[[], object], words: str) -> None:
    """What one leaves on is put back."""
    model, x = plain(), torch.randn(*ROW)
    assert words in str(judge(model, x, arm=doing(lambda _: act())))
    assert not reservations_of(judge(model, x))


def test_inference_mode_left_on_is_no_fault_of_the_next_arm() -> None:
    """It can't be put back."""
    model, x = plain(), torch.randn(*ROW)
    left_on = torch.inference_mode()
    try:
        found = judge(model, x, arm=doing(lambda _: left_on.__enter__()))
        again = judge(model, x)
    finally:
        left_on.__exit__(None, None, None)
        torch.set_grad_enabled(True)  # it has put back what was when it began
    assert "inference mode is on" in str(found)
    assert not reservations_of(again)


# Numbers


def _as_image(y: torch.Tensor) -> torch.Tensor:
    return (torch.sigmoid(y) * 255).round().to(torch.uint8)


def _rounded_once(module: nn.Module) -> Forward:
    inner: Any = module

    def call(x: torch.Tensor) -> torch.Tensor:
        layer = inner.layer
        return _as_image(torch.nn.functional.linear(x, layer.weight, layer.bias).float())

    return call


def test_whole_numbers_that_are_nearer_to_float64s_than_eagers_are_right() -> None:
    """A fused kernel rounds once, where eager rounds to half precision first."""
    model, x = Calls(_as_image, 256), torch.randn(64, 16)
    found = judge(model, x, dtype=Dtype.BFLOAT16, arm=_rounded_once)
    assert "rounding changes 1 results" in reservations_of(found)
    brighter = giving(lambda image: image + 1)
    assert "elements differ" in str(judge(model, x, dtype=Dtype.BFLOAT16, arm=brighter))
    assert "elements differ" in str(judge(model, x, arm=brighter))


def test_no_index_is_right_for_being_near() -> None:
    """Nor is a truth value: their distance means nothing."""
    model, x = Calls(lambda y: y.argmax(-1), 512), torch.randn(256, 16)

    def moved(found: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.arange(len(found)) == 3, (found + 37) % 512, found)

    assert "elements differ" in str(judge(model, x, dtype=Dtype.BFLOAT16, arm=giving(moved)))


def test_what_rounding_decides_is_said_of_truth_values_as_of_numbers() -> None:
    """Any value is one that some run gave."""
    model = Calls(lambda y: torch.sin(1e9 * y) > 0)
    found = judge(model, torch.randn(*ROW), arm=giving(torch.ones_like))
    assert "output" in reservations_of(found)


def test_a_small_result_beside_large_ones_is_not_passed_over() -> None:
    """Only gradients that are rounding of zero are."""
    model = Calls(lambda y: {"large": y * 1e6, "larger": y * 1e7, "phase": torch.sin(y * 1e7)})
    spoil = giving(lambda found: {**found, "phase": torch.sin(7 * found["phase"])})
    assert "output.phase" in reservations_of(judge(model, torch.randn(*ROW), arm=spoil))


def test_what_was_computed_in_float32_is_not_held_to_float64() -> None:
    """A mean of whole numbers is rounded once, or twice."""
    average = Calls(lambda y: y)
    average.forward = lambda x: x.float().mean(-1).double()  # type: ignore[method-assign]
    x = torch.randint(0, 255, (64, 49), dtype=torch.uint8)

    def arm(_: nn.Module) -> Forward:
        return lambda x: (x.float().sum(-1) * torch.tensor(1 / 49)).double()

    assert isinstance(judge(average, x, arm=arm), Checks)
    wrong = judge(average, x, arm=giving(lambda found: found * 1.001))
    assert "wrong" in str(wrong)


class OfArrays(nn.Module):
    """Takes an array of NumPy beside a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, array: np.ndarray[Any, Any]) -> torch.Tensor:
        """Multiply."""
        product: torch.Tensor = self.layer(x) * torch.from_numpy(array.copy())
        return product


def test_arrays_among_inputs_are_looked_at_and_changed() -> None:
    """Whoever writes to them, or takes them for constants, is found."""

    def inputs() -> tuple[Any, ...]:
        return torch.randn(*ROW), np.arange(1, 17, dtype=np.float32)

    def writing(module: nn.Module) -> Forward:
        def call(x: torch.Tensor, array: np.ndarray[Any, Any]) -> Any:
            found = module(x, array)
            array.fill(0)
            return found

        return call

    def constant(module: nn.Module) -> Forward:
        kept: list[Any] = []

        def call(x: torch.Tensor, array: np.ndarray[Any, Any]) -> Any:
            kept.append(array.copy())
            return module(x, kept[0])

        return call

    assert not reservations_of(judge(OfArrays(), *inputs()))
    assert "inputs.args[1]" in str(judge(OfArrays(), *inputs(), arm=writing))
    assert "call on other inputs" in str(judge(OfArrays(), *inputs(), arm=constant))


def test_an_array_of_text_is_named() -> None:
    """It stays as it is in the call on other inputs."""

    class OfWords(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 16)

        def forward(self, x: torch.Tensor, words: np.ndarray[Any, Any]) -> torch.Tensor:
            scaled: torch.Tensor = self.layer(x) * len(words)
            return scaled

    found = judge(OfWords(), torch.randn(*ROW), np.array(["a", "word"]))
    assert reservations_of(found) == "other values of inputs.args[1]"


def test_a_tensor_that_is_given_twice_is_one_in_every_run() -> None:
    """What is written to one of them is read from the other."""

    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 16)

        def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            one.add_(1)
            written: torch.Tensor = self.layer(other)
            return written

    x = torch.randn(*ROW)
    found = judge(Writes(), x, x, arm=giving(lambda output: output * (1 + 1e-7)))
    assert not reservations_of(found)


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_counts_without_a_sign_may_change(dtype: torch.dtype) -> None:
    """Torch subtracts none of them."""

    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 16)
            self.register_buffer("calls", torch.zeros(1, dtype=dtype))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.copy_((self.calls.long() + 1).to(dtype))
            counted: torch.Tensor = self.layer(x)
            return counted

    assert not reservations_of(judge(Counts(), torch.randn(*ROW)))
    back = doing(lambda module: module.calls.zero_())  # type: ignore[union-attr, operator]
    assert "buffers.calls" in str(judge(Counts(), torch.randn(*ROW), arm=back))
