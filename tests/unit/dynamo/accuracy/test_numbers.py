from __future__ import annotations

import pytest
import torch

from dynamometer.dynamo.accuracy.numbers import all_same

SMALL, LARGE = 6, 40_000


def values(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Draw a matrix, whole numbers so that every dtype holds them."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(1, 100, (2, count // 2), generator=generator).to(dtype)


@pytest.mark.parametrize("count", [SMALL, LARGE, LARGE + 2])
@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.complex64],
)
def test_tensors_are_the_same_unless_an_element_differs(dtype: torch.dtype, count: int) -> None:
    """The first or the last of all, of any dtype and size."""
    one = values(count, dtype)
    other = one.clone()
    assert all_same(one, other)
    for place in (0, -1):
        changed = one.clone()
        changed[place, place] = 0
        assert not all_same(one, changed)


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_flags_that_differ_are_found(count: int) -> None:
    """They have a byte each."""
    one = values(count, torch.int64) > 50
    other = one.clone()
    assert all_same(one, other)
    other[1, -1].logical_not_()
    assert not all_same(one, other)


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_nan_is_the_same_as_nan_whatever_its_bits(count: int) -> None:
    """But not as a number."""
    one = values(count, torch.float32)
    one[0, 0] = torch.nan
    other = one.clone()
    assert all_same(one, other)
    other.view(torch.int32)[0, 0] += 1
    assert other[0, 0].isnan()
    assert all_same(one, other)
    assert not all_same(one, other.nan_to_num())
    other[1, 1] += 1
    assert not all_same(one, other)


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_zeros_are_the_same_whatever_their_sign(count: int) -> None:
    """Their bits are not."""
    one = torch.zeros(2, count // 2)
    assert all_same(one, -one)


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_it_is_values_that_are_compared_however_they_lie_in_memory(count: int) -> None:
    """At an odd place, transposed, or with gaps."""
    one = values(count, torch.float32)
    shifted = torch.cat([torch.zeros(1), one.flatten()])[1:].view_as(one)
    assert all_same(one, shifted)
    assert all_same(one, one.T.contiguous().T)
    spread = torch.stack([one, one + 1], dim=-1)[..., 0]
    assert all_same(one, spread)
    spread[1, 1] += 1
    assert not all_same(one, spread)


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_what_is_negated_or_conjugated_when_it_is_read_is_not_what_memory_holds(count: int) -> None:
    """Torch does both when values are read."""
    one = torch.complex(values(count, torch.float32), values(count, torch.float32))
    assert not all_same(one, one.conj())
    assert all_same(one.conj(), one.conj().resolve_conj())
    imaginary = one.conj().imag
    assert imaginary.is_neg()
    assert not all_same(one.imag.contiguous(), imaginary.contiguous())
    assert not all_same(values(count, torch.float32), -values(count, torch.float32))


def test_parameters_that_need_gradients_are_compared() -> None:
    """Without a warning, and without a graph."""
    one = torch.nn.Parameter(values(LARGE, torch.float32))
    assert all_same(one, one.detach().clone())
    assert not all_same(one, one.detach() + 1)


def test_other_shapes_and_memory_that_is_not_there() -> None:
    """Nothing is read beyond what is stored, nor where nothing is."""
    one = torch.rand(1 << 16)
    assert not all_same(one, one[: 1 << 15])
    nothing = torch._efficientzerotensor(1 << 16)
    assert not all_same(one, torch.zeros(1 << 16))
    assert all_same(nothing, torch.zeros(1 << 16))
