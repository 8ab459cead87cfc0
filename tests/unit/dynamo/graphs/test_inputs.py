from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dynamometer.dynamo.graphs.inputs import describe, draw, dtype_of
from dynamometer.dynamo.graphs.targets import UnsaveableError
from dynamometer.results.values.graphs import InputDescription

DTYPES = [
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64),
    *(torch.int64, torch.int32, torch.uint8, torch.bool),
]


@st.composite
def tensors(take: st.DrawFn) -> torch.Tensor:
    """Make tensors of any dtype, shape, order of dimensions, and of repeated or left out rows."""
    dtype = take(st.sampled_from(DTYPES))
    shape = take(st.lists(st.integers(0, 4), max_size=4))
    generator = torch.Generator().manual_seed(take(st.integers(0, 99)))
    spread = take(st.sampled_from([0, 1, 5, 60]))
    tensor = (torch.randn(shape, generator=generator) * spread).abs().to(dtype)
    if shape and take(st.booleans()):
        tensor = tensor.permute(*take(st.permutations(range(len(shape)))))
    how = take(st.sampled_from(["plain", "repeated", "every other"])) if shape else "plain"
    if how == "repeated":
        return tensor.unsqueeze(0).expand(3, *tensor.shape)
    return tensor[::2] if how == "every other" else tensor


def again(tensor: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """Draw a tensor like another, by way of JSON."""
    text = msgspec.json.encode(describe([tensor]))
    (found,) = draw(msgspec.json.decode(text, type=tuple[InputDescription, ...]), seed)
    assert isinstance(found, torch.Tensor)
    return found


@given(tensors(), st.integers(0, 2**63 - 1))
def test_what_is_drawn_is_of_the_same_kind_and_within_what_was_seen(
    tensor: torch.Tensor, seed: int
) -> None:
    """Shape, strides and dtype are equal; no value is less or more than those there were."""
    found = again(tensor, seed)
    assert (found.shape, found.stride(), found.dtype) == (
        *(tensor.shape, tensor.stride()),
        tensor.dtype,
    )
    if tensor.numel():
        one, two = (
            torch.view_as_real(each) if each.is_complex() else each for each in (tensor, found)
        )
        assert one.min() <= two.min()
        assert two.max() <= one.max()


@given(tensors(), st.integers(0, 9))
def test_the_same_seed_gives_the_same(tensor: torch.Tensor, seed: int) -> None:
    """Inputs can be had again."""
    assert again(tensor, seed).equal(again(tensor, seed))


def test_another_seed_gives_others() -> None:
    """What is drawn is no copy."""
    tensor = torch.randn(50)
    assert not again(tensor, 1).equal(again(tensor, 2))
    assert not again(tensor, 1).equal(tensor)


def test_the_distribution_of_numbers_is_kept() -> None:
    """Mean, deviation, and the shares of zeros and of what is not finite are the example's."""
    tensor = torch.randn(20_000) * 3 + 5
    tensor[:5000] = 0
    tensor[5000:6000], tensor[6000:6500], tensor[6500:6600] = -math.inf, math.inf, math.nan
    found = again(tensor)
    for one, two in ((tensor, found),):
        assert float((two == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
        assert float((two == -math.inf).float().mean()) == pytest.approx(0.05, abs=0.01)
        assert float((two == math.inf).float().mean()) == pytest.approx(0.025, abs=0.01)
        assert int(two.isnan().sum()) > 0
        finite = [each[each.isfinite() & (each != 0)] for each in (one, two)]
        assert float(finite[1].mean()) == pytest.approx(float(finite[0].mean()), abs=0.2)
        assert float(finite[1].std()) == pytest.approx(float(finite[0].std()), abs=0.2)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(5),
        torch.tensor([0.0, torch.finfo(torch.float32).min]).repeat(50),
        torch.tensor([3, 7]).repeat(50),
        torch.tensor([True, False, False]).repeat(50),
    ],
)
def test_of_few_values_no_other_is_drawn(tensor: torch.Tensor) -> None:
    """A mask stays one, and ones stay ones."""
    assert set(again(tensor).tolist()) == set(tensor.tolist())


def test_offsets_stay_in_order() -> None:
    """Whole numbers that rise along the last dimension do so again."""
    offsets = torch.arange(0, 400, 4).reshape(2, 50)
    found = again(offsets)
    assert bool((found.diff(dim=-1) >= 0).all())
    assert found[:, 0].tolist() == [0, 0]  # else `embedding_bag` refuses them
    assert found[:, -1].tolist() == [396, 396]
    assert found.unique().numel() > 10  # type: ignore[no-untyped-call]  # torch's


def test_the_largest_whole_number_can_be_drawn() -> None:
    """Limits of int64 are no fault."""
    limits = torch.iinfo(torch.int64)
    found = again(torch.arange(40) * (limits.max // 40) * torch.tensor([-1, 1]).repeat(20))
    assert found.dtype is torch.int64


def test_numbers_come_back_as_they_were() -> None:
    """Whatever is no tensor is a constant."""
    values: list[Any] = [3, 2.5, True, None, "mean"]
    assert draw(describe(values), 0) == values


def test_a_gradient_is_asked_for_again() -> None:
    """Parameters are drawn as such."""
    assert again(torch.nn.Parameter(torch.randn(3))).requires_grad


@pytest.mark.parametrize(
    "value",
    [
        object(),
        torch.ones(3).to_sparse(),
        torch.ones(3, device="meta"),
        torch.ones(3, dtype=torch.complex64).conj(),
        torch.ones(3, dtype=torch.complex64).conj().imag,
    ],
)
def test_what_is_no_plain_tensor_is_refused(value: Any) -> None:
    """The reason says what it is."""
    with pytest.raises(UnsaveableError, match="it takes a "):
        describe([value])


def test_only_a_dtype_is_taken_for_one() -> None:
    """A file can't name another attribute of torch."""
    with pytest.raises(ValueError, match="has no dtype 'load'"):
        dtype_of("load")
