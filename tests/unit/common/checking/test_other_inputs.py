"""What a replay gets right by luck: whole numbers in any order, branches that are seldom taken."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import torch
from judging import judge, precisely, reservations_of, same
from torch import nn

from dynamometer.common.checking.alteration import Alteration, alter
from dynamometer.common.checking.checking import Checks
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    Forward = Callable[..., Any]


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Give models and inputs the same numbers in every order of tests."""
    torch.manual_seed(0)


def keeping_whole_numbers(module: nn.Module) -> Forward:
    """Take the second input for a constant."""
    kept: list[Any] = []

    def call(x: torch.Tensor, whole: torch.Tensor) -> Any:
        kept.append(whole.clone())
        return module(x, kept[0])

    return call


class Bag(nn.Module):
    """Adds up rows of a table, in whichever order they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.layer = nn.EmbeddingBag(50, 16, mode="sum"), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Multiply by the sums."""
        weighted: torch.Tensor = self.layer(x) * self.bag(places)
        return weighted


class Edges(nn.Module):
    """Adds up what comes along the edges of a graph, in whichever order they are given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Send each node's features along its edges."""
        sent = self.layer(x)
        return torch.zeros_like(sent).index_add(0, edges[1], sent[edges[0]])


class Longest(nn.Module):
    """Cuts a batch to the longest of its lengths, a number of Python that a trace keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return means over the longest length."""
        longest = int(lengths.max())
        mask = torch.arange(longest)[None] < lengths[:, None]
        mean: torch.Tensor = (self.layer(x[:, :longest]) * mask[..., None]).sum(1) / longest
        return mean


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("model", "x", "whole"),
    [
        (Bag, (8, 16), torch.arange(0, 80, 2).reshape(8, 5) % 50),
        (Edges, (8, 16), torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [3, 4, 7, 0, 0, 1, 2, 2]])),
        (Longest, (4, 10, 16), torch.tensor([3, 8, 5, 2])),
    ],
)
def test_whole_numbers_taken_for_constants_are_found(
    model: type[nn.Module], x: tuple[int, ...], whole: torch.Tensor, mode: Mode
) -> None:
    """In other places they would come to the same."""
    found = judge(model(), torch.randn(*x), whole, arm=keeping_whole_numbers, mode=mode)
    assert "call on other inputs" in str(found)
    assert not reservations_of(judge(model(), torch.randn(*x), whole, mode=mode))


@pytest.mark.filterwarnings("ignore:Converting a tensor to a Python")
@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_trace_that_keeps_a_number_is_found() -> None:
    """It cuts every batch as it cut the first."""
    x, lengths = torch.randn(4, 10, 16), torch.tensor([3, 8, 5, 2])

    def traced(module: nn.Module) -> Forward:
        found: Forward = torch.jit.trace(module, (x, lengths), check_trace=False)
        return found

    assert "call on other inputs" in str(judge(Longest(), x, lengths, arm=traced))


class EndsAtNine(Bag):
    """Asks for as many nines in each row, as sequences that end with a mark do."""

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Refuse what doesn't end."""
        ends = (places == 9).sum(-1)
        if not bool((ends == 1).all()):
            msg = "each row has to have one nine"
            raise ValueError(msg)
        return super().forward(x, places)


def test_where_the_largest_number_has_to_stay_the_others_change_places() -> None:
    """That is said, as sums of them stay what they were."""
    places = torch.tensor([[1, 2, 9], [4, 9, 3]])
    found = judge(EndsAtNine(), torch.randn(2, 16), places)
    assert reservations_of(found) == (
        "other values of inputs.args[1] (its whole numbers only change places)"
    )


class NeedsThreeOfEach(nn.Module):
    """Refuses masks that leave in another number."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Take what a mask leaves in."""
        return x[mask].view(4, 3) * 2


def test_where_as_many_are_to_be_left_in_that_is_said() -> None:
    """A backend that keeps how many there are would pass."""
    mask = torch.tensor([[True, True, False, True]]).expand(4, 4).clone()
    found = judge(NeedsThreeOfEach(), torch.randn(4, 4), mask)
    assert reservations_of(found) == (
        "other values of inputs.args[1] (its whole numbers only change places)"
    )


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.uint16, torch.int64])
def test_the_largest_of_three_whole_numbers_is_lowered(dtype: torch.dtype) -> None:
    """Nothing leaves its range, nor does any number go, but how often each is there is another."""
    whole, mask = torch.tensor([0, 3, 7, 7]).to(dtype), torch.tensor([0, 1, 1, 1]).to(dtype)
    model = LoadedModel(module=nn.Identity(), args=(whole, mask))
    alter(model, Alteration.ALL, Mode.INFERENCE)
    assert whole.tolist() == [0, 0, 3, 3]
    assert mask.tolist() == [0, 0, 1, 1]
    alter(model, Alteration.BUT_LARGEST, Mode.INFERENCE)
    assert whole.tolist() == [3, 0, 0, 3]


def within_the_first_range(module: nn.Module) -> Forward:
    """Saturate at the least and the largest number of the first call, as what is calibrated."""
    limits: list[torch.Tensor] = []

    def call(x: torch.Tensor) -> Any:
        limits.extend([] if limits else x.detach().aminmax())
        return module(x.clamp(*limits))

    return call


@pytest.mark.parametrize("mode", Mode)
def test_numbers_beyond_the_range_of_the_first_call_are_tried(mode: Mode) -> None:
    """What was quantised by the first call's range is right on it, and on all that is smaller."""
    found = judge(nn.Linear(16, 8), torch.randn(4, 16), arm=within_the_first_range, mode=mode)
    assert isinstance(found, str)
    assert found.startswith("call on other inputs")


class OfShares(nn.Module):
    """Refuses what is no share."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logarithm of what is left of each."""
        if bool((x > 1).any()):
            msg = "no share"
            raise ValueError(msg)
        y: torch.Tensor = self.layer(torch.log1p(-x / 2))
        return y


def test_numbers_stay_in_their_range_where_a_model_asks_for_that() -> None:
    """It is called on other inputs all the same."""
    found = judge(OfShares(), torch.rand(4, 16))
    assert reservations_of(found) == ""


class Narrow(nn.Module):
    """Converts pixels to whole numbers of eight bits, which have no larger ones."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map what is left of `[B, 8]`."""
        y: torch.Tensor = self.layer((x * 127).round().to(torch.int8).float())
        return y


@pytest.mark.parametrize("mode", Mode)
def test_shares_stay_shares(mode: Mode) -> None:
    """What 254 becomes in eight bits is another number for each kernel."""
    x = torch.rand(32, 8) * 2 - 1

    def saturating(module: nn.Module) -> Forward:
        own = module.module if mode is Mode.TRAINING else module
        whole = own.forward

        def forward(x: torch.Tensor) -> torch.Tensor:
            return whole(x.clamp(-1, 1))

        own.forward = forward
        return module

    assert isinstance(judge(Narrow(), x, arm=saturating, mode=mode), Checks)


def test_the_number_that_is_farthest_from_zero_is_doubled() -> None:
    """Not all are, which a normalisation would undo; a single one is."""
    numbers, one = torch.tensor([1.0, -3.0] + [0.5] * 62), torch.tensor([2.0])
    equal, shares = torch.full((64,), 2.0), torch.ones(64)
    model = LoadedModel(module=nn.Identity(), args=(numbers, one, equal, shares))
    alter(model, Alteration.BEYOND, Mode.INFERENCE)
    assert numbers[1] == 6
    assert one.tolist() == [4.0]
    assert {*numbers[2:].tolist()} == {-0.25, -1.0}
    assert {*equal.tolist()} == {1.0, 4.0}
    assert {*shares.tolist()} == {0.25, 0.5}


class Writes(nn.Module):
    """Writes rows to the places that are asked for, as a cache of keys is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return the rows in their places."""
        return torch.zeros(8, 16).index_copy(0, places, self.layer(x))


@pytest.mark.parametrize("places", [[2, 3, 4, 5], [3, 7, 5, 0]])
def test_no_place_is_written_to_twice(places: list[int]) -> None:
    """Which of the two would stay is undefined: whoever writes in another order is right."""

    def backwards(module: nn.Module) -> Forward:
        return lambda x, places: module(x.flip(0), places.flip(0))

    found = judge(Writes(), torch.randn(4, 16), torch.tensor(places), arm=backwards)
    assert not reservations_of(found)


class SometimesLeftOut(nn.Module):
    """Leaves layers out now and then, as Python's generator has it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a sum, of mostly all layers."""
        for layer in self.layers:
            if random.random() >= 0.1:
                x = x + layer(x)
        return x


def never_left_out(module: nn.Module) -> Forward:
    """Use every layer, and draw nothing."""
    model: Any = module.module if hasattr(module, "module") else module

    def forward(x: torch.Tensor) -> torch.Tensor:
        for layer in model.layers:
            x = x + layer(x)
        return x

    model.forward = forward
    return module


@pytest.mark.parametrize("mode", Mode)
def test_a_branch_that_random_numbers_seldom_take_is_not_left_out_unseen(mode: Mode) -> None:
    """With most seeds nothing differs."""
    found = judge(SometimesLeftOut(), torch.randn(8, 16), arm=never_left_out, mode=mode)
    assert isinstance(found, str), reservations_of(found)
    assert not reservations_of(judge(SometimesLeftOut(), torch.randn(8, 16), mode=mode))


class DrawsForNothing(nn.Module):
    """Draws a number that no result depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the layer gives."""
        torch.rand(1)
        found: torch.Tensor = self.layer(x)
        return found


def test_an_arm_that_draws_nothing_is_right_where_draws_change_nothing() -> None:
    """As far as some other seeds tell, which is said."""
    found = judge(DrawsForNothing(), torch.randn(8, 16), arm=lambda module: module.layer)
    assert reservations_of(found) == ("random numbers: it draws none, 8 seeds change nothing")


class WithFlag(nn.Module):
    """Returns what is the same of all finite inputs, too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return results, and which of them are finite."""
        found = self.layer(x)
        return found, found.isfinite()


def test_results_that_other_inputs_do_not_change_are_named() -> None:
    """Whoever takes them for constants can't be told."""
    found = judge(WithFlag(), torch.randn(8, 16))
    assert reservations_of(found) == "output[1]: other inputs don't change it"


class EveryOther(nn.Module):
    """Keeps the mean of one call for the next one, which forgets it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.kept: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Subtract what was kept, or what is kept from now on."""
        out: torch.Tensor = self.layer(x)
        if self.kept is not None:
            out, self.kept = out - self.kept, None
            return out
        self.kept = out.mean().detach()
        return out - self.kept


@pytest.mark.parametrize("is_brief", [False, True])
def test_a_model_that_alternates_is_asked_as_often_as_eager(*, is_brief: bool) -> None:
    """Its call on other inputs was eager's second call, and the arm's third."""
    found = judge(EveryOther(), torch.randn(8, 16), is_brief=is_brief)
    assert "the model keeps state of its own" in reservations_of(found)


class Chaotic(nn.Module):
    """Amplifies rounding to the size of its results."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> Any:
        """Multiply by what rounding decides."""
        return self.layer(x) * (1 + torch.sin(1e8 * x.sum() * x))


def keeping_the_first_result(module: nn.Module) -> Forward:
    """Compute it once, and give it at every call."""
    kept: list[Any] = []

    def call(x: torch.Tensor) -> Any:
        kept.append(module(x))
        return kept[0].clone()

    return call


class ChaoticInPart(Chaotic):
    """Gives a result besides that rounding leaves alone, and one that is always the same."""

    def forward(self, x: torch.Tensor) -> Any:
        """Return all three."""
        return super().forward(x), self.layer(x), torch.ones(3)


def keeping_the_first_of_three(module: nn.Module) -> Forward:
    """Compute one result once, and the others at every call."""
    kept: list[Any] = []

    def call(x: torch.Tensor) -> Any:
        now = module(x)
        kept.append(now[0])
        return kept[0].clone(), *now[1:]

    return call


def test_a_result_that_is_chaotic_is_named_beside_others() -> None:
    """Whoever keeps that one can't be told; nor can who keeps what is constant."""
    inputs = 1 + torch.rand(8, 16)
    found = judge(ChaoticInPart(), inputs, arm=keeping_the_first_of_three)
    constant = "output[2]: other inputs don't change it"
    chaotic = "output[0]: other inputs change it by no more than an arm may be off by"
    assert reservations_of(found).startswith(f"{constant}; {chaotic}")


def test_where_all_results_are_chaotic_that_is_said() -> None:
    """Of such a model nobody can tell whether it computes at all."""
    arms = same, precisely, keeping_the_first_result
    for found in (judge(Chaotic(), 1 + torch.rand(8, 16), arm=arm) for arm in arms):
        said = reservations_of(found)
        assert "output: other inputs change it by no more than an arm may be off by" in said
