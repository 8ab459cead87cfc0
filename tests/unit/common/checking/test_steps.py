from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import factories
import pytest
import torch
from torch import nn

from dynamometer.common.checking.copies import in_float64, nudged
from dynamometer.common.checking.steps import (
    LEARNING_RATE,
    Autocast,
    WithLoss,
    configure,
    make_step,
)
from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.common.interfaces.suite import Inputs, LoadedModel
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CPU = torch.device("cpu")


class Counting(nn.Module):
    """A convolution that counts its calls in a buffer."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Compute, and count."""
        self.calls += 1
        out: torch.Tensor = self.convolution(x) * scale
        return out


def loaded() -> LoadedModel:
    """Return a model with an image, and a scale given by name."""
    torch.manual_seed(0)
    scale = torch.tensor(2.0)
    return LoadedModel(module=Counting(), args=(torch.rand(2, 3, 8, 8),), kwargs={"scale": scale})


def configured(**fields: Any) -> LoadedModel:
    """Put it into the state of a case."""
    return configure(loaded(), factories.case(**fields), CPU)


@pytest.mark.parametrize("where", ["convolution.weight", "calls", "an input"])
def test_what_has_no_values_is_named(where: str) -> None:
    """Such as a weight that was never filled; torch calls it not implemented, which is a skip."""
    found = loaded()
    if where == "an input":
        found = replace(found, args=(torch.rand(2, 3, 8, 8, device="meta"),))
    elif where == "calls":
        found.module.register_buffer(where, torch.zeros((), device="meta"))
    else:
        found.module.convolution = nn.Conv2d(3, 4, 3, device="meta")
    with pytest.raises(ValueError, match=f"^{where} is on device meta, which has no values$"):
        configure(found, factories.case(), CPU)
    with torch.device("meta"), pytest.raises(ValueError, match="set_default_device has made"):
        configure(found, factories.case(), CPU)


@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BFLOAT16])
def test_half_precision_is_of_weights_and_inputs(dtype: Dtype) -> None:
    """Everything of floating point is cast; integers stay what they are."""
    tokens = torch.arange(3)
    model = configure(
        LoadedModel(module=Counting(), args=(torch.rand(1), tokens)),
        factories.case(dtype=dtype),
        CPU,
    )
    wanted = getattr(torch, dtype)
    assert {each.dtype for each in model.module.parameters()} == {wanted}
    assert [each.dtype for each in model.args] == [wanted, torch.int64]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
    ],
)
def test_float32_widens_but_does_not_narrow(given: torch.dtype, kept: torch.dtype) -> None:
    """A checkpoint in half precision is run in float32; what is published in float64 stays so."""
    made = LoadedModel(module=nn.Linear(2, 2).to(given), args=(torch.rand(2, 2).to(given),))
    model = configure(made, factories.case(), CPU)
    assert model.module(*model.args).dtype is kept


def test_autocast_leaves_weights_alone() -> None:
    """Under `amp` weights stay in float32, and the operators' results are narrower."""
    model = configured(dtype=Dtype.AMP)
    assert isinstance(model.module, Autocast)
    assert {each.dtype for each in model.module.parameters()} == {torch.float32}
    seen: list[torch.dtype] = []
    model.module.module.convolution.register_forward_hook(
        lambda *given: seen.append(given[2].dtype)
    )
    model.module(*model.args, **model.kwargs)
    assert seen == [torch.bfloat16]


def test_channels_last_is_of_images_and_weights() -> None:
    """Four dimensions are reordered in memory, fewer have no channels."""
    model = configured(channels_last=True)
    assert model.args[0].is_contiguous(memory_format=torch.channels_last)
    weight = model.module.convolution.weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert model.kwargs["scale"].is_contiguous()


def test_channels_last_leaves_other_weights_as_they_are() -> None:
    """Torch refuses to lay out those of three-dimensional convolutions so."""
    convolutions = (nn.Conv2d(6, 5, 3), nn.Conv2d(1, 8, 3), nn.Conv2d(16, 8, 1))
    module = nn.Sequential(nn.Conv3d(3, 4, 3), *convolutions)
    loaded = LoadedModel(module=module, args=(torch.randn(1, 3, 8, 8, 8),))
    found = configure(loaded, factories.case(channels_last=True), torch.device("cpu")).module
    weights = dict(found.named_parameters())
    assert weights["0.weight"].is_contiguous()
    strides = [weights[f"{number}.weight"].stride() for number in (1, 2, 3)]
    assert strides == [(54, 1, 18, 6), (9, 1, 3, 1), (16, 1, 16, 16)]


def test_weights_that_are_buffers_have_the_dtype_as_well() -> None:
    """Inputs had it, and the two didn't fit."""
    module = nn.Module()
    module.register_buffer("weight", torch.randn(4, 4))
    module.register_buffer("turns", torch.ones(4, dtype=torch.complex64))
    loaded = LoadedModel(module=module, args=(torch.randn(2, 4),))
    found = configure(loaded, factories.case(dtype=Dtype.BFLOAT16), torch.device("cpu"))
    assert found.module.weight.dtype is found.args[0].dtype is torch.bfloat16
    assert found.module.turns.dtype is torch.complex64


@pytest.mark.parametrize("mode", list(Mode))
def test_the_module_knows_its_mode(mode: Mode) -> None:
    """Batch normalisation and dropout go by it."""
    assert configured(mode=mode).module.training == (mode is Mode.TRAINING)


def test_without_parameters_there_is_nothing_to_train() -> None:
    """A formula is skipped in training, with that reason."""
    formula = LoadedModel(module=nn.ReLU(), args=(torch.rand(2),))
    with pytest.raises(SkippedError, match="no parameters"):
        configure(formula, factories.case(mode=Mode.TRAINING), CPU)


class Returns(nn.Module):
    """Returns what it is given."""

    def forward(self, value: object) -> object:
        """Do so."""
        return value


class HasLoss(dict[str, torch.Tensor]):
    """What a model of transformers returns."""

    loss = torch.tensor(7.0)


@pytest.mark.parametrize(
    ("output", "loss"),
    [
        (HasLoss(logits=torch.ones(3)), 7.0),
        (torch.tensor([1.0, 3.0]), 6.0),
        ((torch.tensor([1.0, 3.0]), torch.tensor([2.0])), 11.0),
        ({"logits": torch.tensor([2.0]), "ids": torch.tensor([5])}, 4.0),
        (torch.tensor([300.0], dtype=torch.float16), 90_000.0),
    ],
)
def test_the_loss(output: object, loss: float) -> None:
    """It is the model's own, else a weighted mean square of every output of floating point."""
    assert float(WithLoss(Returns())(output)) == loss


def test_without_an_output_of_floating_point_there_is_no_loss() -> None:
    """A model that gives token ids is skipped in training, with that reason."""
    with pytest.raises(SkippedError, match="no loss to train with"):
        WithLoss(Returns())(torch.tensor([1]))


class Keeps(nn.Module):
    """Gives a buffer that its next call changes."""

    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("total", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add up everything it is given."""
        self.total.add_(x.sum())
        return self.total


def of_two_sizes() -> LoadedModel:
    """Return a model with inputs of two sizes."""
    first, second = (Inputs(args=(torch.ones(size),)) for size in (2, 3))
    return LoadedModel(module=Keeps(), args=first.args, others=(second,))


def test_a_step_of_several_sizes_goes_through_all() -> None:
    """The whole step gives what the last call does."""
    model = of_two_sizes()
    with torch.no_grad():
        step = make_step(model.module, model, Mode.INFERENCE, seed=0)
        assert [float(call()) for call in step.calls] == [2.0, 5.0]  # type: ignore[arg-type]  # sums
        assert float(step.call()) == 10.0  # type: ignore[arg-type]  # likewise


def test_copies_of_several_sizes_share_nothing() -> None:
    """A backend that writes to an input of any size spoils only its own."""
    model = of_two_sizes()
    own = model.copy()
    own.others[0].args[0].zero_()
    assert float(model.others[0].args[0].sum()) == 3.0
    doubles = in_float64(model)
    assert {each.args[0].dtype for each in doubles.calls} == {torch.float64}


def test_a_compiled_optimizer_is_what_is_stepped() -> None:
    """The given compiler gets the step, and what it makes of it is called."""
    called = []

    def compile_function(update: Callable[[], object]) -> Callable[[], object]:
        return lambda: (called.append(update), update())

    model = configured(mode=Mode.TRAINING)
    make_step(model.module, model, Mode.TRAINING, 0, compile_function).call()
    assert len(called) == 1


def test_a_training_step_by_hand() -> None:
    """The weights move against their gradients, by the learning rate."""
    model = configured(mode=Mode.TRAINING)
    weight = model.module.module.convolution.weight
    before = weight.detach().clone()
    make_step(model.module, model, Mode.TRAINING, seed=0).call()
    torch.testing.assert_close(weight.detach(), before - LEARNING_RATE * weight.grad)


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.AMP])
@pytest.mark.parametrize("mode", list(Mode))
def test_the_reference_computes_in_float64(dtype: Dtype, mode: Mode) -> None:
    """A copy is widened, and autocast doesn't narrow it again; the original stays as it is."""
    model = configured(dtype=dtype, mode=mode)
    before = next(model.module.parameters()).dtype
    wide = in_float64(model)
    assert wide.module(*wide.args, **wide.kwargs).dtype is torch.float64
    assert next(model.module.parameters()).dtype is before


def test_tables_that_nobody_registered_are_widened_unless_others_view_them() -> None:
    """A view would read what was there before."""
    module = nn.Linear(2, 2)
    module.table, module.whole = torch.rand(4), torch.rand(2, 2)
    module.row = module.whole[0]
    wide = in_float64(LoadedModel(module=module, args=(torch.ones(2),))).module
    assert (wide.table.dtype, wide.whole.dtype) == (torch.float64, torch.float32)
    assert wide.row.untyped_storage().data_ptr() == wide.whole.untyped_storage().data_ptr()


def test_a_step_begins_with_its_seed() -> None:
    """Each arm's first step draws the same random numbers."""
    model = LoadedModel(module=nn.Dropout(0.5).train(), args=(torch.ones(100),))
    outputs = [make_step(model.module, model, Mode.INFERENCE, seed=3).call() for _ in range(2)]
    assert torch.equal(*outputs)  # type: ignore[arg-type]  # both are tensors


class Eager(nn.Module):
    """Gives its outputs one by one."""

    def forward(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        """Compute each when it is asked for."""
        for factor in (1.0, 2.0):
            self.made = factor
            yield x * factor


def test_a_generator_is_consumed_within_the_call() -> None:
    """Else nothing would have been computed when the clock is read."""
    module = Eager()
    step = make_step(module, LoadedModel(module=module, args=(torch.ones(1),)), Mode.INFERENCE, 0)
    output = step.call()
    assert module.made == 2.0
    assert [float(each) for each in output] == [1.0, 2.0]  # type: ignore[attr-defined]  # a list


def test_a_nudged_copy_is_another_by_rounding_alone() -> None:
    """Weights and inputs of the original stay."""
    model = configured(mode=Mode.TRAINING)
    weight = model.module.module.convolution.weight
    before = weight.detach().clone()
    own = nudged(model, 1e-6, seed=1)
    theirs = own.module.module.convolution.weight
    assert torch.equal(weight, before)
    assert not torch.equal(theirs, weight)
    torch.testing.assert_close(theirs, weight, rtol=2e-6, atol=0)
    assert not torch.equal(own.args[0], model.args[0])
    assert not torch.equal(nudged(model, 1e-6, seed=2).args[0], own.args[0])


def test_lazy_layers_learn_their_sizes_before_they_are_copied() -> None:
    """They have no weights until they have seen an input."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that they may change
        module = nn.Sequential(nn.LazyLinear(3), nn.Dropout(), nn.LazyBatchNorm1d())
    model = configure(
        LoadedModel(module=module.train(), args=(torch.rand(4, 5),)),
        factories.case(mode=Mode.TRAINING),
        CPU,
    )
    assert model.module.module[0].weight.shape == (3, 5)
    assert model.module.training
    assert int(module[2].num_batches_tracked) == 0
    assert model.copy().module(*model.args).dim() == 0


def test_old_weight_norm_can_be_copied() -> None:
    """Its weight is computed from parameters, and refuses to be deep-copied by itself."""
    with pytest.warns(FutureWarning, match="deprecated"):
        module = nn.utils.weight_norm(nn.Linear(3, 2))
    model = LoadedModel(module=module, args=(torch.ones(1, 3),))
    own = model.copy()
    torch.testing.assert_close(own.module(*own.args), module(*model.args))
    own.module.weight_g.data.zero_()
    torch.testing.assert_close(own.module(*own.args)[0], module.bias)
    assert bool((module.weight_g > 0).all())
