"""Gradients that are added to others, of a loss that is multiplied, as training loops do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import factories
import pytest
import torch
from judging import judge
from torch import nn

from dynamometer.common.checking.checking import Checks
from dynamometer.common.checking.looking import Settings
from dynamometer.common.checking.reference import reference_of
from dynamometer.common.checking.steps import configure
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.dynamo import state
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    Hook = Callable[[torch.Tensor], torch.Tensor]

TRAINING = Mode.TRAINING
DTYPES = (Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.AMP)
ADDS = "call that adds its gradients to others (number 4): gradients."
ROW = (4, 16)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Build every model of the same random numbers."""
    torch.manual_seed(0)


def layers() -> nn.Module:
    """Return a small network."""
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))


class Ones(torch.autograd.Function):
    """Takes the gradient it is given for 1, as it is in most training steps."""

    @staticmethod
    def forward(_: Any, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return loss.clone()

    @staticmethod
    def backward(_: Any, *given: torch.Tensor) -> torch.Tensor:
        """Look at nothing but the shape."""
        return torch.ones_like(given[0])


class Size(Ones):
    """Takes it for its absolute value."""

    @staticmethod
    def backward(_: Any, *given: torch.Tensor) -> torch.Tensor:
        """Lose the sign, which adversarial training changes."""
        return given[0].abs()


def ignoring(module: nn.Module) -> Callable[..., Any]:
    """Return an arm that trains the loss alone, whatever it is multiplied by."""
    return lambda *args: Ones.apply(module(*args))


def losing_sign(module: nn.Module) -> Callable[..., Any]:
    """Return an arm that trains what grows where it should fall."""
    return lambda *args: Size.apply(module(*args))


def overwriting(module: nn.Module) -> Callable[..., Any]:
    """Return an arm that puts each gradient in the place of what was there."""
    _overwrite(*module.parameters())
    return module


def overwriting_inputs(module: nn.Module) -> Callable[..., Any]:
    """Return an arm that does so with the gradients of inputs."""
    known: set[int] = set()

    def call(x: torch.Tensor) -> Any:
        if id(x) not in known:
            known.add(id(x))
            _overwrite(x)
        return module(x)

    return call


def _overwrite(*leaves: torch.Tensor) -> None:
    kept: dict[torch.Tensor, torch.Tensor] = {}
    for each in leaves:
        each.register_hook(lambda gradient, key=each: kept.update({key: gradient}))
        each.register_post_accumulate_grad_hook(
            lambda leaf: setattr(leaf, "grad", kept[leaf].clone())
        )


class Hooked(nn.Module):
    """Has hooks on the gradients of its weights, wherever it is copied to."""

    def __init__(self, hook: Hook) -> None:
        super().__init__()
        self.layers, self.hook = layers(), hook

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let gradients pass the hook."""
        for each in self.layers:
            x = each(x)
            if x.requires_grad:
                x.register_hook(self.hook)
        return x


class Rooted(nn.Module):
    """Uses the square roots of its weights, of which one was pruned: its gradient is infinite."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(16, 16))
        with torch.no_grad():
            self.weight[3, 5] = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply by the roots."""
        return x @ self.weight.sqrt()


class Embedded(nn.Module):
    """Has a sparse gradient, and one weight that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.layer = nn.Embedding(8, 16, sparse=True), nn.Linear(16, 16)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Apply the layer twice."""
        out: torch.Tensor = self.layer(self.layer(self.embedding(rows)).relu())
        return out


def adds(module: nn.Module, *inputs: torch.Tensor, dtype: Dtype = Dtype.FLOAT32) -> bool:
    """Return whether adding calls of a model's arms are compared with eager's first."""
    case = factories.case(mode=TRAINING, dtype=dtype)
    with state.running(TRAINING, None):
        made = LoadedModel(module=module, args=inputs)
        loaded = configure(made, case, torch.device("cpu"))
        return reference_of(loaded, case, Settings(seed=0, tolerance=1e-4)).adds


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arm", [ignoring, losing_sign, overwriting])
def test_who_takes_the_loss_for_alone_is_found(
    dtype: Dtype, arm: Callable[[nn.Module], Callable[..., Any]]
) -> None:
    """In a call on the first weights and inputs: others may be worse conditioned."""
    found = judge(layers(), torch.randn(*ROW), mode=TRAINING, dtype=dtype, arm=arm)
    assert isinstance(found, str)
    assert found.startswith(ADDS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (layers(), torch.randn(*ROW)),
        (layers(), torch.randn(*ROW, requires_grad=True)),
        (Embedded(), torch.tensor([[1, 2, 1], [7, 0, 3]])),
        (nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Dropout(0.2)), torch.randn(*ROW)),
    ],
)
def test_what_is_added_is_what_the_first_call_gives(
    module: nn.Module, inputs: torch.Tensor, dtype: Dtype
) -> None:
    """Of every kind of gradient, those of inputs too; eager as an arm passes."""
    assert adds(module, inputs, dtype=dtype)
    assert isinstance(judge(module, inputs, mode=TRAINING, dtype=dtype), Checks)


@pytest.mark.parametrize(
    ("hook", "dtype"),
    [
        (lambda gradient: gradient.clamp(-1e-3, 1e-3), Dtype.FLOAT32),
        (lambda gradient: gradient / gradient.norm(), Dtype.FLOAT32),
        (lambda gradient: gradient * (3e4 / gradient.abs().max()), Dtype.BFLOAT16),
    ],
)
def test_gradients_that_do_not_double_accuse_nobody(hook: Hook, dtype: Dtype) -> None:
    """The model clips them; those of the call on other inputs are compared with eager's there."""
    model, x = Hooked(hook), torch.randn(*ROW)
    assert not adds(model, x, dtype=dtype)
    assert isinstance(judge(model, x, mode=TRAINING, dtype=dtype), Checks)
    found = judge(model, x, mode=TRAINING, dtype=dtype, arm=overwriting)
    assert isinstance(found, str)
    assert found.startswith("call on other inputs: gradients.")


def test_a_few_gradients_that_do_not_double_accuse_nobody() -> None:
    """The largest, which is clamped where it is twice as large, and one that is infinite."""
    limits: dict[torch.Size, torch.Tensor] = {}

    def clamp(gradient: torch.Tensor) -> torch.Tensor:
        limit = limits.setdefault(gradient.shape, 1.9 * gradient.abs().max())
        return gradient.clamp(-limit, limit)

    x = torch.randn(32, 16)
    for model in (Hooked(clamp), Rooted()):
        assert not adds(model, x)
        assert isinstance(judge(model, x, mode=TRAINING), Checks)


@pytest.mark.parametrize("calls", [3, 20])
def test_gradients_of_a_network_that_has_diverged_accuse_nobody(calls: int) -> None:
    """While it warms up nothing is put back: gradients there are huge, or no numbers."""
    model, x = layers(), 30 * torch.randn(*ROW)
    assert isinstance(judge(model, x, mode=TRAINING, calls=calls), Checks)
    found = judge(model, x, mode=TRAINING, calls=calls, arm=overwriting)
    assert isinstance(found, str)
    assert found.startswith("call that adds its gradients to others")


def test_who_overwrites_gradients_of_inputs_is_found() -> None:
    """As an input may be what another network computed."""
    found = judge(layers(), torch.randn(*ROW, requires_grad=True), mode=TRAINING,
                  arm=overwriting_inputs)  # fmt: skip
    assert isinstance(found, str)
    assert found.startswith("call that adds its gradients to others (number 4): gradients.inputs.")


def test_a_hook_that_raises_accuses_nobody() -> None:
    """Eager refuses gradients that are twice the first ones; nothing can be added there."""
    first: dict[torch.Size, torch.Tensor] = {}

    def refuse(gradient: torch.Tensor) -> torch.Tensor:
        if gradient.abs().sum() > 1.5 * first.setdefault(gradient.shape, gradient.abs().sum()):
            raise ValueError
        return gradient

    model, x = Hooked(refuse), torch.randn(*ROW)
    assert not adds(model, x)
    assert isinstance(judge(model, x, mode=TRAINING), Checks)
