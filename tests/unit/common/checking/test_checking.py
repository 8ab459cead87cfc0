"""Plainly wrong arms are accused, and right ones are not, each by the smallest case that shows it.

Many of these once passed, or were accused: docs/decisions/0011-correctness.md.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import torch
from judging import judge, precisely
from torch import fx, nn

from dynamometer.common.checking.checking import Checks
from dynamometer.common.checking.steps import WithLoss, own_module
from dynamometer.common.interfaces.outcome import NondeterministicError
from dynamometer.common.interfaces.suite import Inputs, LoadedModel
from dynamometer.dynamo.backends.backends import aot_eager
from dynamometer.dynamo.backends.torchscript import torchscript
from dynamometer.results.values.cases import Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judging import Arm

    Change = Callable[[Any], Any]

TRAINING = Mode.TRAINING

# What torch says of its own deprecations, and of its graph breaks, is not in question here.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Build every model of the same random numbers."""
    torch.manual_seed(0)


def layers() -> nn.Module:
    """Return a small network."""
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))


def convolutions() -> nn.Module:
    """Return a small network with normalisations, whose bias has no gradient but rounding."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)
    )


IMAGE, ROW = (4, 3, 12, 12), (4, 16)


def changing(change: Change) -> Arm:
    """Return an arm that changes its outputs."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        return lambda *args: change(module(*args))

    return arm


def at_calls(change: Change, *, is_meant: Callable[[int], bool]) -> Arm:
    """Return an arm that changes the outputs of some calls, counted from 0."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        count = -1

        def call(*args: Any) -> Any:
            nonlocal count
            count += 1
            return change(module(*args)) if is_meant(count) else module(*args)

        return call

    return arm


def dynamo(module: nn.Module) -> Callable[..., Any]:
    """Be `aot_eager`, which computes what eager does in another way."""
    torch._dynamo.reset()
    return aot_eager.compile(module, (), {})


def assert_right(found: str | Checks) -> Checks:
    """Expect a pass."""
    assert isinstance(found, Checks), found
    return found


def assert_wrong(found: str | Checks, *words: str) -> None:
    """Expect an accusation that says certain words."""
    assert isinstance(found, str)
    for word in words:
        assert word in found


# Outputs


class Masked(nn.Module):
    """Logits of which some are masked by a large number."""

    def __init__(self, mask: float) -> None:
        super().__init__()
        self.layer, self.mask = nn.Linear(16, 64), mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mask every third logit."""
        out: torch.Tensor = self.layer(x)
        return out.masked_fill(torch.arange(64) % 3 == 0, self.mask)


def _overwrite_the_rest(output: torch.Tensor) -> torch.Tensor:
    return torch.where(output.abs() < 1e3, 123.0, output)


@pytest.mark.parametrize("mask", [torch.finfo(torch.float32).min, -1e9])
def test_masked_logits_free_no_others(mask: float) -> None:
    """One large element once made all others free."""
    model = Masked(mask)
    assert_wrong(judge(model, torch.randn(*ROW), arm=changing(_overwrite_the_rest)), "123 where")
    assert_right(judge(model, torch.randn(*ROW)))


@pytest.mark.parametrize(
    "is_meant", [lambda n: n == 1, lambda n: n >= 1, lambda n: n == 2, lambda n: n % 10 == 9]
)
@pytest.mark.parametrize("mode", list(Mode))
def test_later_calls_are_compared(is_meant: Callable[[int], bool], mode: Mode) -> None:
    """The second, those of an arm that is warm, and one in ten."""
    arm = at_calls(lambda out: out * 0, is_meant=is_meant)
    assert_wrong(judge(layers(), torch.randn(*ROW), arm=arm, mode=mode))


def test_a_result_that_is_kept_is_found() -> None:
    """A call on other inputs tells what is replayed from what is computed."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        kept: list[torch.Tensor] = []

        def call(x: torch.Tensor) -> torch.Tensor:
            kept.append(kept[0] if kept else module(x))
            return kept[0].clone()

        return call

    assert_wrong(judge(layers(), torch.randn(*ROW), arm=arm), "call on other inputs: output")


def test_weights_that_are_kept_are_found_in_training() -> None:
    """They may be taken for constants in inference alone."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        kept = copy.deepcopy(module)

        def call(*args: Any) -> Any:
            module_output, kept_output = module(*args), kept(*args).detach()
            return module_output - module_output.detach() + kept_output

        return call

    found = judge(layers(), torch.randn(*ROW), arm=arm, mode=TRAINING)
    assert_wrong(found, "call on other inputs: loss")
    assert_right(judge(layers(), torch.randn(*ROW), arm=arm))


class CountsInPython(nn.Module):
    """Keeps its state in a plain attribute, as caches do."""

    count = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return another result at every call."""
        self.count += 1
        return x * self.count


def test_state_in_a_plain_attribute_is_followed() -> None:
    """TorchScript freezes it; that once passed. What can't be compared is said."""
    model = CountsInPython()
    frozen = judge(
        model, torch.randn(4), arm=lambda own: torchscript.compile(own, (torch.ones(4),), {})
    )
    assert_wrong(frozen, "second call: output")
    checks = assert_right(judge(model, torch.randn(4)))
    assert checks.reservations == ("calls after the second: the model keeps state of its own",)


class CountsInABuffer(nn.Module):
    """Counts its calls in a buffer."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Use the count."""
        self.calls += 1
        out: torch.Tensor = self.layer(x) + self.calls
        return out


def test_tracing_leaves_the_count_alone() -> None:
    """TorchScript runs the arm's own module while it traces; that once made a right arm fail."""
    arm = lambda own: torch.jit.trace(own, (torch.ones(4),), check_trace=False)  # noqa: E731  short
    assert_right(judge(CountsInABuffer(), torch.randn(4), arm=arm))


def test_a_buffer_that_is_not_updated_is_found() -> None:
    """By its change, which is zero."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            before = module.calls.clone()
            output = module(*args)
            module.calls.copy_(before)
            return output

        return call

    found = judge(CountsInABuffer(), torch.randn(4), arm=arm)
    assert_wrong(found, "change of buffers.calls: 1 of 1", "0 where 1 is expected")


class Averaging(nn.Module):
    """Keeps a running mean, which a call hardly moves."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", (1.0 + torch.rand(64)).bfloat16())

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Move the mean by a tenth of what is left."""
        self.mean.mul_(0.9).add_(x, alpha=0.1)
        return x.exp()


@pytest.mark.parametrize(("roundings", "is_right"), [(1, True), (64, False)])
def test_a_change_is_known_no_better_than_what_is_stored(roundings: int, *, is_right: bool) -> None:
    """In bfloat16 a running mean moves by a few roundings of itself, or one more."""
    model = Averaging()

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(x: torch.Tensor) -> Any:
            output = module(x)
            module.mean.mul_(1 + roundings * torch.finfo(module.mean.dtype).eps)
            return output

        return call

    inputs = model.mean + 0.25  # which moves it by some roundings
    found = judge(model, inputs, arm=arm, dtype=Dtype.BFLOAT16)
    assert isinstance(found, Checks) == is_right


def test_weights_that_are_zeroed_after_the_first_call_are_found() -> None:
    """In inference parameters are looked at, too."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            output = module(*args)
            for each in module.parameters():
                each.zero_()
            return output

        return call

    assert_wrong(judge(layers(), torch.randn(*ROW), arm=arm), "change of parameters.0.")


def test_an_input_that_is_changed_is_found() -> None:
    """A caller uses its inputs again."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        return lambda x: (module(x), x.mul_(1.001))[0]

    assert_wrong(judge(layers(), torch.randn(*ROW), arm=arm), "change of inputs.args[0]")


class Copies(nn.Module):
    """Gives its inputs back, as a copy and as they are."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Copy."""
        return x.clone(), x.view(-1)


def test_a_result_in_the_memory_of_an_input_is_found() -> None:
    """Whoever writes to it would change the input, which eager's caller doesn't."""
    arm = lambda _: lambda x: (x, x.view(-1))  # noqa: E731  short
    found = judge(Copies(), torch.randn(*ROW), arm=arm)
    assert_wrong(found, "output[0]: it shares memory with inputs.args[0], eager's does not")
    assert_right(judge(Copies(), torch.randn(*ROW), arm=dynamo))


class Remembers(nn.Module):
    """Computes its positions once, and returns them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a buffer from the second call on."""
        if hasattr(self, "positions"):
            return self.positions
        positions = torch.arange(len(x)).float()
        self.register_buffer("positions", positions.clone())
        return positions


def test_later_calls_may_return_a_buffer_where_eagers_do() -> None:
    """Though the first doesn't."""
    assert_right(judge(Remembers(), torch.randn(4)))


class Aggregates(nn.Module):
    """Sums over the neighbours in a graph."""

    def forward(self, x: torch.Tensor, neighbours: torch.Tensor) -> torch.Tensor:
        """Multiply by a sparse matrix."""
        return torch.sparse.mm(neighbours, x)


def test_a_sparse_input_that_is_kept_is_found() -> None:
    """Its values are others in the call on other inputs."""
    neighbours = torch.rand(8, 8).relu().to_sparse()

    def arm(module: nn.Module) -> Callable[..., Any]:
        kept: list[torch.Tensor] = []

        def call(x: torch.Tensor, now: torch.Tensor) -> Any:
            kept.append(kept[0] if kept else now.clone())
            return module(x, kept[0])

        return call

    found = judge(Aggregates(), torch.randn(8, 4), neighbours, arm=arm)
    assert_wrong(found, "call on other inputs: output")
    assert_right(judge(Aggregates(), torch.randn(8, 4), neighbours))


class Leaves(nn.Module):
    """Has a buffer of zeros that it leaves alone, and gives a zero that is exact."""

    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(16))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Double, and subtract from itself."""
        return x * 2, x - x


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.AMP])
def test_zeros_of_a_buffer_are_left_alone_in_any_precision(dtype: Dtype) -> None:
    """A hundredth is no rounding of nothing."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        return lambda x: (module(x), module.get_buffer(_name(module)).fill_(0.01))[0]

    def _name(module: nn.Module) -> str:
        return next(name for name, _ in module.named_buffers())

    found = judge(Leaves(), torch.randn(*ROW), dtype=dtype, arm=arm)
    assert_wrong(found, "change of buffers.state")


def test_an_exact_zero_of_float64_is_judged_in_float64() -> None:
    """What is left of it in float32 is not rounding."""
    arm = changing(lambda outputs: (outputs[0], outputs[1] + 1e-8))
    found = judge(Leaves().double(), torch.randn(*ROW, dtype=torch.float64), arm=arm)
    assert_wrong(found, "output[1]")


@dataclass
class Box:
    """A result of one's own."""

    scores: torch.Tensor
    labels: torch.Tensor


class Slots:
    """Another, without a dictionary."""

    __slots__ = ("scores",)

    def __init__(self, scores: torch.Tensor) -> None:
        """Hold it."""
        self.scores = scores


class Posterior:
    """Another, that is called for its numbers."""

    def __init__(self, scores: torch.Tensor) -> None:
        """Hold them."""
        self.scores = scores

    def __call__(self) -> torch.Tensor:
        """Return them."""
        return self.scores


class Returns(nn.Module):
    """Gives its result in one form or another."""

    def __init__(self, form: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.layer, self.form = nn.Linear(4, 4), form

    def forward(self, x: torch.Tensor) -> object:
        """Compute, and wrap."""
        return self.form(self.layer(x))


def _generate(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield x


FORMS: dict[str, Callable[[torch.Tensor], object]] = {
    "values of a dictionary": lambda x: {"a": x}.values(),
    "generator": _generate,
    "iterator": lambda x: iter([x]),
    "slots": Slots,
    "callable": Posterior,
    "dataclass": lambda x: Box(x, x.argmax()),
    "distribution": lambda x: torch.distributions.Normal(x, 1.0),
    "same path twice": lambda x: {"a.b": x, "a": {"b": x}},
}


class TinyBias(nn.Module):
    """Has a bias of a millionth, as some are initialised to, and normalises its input in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)
        with torch.no_grad():
            self.layer.bias.mul_(1e-6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 16]` to `[B, 8]`."""
        x.div_(x.norm(dim=-1, keepdim=True))
        return self.layer(x)


def test_what_is_small_may_not_be_rewritten_either() -> None:
    """However little of the result it makes: eager leaves every bit of it alone."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(x: torch.Tensor) -> Any:
            output = module(x)
            with torch.no_grad():
                module.layer.bias.mul_(0.9)
            return output

        return call

    found = judge(TinyBias(), torch.randn(*ROW), arm=arm)
    assert isinstance(found, str)
    assert "layer.bias" in found
    assert "eager leaves it as it was" in found


def test_a_table_that_is_no_buffer_rounds_as_one_does() -> None:
    """Of whole numbers alone nothing seemed to round, and sums in another order were accused."""

    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.scale = torch.randn(1000, 256), torch.randn(1000, 256)

        def forward(self, places: torch.Tensor) -> torch.Tensor:
            return (nn.functional.layer_norm(self.rows[places], (256,)) * self.scale[places]).sum(
                -1
            )

    assert_right(judge(Table(), torch.arange(1000), arm=precisely))


class Stepped(nn.Module):
    """Rounds its results to steps, as what is quantised does."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 64]` to steps of 0.02."""
        return torch.fake_quantize_per_tensor_affine(self.layer(x), 0.02, 0, -128, 127)


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # torch's own
def test_of_results_in_steps_none_is_many_steps_off() -> None:
    """One that rounding moves by a step in few runs was free to be 32 steps off in an arm."""
    x = torch.randn(512, 64)

    def off_by(steps: int) -> Callable[[nn.Module], Callable[..., Any]]:
        def arm(module: nn.Module) -> Callable[..., Any]:
            def call(x: torch.Tensor) -> Any:
                result = module(x).clone()
                result.view(-1)[-7] += steps * 0.02
                return result

            return call

        return arm

    assert_right(judge(Stepped(), x, arm=precisely))
    found = judge(Stepped(), x, arm=off_by(5))
    assert isinstance(found, str)
    assert "1 of 131072 elements are wrong" in found


def test_what_is_rewritten_with_itself_may_be_off_by_a_rounding() -> None:
    """As a norm of 1 that an arm sums in another order."""
    x = nn.functional.normalize(torch.randn(*ROW))

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(x: torch.Tensor) -> Any:
            output = module(x)
            x.mul_(1 + 2 * torch.finfo(x.dtype).eps)
            return output

        return call

    assert_right(judge(TinyBias(), x, arm=arm))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_result_is_compared(form: str) -> None:
    """Zeros once passed in any of these."""

    def zeros(module: nn.Module) -> Callable[..., Any]:
        return lambda x: FORMS[form](module.layer(x) * 0)

    model = Returns(FORMS[form])
    assert_wrong(judge(model, torch.randn(4), arm=zeros), "output")
    assert_right(judge(model, torch.randn(4)))


def test_a_dataclass_can_be_trained() -> None:
    """Its tensors have a loss as those of a tuple have."""
    model = Returns(FORMS["dataclass"])
    assert_right(judge(model, torch.randn(4), mode=TRAINING))
    assert_right(judge(model, torch.randn(4), mode=TRAINING, arm=dynamo))
    wrong = judge(model, torch.randn(4), mode=TRAINING, arm=changing(lambda loss: loss * 1.1))
    assert_wrong(wrong, "loss")


def test_jagged_tensors_are_compared() -> None:
    """Equal ones once differed."""

    def jagged(x: torch.Tensor) -> torch.Tensor:
        return torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, 4]))

    assert_right(judge(Returns(jagged), torch.randn(4, 4)))
    wrong = changing(lambda out: out * 1.1)
    assert_wrong(judge(Returns(jagged), torch.randn(4, 4), arm=wrong), "output.values()")


def test_what_cannot_be_compared_is_said() -> None:
    """A pass vouches for what was compared, and no more."""
    nan = judge(Returns(lambda x: x * torch.nan), torch.randn(4))
    assert "output: all of it is NaN in eager" in assert_right(nan).reservations
    opaque = judge(Returns(lambda x: (x, object())), torch.randn(4))
    assert assert_right(opaque).reservations == ("output[1]: a object can't be compared",)


def test_every_call_is_counted() -> None:
    """Two before it is warm, twelve after, two on other inputs, and two after it was timed."""
    assert assert_right(judge(layers(), torch.randn(*ROW))).calls == 2 + 12 + 2 + 2


def test_as_seldom_as_may_be() -> None:
    """Two calls and one on other inputs; two where a call depends on those before."""
    arm = at_calls(lambda out: out * 0, is_meant=lambda n: n == 2)
    for model, calls in ((layers(), 3), (CountsInABuffer(), 2)):
        inputs = torch.randn(4, 16 if calls == 3 else 4)
        assert assert_right(judge(model, inputs, is_brief=True)).calls == calls
        for number in range(calls):
            wrong = at_calls(lambda out: out * 0, is_meant=lambda n, number=number: n == number)
            assert_wrong(judge(model, inputs, arm=wrong, is_brief=True))
    frozen = judge(
        CountsInPython(), torch.randn(4), is_brief=True,
        arm=lambda own: torchscript.compile(own, (torch.ones(4),), {}),
    )  # fmt: skip
    assert_wrong(frozen, "second call: output")
    assert_right(judge(convolutions(), torch.randn(*IMAGE), mode=TRAINING, is_brief=True))
    assert_wrong(judge(layers(), torch.randn(*ROW), arm=arm, is_brief=True), "on other inputs")


class TakesTheSameAgain(nn.Module):
    """Refuses any inputs but those of its first call, which it keeps in Python."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        super().__init__()
        self.kept: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compare with what is kept, or keep it."""
        if self.kept and not self.kept[0].equal(x):
            msg = "not the same"
            raise ValueError(msg)
        self.kept.append(x)
        return x * 2


@pytest.mark.parametrize("is_brief", [True, False])
def test_eager_has_seen_what_an_arm_has(*, is_brief: bool) -> None:
    """An arm of a model that takes its first inputs alone was once accused of what eager does."""
    checks = assert_right(judge(TakesTheSameAgain(), torch.randn(3), is_brief=is_brief))
    assert "a call on other inputs: eager fails on them, or gives NaN" in checks.reservations


class TakesOnes(nn.Module):
    """Refuses any inputs but its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Check, and give them."""
        if not bool((x == 1).all()):
            msg = "not ones"
            raise ValueError(msg)
        return x


def test_a_model_that_takes_no_other_inputs_is_said_to() -> None:
    """It is compared on its own alone."""
    checks = assert_right(judge(TakesOnes(), torch.ones(3)))
    assert checks.reservations == ("a call on other inputs: eager fails on them, or gives NaN",)


class Draws(nn.Module):
    """Draws from a generator that no seed reaches."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add noise."""
        generator = torch.Generator()
        generator.seed()
        return x + torch.rand(x.shape, generator=generator)


class Jitters(nn.Module):
    """Rounds in another way at every call, as atomic additions do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Sum in an order of its own."""
        generator = torch.Generator()
        generator.seed()
        order = torch.randperm(x.numel(), generator=generator)
        return x.flatten()[order].cumsum(0)[-1]


def test_eager_may_disagree_with_itself_by_rounding_alone() -> None:
    """More than that is not deterministic, and nothing can be compared with it."""
    with pytest.raises(
        NondeterministicError, match="two eager runs from one seed differ at output"
    ):
        judge(Draws(), torch.ones(4))
    assert_right(judge(Jitters(), torch.randn(5000)))


class Normalises(nn.Module):
    """Undoes a factor of its inputs before anything else."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise, and compute."""
        out: torch.Tensor = self.layer(self.norm(x))
        return out


@pytest.mark.parametrize("form", [lambda out: out, lambda out: out.argmax(-1)])
def test_other_inputs_make_a_difference_behind_a_normalisation(form: Change) -> None:
    """One factor for all of an input would make none."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        kept: list[Any] = []

        def call(x: torch.Tensor) -> Any:
            kept.append(kept[0] if kept else module(x))
            return kept[0].clone()

        return call

    class Formed(Normalises):
        def forward(self, x: torch.Tensor) -> Any:
            """Return the result in its form."""
            return form(super().forward(x))

    model = Formed()
    assert_wrong(judge(model, torch.randn(64, 16), arm=arm), "call on other inputs")
    assert_right(judge(model, torch.randn(64, 16)))


class Cancels(nn.Module):
    """Sums whole numbers to next to nothing, with weights of one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Centre, and add up."""
        return ((x / 255 - 0.5) * 1).sum()


def test_whole_numbers_are_rounded_too_where_there_are_no_others() -> None:
    """Else rounding would change nothing, and another order of a sum would be wrong."""
    images = torch.randint(256, (4, 3, 64, 64)).float()
    arm = lambda module: lambda x: module(x.flip(0, 2))  # noqa: E731  short
    assert_right(judge(Cancels(), images, arm=arm))


def deep() -> nn.Module:
    """Return a network of some depth, as bfloat16 rounds at each of its operators."""
    blocks = [(nn.Linear(64, 64), nn.ReLU(), nn.LayerNorm(64)) for _ in range(6)]
    return nn.Sequential(*(each for block in blocks for each in block))


WRONG: dict[str, Change] = {
    "1.1 times": lambda out: out * 1.1,
    "rows swapped": lambda out: out.roll(1, 0),
    "half zeroed": lambda out: out * (torch.arange(out.shape[-1]) % 2),
}


@pytest.mark.parametrize("dtype", [Dtype.BFLOAT16, Dtype.AMP])
@pytest.mark.parametrize("wrong", WRONG)
def test_half_precision_is_judged(wrong: str, dtype: Dtype) -> None:
    """By what it rounds, and no more."""
    arm = changing(WRONG[wrong])
    assert_wrong(judge(deep(), torch.randn(8, 64), dtype=dtype, arm=arm), "output")

    def wider(module: nn.Module) -> Callable[..., Any]:
        kept = copy.deepcopy(module).float()
        return lambda x: kept(x.float()).to(x.dtype)

    if dtype is Dtype.BFLOAT16:
        assert_right(judge(deep(), torch.randn(8, 64), dtype=dtype, arm=wider))


# Training


def test_the_gradient_of_an_input_is_compared() -> None:
    """Where a caller asks for it."""
    x = torch.randn(4, 16, requires_grad=True)
    arm = lambda module: lambda x: module(x.detach())  # noqa: E731  short
    assert_wrong(judge(layers(), x, arm=arm, mode=TRAINING), "gradients.inputs.args[0]")
    assert_right(judge(layers(), x, mode=TRAINING))


class DetachedHead(nn.Module):
    """Has a head that only says which is the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Choose by the head, whose parameters have no gradient."""
        chosen = self.head(x).detach().argmax()
        torch._dynamo.graph_break()
        out: torch.Tensor = self.layer(x) * (chosen >= 0)
        return out


def test_no_gradient_and_a_gradient_of_zeros_are_the_same() -> None:
    """AOTAutograd gives the one where eager gives the other."""
    assert_right(judge(DetachedHead(), torch.randn(4), mode=TRAINING, arm=dynamo))


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16])
def test_rounding_of_what_is_zero_accuses_nobody(dtype: Dtype) -> None:
    """The gradient of a bias before a normalisation, the running mean of a normalised channel."""

    def reorder(module: nn.Module) -> Callable[..., Any]:
        return lambda x: module(x.contiguous(memory_format=torch.channels_last))

    found = judge(convolutions(), torch.randn(*IMAGE), mode=TRAINING, dtype=dtype, arm=reorder)
    assert_right(found)


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(Mode))
def test_with_several_sizes_the_same_rules_hold(mode: Mode) -> None:
    """Paths begin with an index there; a rule that looked at their beginning was once off."""
    sizes = [Inputs(args=(torch.randn(count, 3, 12, 12),)) for count in (4, 6)]
    model = LoadedModel(module=convolutions(), args=sizes[0].args, others=tuple(sizes[1:]))
    assert_right(judge(model, mode=mode, arm=dynamo))
    wrong = at_calls(lambda out: out * 1.01, is_meant=lambda call: call == 1)
    assert_wrong(judge(model, mode=mode, arm=wrong), "[1]")


class HardlyUsed(nn.Module):
    """Has a layer that makes no difference, and another that makes little."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.unused = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return small outputs, whose gradients are some 1e-6."""
        out: torch.Tensor = self.layer(x) * 1e-3 + self.unused(x) * 0
        return out


@pytest.mark.parametrize(("garbage", "is_right"), [(5e-6, False), (1e-13, True)])
def test_what_is_exactly_zero_is_judged_by_its_like(garbage: float, *, is_right: bool) -> None:
    """Not by numbers of size 1 where all others are some 1e-6."""
    arm = _gradient_hook(lambda gradient: gradient + garbage, "module.unused.weight")
    found = judge(HardlyUsed(), torch.randn(*ROW), mode=TRAINING, arm=arm)
    assert isinstance(found, Checks) == is_right, found


def _gradient_hook(change: Change, name: str) -> Arm:
    def arm(module: nn.Module) -> Callable[..., Any]:
        dict(module.named_parameters())[name].register_hook(change)
        return module

    return arm


@pytest.mark.parametrize(
    "dtype",
    [
        Dtype.FLOAT32,
        pytest.param(Dtype.BFLOAT16, marks=pytest.mark.slow),
        pytest.param(Dtype.AMP, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "change",
    [torch.zeros_like, lambda g: g * 1.6, lambda g: g.roll(1, 0), lambda g: g * (g > 0)],
    ids=["zero", "scaled", "rolled", "half of it"],
)
@pytest.mark.parametrize("name", ["0.weight", "0.bias", "2.weight"])
def test_wrong_gradients_are_found(change: Change, name: str, dtype: Dtype) -> None:
    """Each by itself, however small beside the others."""
    arm = _gradient_hook(change, f"module.{'module.' * (dtype is Dtype.AMP)}{name}")
    found = judge(layers(), torch.randn(*ROW), mode=TRAINING, dtype=dtype, arm=arm)
    assert_wrong(found, f"gradients.{name}")


class Unequal(nn.Module):
    """Has layers whose gradients are some 1e-10 of the others', as scales of layers make them."""

    def __init__(self) -> None:
        super().__init__()
        self.faint, self.layer = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 16]` to `[B, 16]`."""
        return torch.cat([self.faint(x) * 1e-10, self.layer(x)], -1)


@pytest.mark.parametrize("change", [torch.zeros_like, lambda g: g * 1.1], ids=["zero", "scaled"])
def test_gradients_far_below_the_largest_are_compared(change: Change) -> None:
    """Below the squared tolerance of the largest they once were anything."""
    arm = _gradient_hook(change, "module.faint.weight")
    found = judge(Unequal(), torch.randn(*ROW), mode=TRAINING, arm=arm)
    assert_wrong(found, "gradients.faint.weight")
    assert_right(judge(Unequal(), torch.randn(*ROW), mode=TRAINING, arm=dynamo))


class Embeds(nn.Module):
    """Gives directions, all of one length."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise the last layer's outputs."""
        return nn.functional.normalize(self.second(self.first(x).tanh()), dim=-1)


@pytest.mark.parametrize("change", [torch.zeros_like, lambda g: g.roll(1, 0), lambda g: g * 20])
def test_a_model_with_normalised_outputs_has_gradients(change: Change) -> None:
    """The plain mean square of its outputs is constant."""
    arm = _gradient_hook(change, "module.first.weight")
    found = judge(Embeds(), torch.randn(8, 16), mode=TRAINING, arm=arm)
    assert_wrong(found, "gradients.first.weight")


class Noisy(nn.Module):
    """Adds noise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Draw at every call."""
        return x + torch.randn_like(x)


def test_noise_that_is_drawn_once_is_found() -> None:
    """Every call but the last begins with one seed, so that eager's noise is the arm's."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        kept: list[torch.Tensor] = []

        def call(x: torch.Tensor) -> torch.Tensor:
            drawn = torch.randn_like(x)
            kept.append(kept[0] if kept else drawn)
            return x + kept[0]

        return call

    assert_wrong(judge(Noisy(), torch.randn(8, 16), arm=arm), "call on other inputs")
    assert_right(judge(Noisy(), torch.randn(8, 16)))


def test_a_generator_that_is_left_as_it_was_is_found() -> None:
    """The next call would draw the same noise once more."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(x: torch.Tensor) -> Any:
            with torch.random.fork_rng():
                return module(x)

        return call

    assert_wrong(judge(Noisy(), torch.randn(8, 16), arm=arm), "always the same")


def test_statistics_that_are_kept_are_found_in_training() -> None:
    """Buffers begin with other values in the call on other inputs."""

    def stale(module: nn.Module) -> Callable[..., Any]:
        kept = {name: each.clone() for name, each in module.named_buffers()}

        def call(*args: Any) -> Any:
            with torch.no_grad():
                for name, each in module.named_buffers():
                    each.data.copy_(kept[name])  # unseen by autograd
            return module(*args)

        return call

    found = judge(convolutions(), torch.randn(*IMAGE), mode=TRAINING, arm=stale)
    assert_wrong(found, "call on other inputs: change of buffers.1.running_mean")


def test_what_shows_no_replay_is_said() -> None:
    """An arm that gives its first result for ever can't be told apart there."""
    checks = assert_right(judge(Returns(lambda x: x * 0), torch.randn(4)))
    assert checks.reservations == ("whether a call is replayed: other inputs change no result",)


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.AMP, Dtype.BFLOAT16])
def test_an_optimizer_that_does_nothing_is_found(dtype: Dtype) -> None:
    """By the update that each gradient asks for; weights hardly change."""
    found = judge(
        layers(),
        torch.randn(*ROW),
        mode=TRAINING,
        dtype=dtype,
        optimizer=lambda _: lambda: None,
    )
    assert_wrong(found, "parameters.0.", "the optimizer's step changed it by 0 ")


def test_a_compiled_optimizer_is_right() -> None:
    """Another rounding of an update is none too many."""

    def compiled(update: Callable[[], object]) -> Callable[[], object]:
        return aot_eager.compile_function(update)

    torch._dynamo.reset()
    assert_right(judge(layers(), torch.randn(*ROW), mode=TRAINING, optimizer=compiled))


class AveragesWeights(nn.Module):
    """Changes a parameter of its own in forward, as momentum encoders do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.slow = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Move one layer towards the other."""
        with torch.no_grad():
            self.slow.weight.mul_(0.9).add_(self.layer.weight, alpha=0.1)
        out: torch.Tensor = self.layer(x) + self.slow(x)
        return out


def test_a_model_that_changes_its_own_parameters_is_said_to() -> None:
    """What the optimizer does to these can't be told apart."""
    checks = assert_right(judge(AveragesWeights(), torch.randn(4), mode=TRAINING))
    assert checks.reservations == ("parameters.slow.weight: the model changes it itself",)


def test_what_rounding_hides_is_said() -> None:
    """A network that one rounding throws about can't be judged closely."""

    class Chaotic(nn.Module):
        """Iterates the logistic map."""

        def __init__(self) -> None:
            super().__init__()
            self.rate = nn.Parameter(torch.tensor(3.9))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Go on until rounding is all there is."""
            for _ in range(40):
                x = self.rate * x * (1 - x)
            return x

    def arm(module: nn.Module) -> Callable[..., Any]:
        return lambda x: module(x * (1 + 1e-7))

    same, hidden = assert_right(judge(Chaotic(), torch.rand(100), arm=arm)).reservations
    assert same == "output: other inputs change it by no more than an arm may be off by"
    assert hidden.startswith("rounding changes 1 results by more than 5%, output by ")


def test_what_rounding_seldom_does_is_said_apart() -> None:
    """It is no share of the result that rounding changes each time."""
    checks = Checks(loose={"output": 0.001, "loss": 0.002, "gradients.weight": 0.2})
    often, seldom = checks.reservations
    assert often.startswith("rounding changes 1 results by more than 5%, gradients.weight by 20%")
    assert seldom.startswith("farther from eager's than rounding usually takes them: output and 1 ")


class Attending(nn.Module):
    """Attends where a mask lets it; and to what is positive."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(64, 16)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Map indices `[B, L]`, a mask of ones and numbers `[B, L, 16]` to `[B, L, 16]`."""
        found = self.embedding(ids).masked_fill(x > 0, 0.5)
        query = self.embedding(ids)
        return nn.functional.scaled_dot_product_attention(
            query, query, found, attn_mask=mask[:, None].bool()
        )


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
@pytest.mark.parametrize("kept", [1, 2])
def test_a_mask_that_is_kept_is_found(kept: int, dtype: torch.dtype, mode: Mode) -> None:
    """Be it of ones alone, or of where numbers are positive."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        first: list[torch.Tensor] = []

        def call(*args: torch.Tensor) -> Any:
            first.append(args[kept].clone())
            own = list(args)
            own[kept] = first[0] if kept == 1 else args[kept].abs().copysign(first[0])
            return module(*own)

        return call

    ids, mask, x = torch.randint(64, (2, 8)), torch.ones(2, 8, dtype=dtype), torch.randn(2, 8, 16)
    assert_wrong(judge(Attending(), ids, mask, x, arm=arm, mode=mode), "call on other inputs")
    assert_right(judge(Attending(), ids, mask, x, mode=mode))


class Rotated(nn.Module):
    """Turns what it is given by frequencies that it computes, as rotary embeddings do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(32, 32)
        self.by_powers = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[L, 32]` to `[L, 32]`."""
        share = torch.arange(32.0) / 32
        frequency = 10_000.0**-share if self.by_powers else (-9.210340371976184 * share).exp()
        return self.layer(x) * torch.outer(torch.arange(float(len(x))), frequency).cos()


@pytest.mark.parametrize("mode", Mode)
def test_constants_may_be_computed_by_another_function(mode: Mode) -> None:
    """Whose rounding counts thousandfold far from the origin."""

    def arm(module: nn.Module) -> nn.Module:
        own = module.module if mode is TRAINING else module
        own.by_powers = True  # type: ignore[assignment, union-attr]  # the model's
        return module

    assert_right(judge(Rotated(), torch.randn(2048, 32), arm=arm, mode=mode))


class Adding(nn.Module):
    """Adds a little of itself many times, each time rounded."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.at_once = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 16]` to `[B, 16]`."""
        found = self.layer(x)
        for _ in range(96 // self.at_once):
            wide = found if self.at_once == 1 else found.float()
            for _ in range(self.at_once):
                wide = wide + wide * 0.002
            found = wide.to(found.dtype)
        return found


@pytest.mark.parametrize("at_once", [2, 4, 96])
def test_who_rounds_more_rarely_than_eager_is_right(at_once: int) -> None:
    """In bfloat16 eager adds nothing, again and again; float64 adds a fifth."""

    def arm(module: nn.Module) -> nn.Module:
        module.at_once = at_once  # type: ignore[assignment]  # the model's own
        return module

    found = judge(Adding(), torch.randn(8, 16), arm=arm, dtype=Dtype.BFLOAT16)
    assert max(assert_right(found).loose.values()) > 0.1


@pytest.mark.parametrize("change", [torch.neg, torch.abs])
def test_the_sign_of_an_output_matters_in_training(change: Change) -> None:
    """To the loss of a model that has none of its own."""

    def arm(module: nn.Module) -> nn.Module:
        return WithLoss(Changed(own_module(module), change))

    assert_wrong(judge(layers(), torch.randn(*ROW), arm=arm, mode=TRAINING), "loss")


class Changed(nn.Module):
    """A model whose output is changed."""

    def __init__(self, module: nn.Module, change: Change) -> None:
        super().__init__()
        self.module, self.change = module, change

    def forward(self, x: torch.Tensor) -> Any:
        """Change what the model gives."""
        return self.change(self.module(x))


def test_gradients_between_the_first_and_the_last_size_are_compared() -> None:
    """However little they change of the sizes after them."""
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8))
    with torch.no_grad():
        model[0].bias.mul_(1e-6)  # type: ignore[operator, union-attr]  # a parameter
        model[2].weight.mul_(1e-4)  # type: ignore[operator, union-attr]  # likewise
    sizes = [Inputs(args=(torch.randn(n, 16),)) for n in (6, 5, 4)]
    loaded = LoadedModel(module=model, args=(torch.randn(8, 16),), others=tuple(sizes))

    def arm(module: nn.Module) -> Callable[..., Any]:
        rows = [8]
        bias = module.module[0].bias  # type: ignore[index, union-attr]  # the model's
        bias.register_hook(lambda gradient: gradient * (rows[-1] != 5))

        def call(x: torch.Tensor) -> Any:
            rows.append(len(x))
            return module(x)

        return call

    assert_wrong(judge(loaded, arm=arm, mode=TRAINING), "gradients[2].0.bias")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_no_number_is_right_where_low_precision_is_wrong(number: float) -> None:
    """One of many is enough."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(x: torch.Tensor) -> Any:
            output = module(x).clone()
            output[0, 0] = number
            return output

        return call

    found = judge(Adding(), torch.randn(8, 16), arm=arm, dtype=Dtype.BFLOAT16)
    assert_wrong(found, "1 of 128")


class Diverging(nn.Module):
    """Leaves no number in its buffer but a few."""

    kept: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.rand(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Spoil two elements of the buffer."""
        self.kept[3] = float("nan")
        self.kept[4] = float("inf")
        return x.exp()


@pytest.mark.parametrize("index", [3, 4])
def test_a_number_where_eager_stores_none_is_found(index: int) -> None:
    """However large what eager stores is."""

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(x: torch.Tensor) -> Any:
            output = module(x)
            module.kept[index] = 7.0  # type: ignore[operator]  # a buffer
            return output

        return call

    assert_wrong(judge(Diverging(), torch.randn(8), arm=arm), "kept")


class DrawsOnce(nn.Module):
    """Draws noise at its first call, and keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.noise: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 16]` to `[B, 16]`."""
        if self.noise is None:
            self.noise = torch.randn(16)
        return self.layer(x) + self.noise


class DrawsInVain(nn.Module):
    """Drops what it has drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 16]` to `[B, 16]`."""
        found = self.layer(x)
        nn.functional.dropout(found, 0.5)
        return found


@pytest.mark.parametrize("mode", Mode)
def test_draws_that_do_not_matter_need_not_be_made(mode: Mode) -> None:
    """Later ones of a model that makes them once, and those that are dropped."""
    assert_right(judge(DrawsOnce(), torch.randn(*ROW), mode=mode))

    def arm(module: nn.Module) -> Callable[..., Any]:
        own = module.module if mode is TRAINING else module
        own.forward = own.layer.forward  # type: ignore[assignment, union-attr]  # without a draw
        return module

    assert_right(judge(DrawsInVain(), torch.randn(*ROW), arm=arm, mode=mode))


def test_other_inputs_are_tried_beside_what_is_never_a_number() -> None:
    """One result is NaN whatever the inputs; the other shows the replay."""

    class AlsoNan(nn.Linear):
        def forward(self, x: torch.Tensor) -> Any:
            return super().forward(x), x * float("nan")

    def arm(module: nn.Module) -> Callable[..., Any]:
        first: list[Any] = []

        def call(x: torch.Tensor) -> Any:
            first.append(module(x))
            return first[0]

        return call

    assert_wrong(judge(AlsoNan(16, 8), torch.randn(*ROW), arm=arm), "call on other inputs")


@pytest.mark.parametrize("seed", range(20, 30))
def test_what_eager_writes_may_be_off_by_the_rounding_of_a_sum(seed: int) -> None:
    """A mean of zero is zero in eager's second call, by luck."""

    class Centred(nn.Module):
        flipped = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            own = x.flip(-1) if self.flipped else x
            x.sub_(own.mean(-1, keepdim=True))
            return x.exp()

    def arm(module: nn.Module) -> nn.Module:
        module.flipped = True  # type: ignore[assignment]  # the model's own
        return module

    torch.manual_seed(seed)
    assert_right(judge(Centred(), torch.randn(1, 4), arm=arm))


class Branching(nn.Module):
    """Has an operator of higher order."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> Any:
        """Map `[B, 16]` to `[B, 8]`."""
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (self.layer(x),))


def test_operators_of_higher_order_are_run_with_other_roundings() -> None:
    """And judged by them."""
    assert_right(judge(Branching(), torch.randn(*ROW), arm=dynamo))
    found = judge(Branching(), torch.randn(*ROW), arm=changing(lambda y: y * 1.001))
    assert_wrong(found, "wrong")


class CompilesAPart(nn.Linear):
    """Has a part of itself compiled, as attention often is."""

    def __init__(self, part: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__(16, 8)
        self.part = part

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 16]` to `[B, 8]`."""
        return self.part(super().forward(x))


def test_what_a_model_compiles_itself_is_compiled_after_it_was_judged() -> None:
    """Under a mode that watches operators Dynamo gives code up for good."""
    runs: list[int] = []

    def backend(graph: fx.GraphModule, _: Any) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            runs.append(len(args))
            return graph(*args)

        return run

    @torch.compile(backend=backend, fullgraph=True)
    def part(y: torch.Tensor) -> torch.Tensor:
        return y * 2

    model, x = CompilesAPart(part), torch.randn(*ROW)
    assert_right(judge(model, x))
    assert_wrong(judge(model, x, arm=changing(lambda y: y * 1.001)), "wrong")
    before = len(runs)
    model(x)
    assert len(runs) == before + 1


def test_conjugates_can_be_trained() -> None:
    """Which torch leaves unresolved."""

    class Spectrum(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fft.fft(super().forward(x)).conj()

    assert_right(judge(Spectrum(16, 8), torch.randn(*ROW), mode=TRAINING))


class Complex(nn.Module):
    """Multiplies by a complex matrix, in one sum or in two."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 64, dtype=torch.complex64) / 8)
        self.in_two = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map complex `[B, 64]` to the same."""
        if self.in_two:
            return x[:, :32] @ self.weight[:32] + x[:, 32:] @ self.weight[32:]
        return x @ self.weight


@pytest.mark.parametrize("mode", Mode)
def test_complex_numbers_are_rounded_as_well(mode: Mode) -> None:
    """A sum in another order is as right, and float64 says what is."""

    def arm(module: nn.Module) -> nn.Module:
        own_module(module).in_two = True  # type: ignore[assignment]  # the model's own
        return module

    x = torch.randn(32, 64, dtype=torch.complex64)
    assert_right(judge(Complex(), x, arm=arm, mode=mode))
    wrong = judge(Complex(), x, arm=changing(lambda y: y * 1.01), mode=mode)
    assert_wrong(wrong, "loss" if mode is TRAINING else "output")


def stepping(
    change: Callable[[torch.Tensor, torch.Tensor, float], None],
) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Make an optimizer's step that changes each weight by its gradient and the rate."""

    def compiled(update: Callable[[], object]) -> Callable[[], object]:
        (group,) = update.__self__.param_groups  # type: ignore[attr-defined]  # an optimizer's

        @torch.no_grad()
        def step() -> None:
            for weight in group["params"]:
                change(weight, weight.grad, group["lr"])

        return step

    return compiled


@pytest.mark.parametrize("seed", range(4))
def test_a_step_may_be_rounded_up_where_eager_rounds_down(seed: int) -> None:
    """In float16 an update often ends half way between two numbers."""

    def in_float64(weight: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        weight.copy_(weight.double() - rate * gradient.double())

    torch.manual_seed(seed)
    given: Any = {"mode": TRAINING, "dtype": Dtype.FLOAT16}
    assert_right(judge(layers(), torch.randn(*ROW), optimizer=stepping(in_float64), **given))
    nothing = judge(layers(), torch.randn(*ROW), optimizer=lambda _: lambda: None, **given)
    assert_wrong(nothing, "the optimizer's step changed it by 0 ")


def test_a_buffer_that_eager_leaves_alone_is_left_alone() -> None:
    """However small its values are."""

    class Scaled(nn.Module):
        scale: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.linspace(1e-6, 5e-6, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    def arm(module: nn.Module) -> Callable[..., Any]:
        def call(x: torch.Tensor) -> Any:
            found = module(x)
            module.scale.zero_()  # type: ignore[operator]  # a buffer
            return found

        return call

    assert_wrong(judge(Scaled(), torch.randn(8), arm=arm), "change of buffers.scale")
    assert_right(judge(Scaled(), torch.randn(8)))


def test_plain_attributes_that_a_call_writes_are_named() -> None:
    """As nothing of them is compared; those it only reads aren't."""

    class Keeps(nn.Linear):
        def __init__(self) -> None:
            super().__init__(8, 8)
            self.constant, self.seen = torch.ones(8), [torch.zeros(8)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.penalty, self.seen[0] = x.square().mean(), x
            return super().forward(x) + self.constant

    checks = assert_right(judge(Keeps(), torch.randn(8)))
    assert checks.reservations == (
        "attributes.seen and 1 more: plain attributes, which a call writes",
    )


def test_weights_that_make_no_difference_are_named() -> None:
    """As layers are created; in training their gradients say whether they are used."""
    model = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 4))
    found = judge(model, torch.randn(*ROW), arm=lambda module: lambda x: module[1](_normalised(x)))
    assert assert_right(found).reservations == (
        "parameters.0.weight and 1 more: all zeros or ones, and could be left out",
    )
    assert assert_right(judge(model, torch.randn(*ROW), mode=TRAINING)).reservations == ()


def _normalised(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.layer_norm(x, x.shape[-1:])


def test_a_gain_of_zero_is_named() -> None:
    """The branch that it ends could be left out."""

    class Gated(nn.Linear):
        def __init__(self) -> None:
            super().__init__(16, 16)
            self.gain = nn.Parameter(torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.gain * super().forward(x)

    checks = assert_right(judge(Gated(), torch.randn(*ROW), arm=lambda _: lambda x: x * 1))
    assert checks.reservations == ("parameters.gain: all zeros or ones, and could be left out",)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_both_parts_of_a_complex_weight_are_trained(part: str) -> None:
    """An optimizer's step that leaves one of them is none."""

    def half(weight: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        own = getattr(weight, part)
        own -= rate * getattr(gradient, part)

    x = torch.randn(32, 64, dtype=torch.complex64)
    found = judge(Complex(), x, mode=TRAINING, optimizer=stepping(half))
    assert_wrong(found, "parameters.weight: the optimizer's step")
