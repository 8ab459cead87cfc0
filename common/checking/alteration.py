"""Other inputs than a model was given, by which what is computed is told from what is replayed."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
import torch

from dynamometer.common.checking.snapshots import distinct, inputs_of, state_of
from dynamometer.common.checking.steps import copied_inputs
from dynamometer.dynamo import state
from dynamometer.dynamo.accuracy.changes import has_arithmetic, is_like
from dynamometer.dynamo.accuracy.leaves import OFFSETS
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from dynamometer.common.interfaces.suite import LoadedModel

_OF_INPUTS = (0.5, 0.25)
_OF_WEIGHTS = (1.0, 0.5)
"""What elements of changed inputs and weights are multiplied by: exact in every precision, far more
than rounding, and in range wherever the original is. Not all by the same, which a normalisation
would undo. No number of an input stays, nor the largest and smallest of a weight's rows: a backend
may have kept what it took from one, as a scale. All weights can't become smaller: through many
layers nothing would be left."""

_BEYOND = (0.5, 2.0)
"""Likewise of inputs that may leave their range, which a backend may have kept as well."""

_INSTEAD_OF_ZERO = (0.5, -0.5)
"""What changed inputs and weights are where all were zero."""

_LEFT_OUT = -50.0
"""What is added to scores that are to be left out, or less. It is far from the values in use, of
which rounding makes others: -1e4 is -9984 in bfloat16."""


class Alteration(Enum):
    """What of the inputs is changed, so that computing is told from replaying.

    They are tried in this order, the first that changes most; the first under which eager still
    gives numbers is kept.
    """

    BEYOND = "all, and some numbers become larger than any was"
    ALL = "all"
    BUT_LARGEST = "all, but whole numbers only change places"
    BUT_ZEROS = "all but numbers that are all zero"
    BUT_CONSTANTS = "all but whole numbers that are all the same"
    BUT_BOTH = "all but numbers that are all zero, and whole numbers that are all the same"
    BUT_THESE = "all but these, and whole numbers only change places"
    NUMBERS = "numbers, unless they are all zero"

    @property
    def changes_zeros(self) -> bool:
        """Whether numbers are changed that are all zero."""
        return self in {
            Alteration.BEYOND, Alteration.ALL, Alteration.BUT_LARGEST, Alteration.BUT_CONSTANTS,
        }  # fmt: skip

    @property
    def changes_constants(self) -> bool:
        """Whether whole numbers are changed that are all the same."""
        return self in {
            Alteration.BEYOND, Alteration.ALL, Alteration.BUT_LARGEST, Alteration.BUT_ZEROS,
        }  # fmt: skip

    @property
    def changes_largest(self) -> bool:
        """Whether the largest whole numbers become others, rather than the same in other places."""
        return self not in {Alteration.BUT_LARGEST, Alteration.BUT_THESE, Alteration.NUMBERS}


@state.without_gradients()
def alter(loaded: LoadedModel, alteration: Alteration, mode: Mode) -> None:
    """Change inputs in place, and in training weights too, the same in every copy of a model.

    Numbers of inputs are halved, and doubled or divided by four, and change sign where there are
    both; those that are farthest from zero are doubled, as a range may have been kept, but none if
    all are within 1, nor elsewhere than on CPUs. Where all are zero, as in an empty cache or a new
    bias, they become 0.5 and -0.5. Half of the weights are halved. Whole numbers, masks that are
    added, and numbers some of which are zero change places along the last dimension where that
    makes a difference, so that none leaves its range. Of three different whole ones or more the
    largest are lowered, as the sum of a bag, the edges of a graph, and the longest of many lengths
    are the same in any order. Where a row has some of them more than once, one becomes what is
    beside it, as how many are zero is the same in any order, too. Where all are the same, as in a
    mask that leaves nothing out, the last ones are others. In inference weights and buffers stay: a
    backend may take them for constants. Where the rows of a nested tensor begin is part of its
    shape, and stays. In a copy that is off by rounding the exact model decides what is changed.
    """
    exact = state_of(loaded.nudged_from) if loaded.nudged_from else {}
    # A tensor that is an input twice is changed once, as its copies are where they are two.
    once = {id(value): (path, value) for path, value in state_of(loaded).items()}
    for path, each in once.values():
        if not isinstance(each, torch.Tensor) or each.is_nested or path.endswith(OFFSETS):
            continue
        value = _written(each)
        if has_arithmetic(value):
            _change(path, value, _deciding(path, each, exact.get(path)), alteration, mode)


def _deciding(path: str, tensor: torch.Tensor, exact: object) -> torch.Tensor:
    """Return the values that decide what becomes of a tensor; a nudged one's are its exact ones.

    Buffers aren't nudged. A copy of an expanded parameter is dense in every copy of a model, a copy
    of an expanded input in a nudged one alone.
    """
    if (
        not isinstance(exact, torch.Tensor)
        or path.startswith("buffers")
        or exact.dtype is not tensor.dtype
        or exact.shape != tensor.shape
    ):
        return _written(tensor)
    is_parameter = path.startswith("parameters")
    return distinct(exact.detach(), of=tensor) if is_parameter else _written(exact)


def _change(
    path: str, value: torch.Tensor, by: torch.Tensor, alteration: Alteration, mode: Mode
) -> None:
    """Change a tensor in place.

    Args:
        path: where it is in the model's state.
        value: its values, each of them once.
        by: those that decide what becomes of them.
        alteration: what of inputs is changed.
        mode: weights and buffers are changed in training alone.
    """
    if path.startswith("inputs") and _is_number(value):
        _change_numbers(value, by, alteration)
    elif path.startswith("inputs") and alteration is not Alteration.NUMBERS:
        _move(value, constant=alteration.changes_constants)
        if alteration.changes_largest:
            _change_counts(value)
    elif not path.startswith("inputs") and mode is Mode.TRAINING and _is_number(value):
        is_zero = alteration.changes_zeros and not bool(by.any())
        if is_zero:  # a bias as it is created: of it only a gradient would be seen
            value.copy_(_factors(by, _INSTEAD_OF_ZERO))
        else:
            value.mul_(_factors(by, _OF_WEIGHTS, second=_is_extreme(by)))


def left_alone(loaded: LoadedModel, alteration: Alteration) -> tuple[str, ...]:
    """Name inputs of which something is as before after an alteration; they stay as they are."""
    other = loaded.with_inputs(copied_inputs)
    alter(other, alteration, Mode.INFERENCE)
    before = inputs_of(loaded)
    now = {path: each for path, each in inputs_of(other).items() if not path.endswith(OFFSETS)}
    same = tuple(
        f"{path}: indices" if _has_indices(each) else path
        for path, each in now.items()
        if isinstance(each, np.ndarray)  # of text, or of memory that torch can't write to
        or (isinstance(each, torch.Tensor) and _is_same(before[path], each))
    )
    if alteration.changes_largest or alteration is Alteration.NUMBERS:
        return same
    moved = (
        f"{path} (its whole numbers only change places)"
        for path, each in now.items()
        if isinstance(each, torch.Tensor) and path not in same and _could_count_otherwise(each)
    )
    return (*same, *moved)


def _could_count_otherwise(value: torch.Tensor) -> bool:
    if value.is_nested or not has_arithmetic(value):
        return False
    if _is_number(value) and not _is_added_mask(value):
        return False
    other = value.detach().clone()
    (_repeat_one if _is_number(value) else _change_counts)(other)
    return not torch.equal(other, value)


def _has_indices(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is not torch.strided


def _is_same(before: object, now: torch.Tensor) -> bool:
    return _has_indices(now) or (now.numel() > 0 and is_like(before, now))


def _written(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of the values of a tensor, each of them once."""
    if tensor.layout is torch.sparse_coo:
        return tensor.detach()._values()  # noqa: SLF001  `values` refuses what isn't coalesced
    if tensor.layout is torch.sparse_csr:
        return tensor.detach().values()
    return distinct(tensor, of=tensor)


def _change_numbers(value: torch.Tensor, by: torch.Tensor, alteration: Alteration) -> None:
    by = by.clone()  # it is moved as the numbers are, which may be the same memory
    if _is_added_mask(by) and alteration is not Alteration.NUMBERS:
        _move(value, constant=False, by=by)
        _move(by, constant=False)
        if alteration.changes_largest:
            _repeat_one(value, by)
        return
    is_zero = by == 0
    if alteration is not Alteration.NUMBERS and bool(is_zero.any()) and not bool(is_zero.all()):
        for each in (value, by):
            _move(each, constant=False, by=is_zero)
    if alteration.changes_zeros and bool(is_zero.all()):
        value.copy_(_factors(by, _INSTEAD_OF_ZERO))
    else:
        is_beyond = alteration is Alteration.BEYOND and _may_grow(by)
        factors = _signed(by, _BEYOND if is_beyond else _OF_INPUTS)
        value.mul_(_factors(by, factors, second=_is_farthest(by) if is_beyond else None))


def _is_added_mask(value: torch.Tensor) -> bool:
    """Return whether numbers are zero or so far below it that they leave something out."""
    if value.is_complex():
        return False
    is_out = value <= _LEFT_OUT
    return bool(is_out.any()) and bool((is_out | (value == 0)).all())


def _move(value: torch.Tensor, *, constant: bool, by: torch.Tensor | None = None) -> None:
    """Change numbers by place; where all are the same, lessen the last of each row.

    Args:
        value: numbers of any shape.
        constant: whether those are changed that are all the same.
        by: what is to become another one where the numbers are moved, of that shape, or of one row
            for many; else the numbers.
    """
    by = value if by is None else by
    several = [index for index, size in enumerate(by.shape) if size > 1]
    if not value.numel():
        return
    for dimension in reversed(several):
        if not torch.equal(by.roll(1, dims=dimension), by):
            value.copy_(value.roll(1, dims=dimension))
            return
    last = value.narrow(several[-1], -1, 1) if several else value
    if constant and value.dtype is torch.bool:
        last.logical_not_()
    elif constant and bool(value.flatten()[0] > 0):
        last.sub_(1)


def _change_counts(value: torch.Tensor) -> None:
    """Have other whole numbers occur, and others as often as they do."""
    if (lowered := _lowered(value)) is not None:
        value.copy_(lowered)
    _repeat_one(value)


def _repeat_one(value: torch.Tensor, by: torch.Tensor | None = None) -> None:
    """Make one number of each row its neighbour's, where the row has some more than once.

    Of the first two that differ the one becomes the other that the row has less often, so that
    none is gone.

    Args:
        value: numbers of any shape.
        by: those that decide which, of that shape, or of one row for many; else the numbers.
    """
    by = value if by is None else by
    several = [index for index, size in enumerate(by.shape) if size > 1]
    if not several or not value.numel():
        return
    value, by = (each.movedim(several[-1], -1) for each in (value, by.expand_as(value)))
    wide = by if _is_number(by) else by.long()
    differs = wide[..., 1:] != wide[..., :-1]
    place = differs.int().argmax(-1, keepdim=True)
    one, other = wide.gather(-1, place), wide.gather(-1, place + 1)
    times, of_other = ((wide == each).sum(-1, keepdim=True) for each in (one, other))
    is_more = times >= of_other
    there, rarer = torch.where(is_more, place, place + 1), torch.where(is_more, place + 1, place)
    is_changed = _repeating(wide) & differs.any(-1, keepdim=True)
    numbers = value if _is_number(value) else wide
    becomes = numbers.gather(-1, torch.where(is_changed, rarer, there))
    value.copy_(numbers.scatter(-1, there, becomes))


def _lowered(value: torch.Tensor) -> torch.Tensor | None:
    """Return whole numbers the largest of which are lowered; `None` where that can't be.

    They become the next that are there, or one less, in range either way. Of two different ones or
    fewer, as in masks, none is lowered, nor where each row has each number once and wouldn't then:
    what is written to one place twice is undefined.
    """
    is_narrow = value.dtype in {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
    wide = value.detach() if is_narrow else value.detach().long()
    largest = wide.max() if wide.numel() else None
    below = wide[wide < largest] if largest is not None else wide
    if not below.numel() or bool((below == below[0]).all()):
        return None
    may_repeat = bool(_repeating(wide).any())
    candidates = (wide.clamp(max=limit) for limit in (below.max(), wide.max() - 1))
    return next((each for each in candidates if may_repeat or not _repeating(each).any()), None)


def _repeating(values: torch.Tensor) -> torch.Tensor:
    """Return of each row, `[..., 1]`, whether a number is in it more than once."""
    return (values.sort(dim=-1).values.diff(dim=-1) == 0).any(-1, keepdim=True)


def _signed(value: torch.Tensor, factors: tuple[float, float]) -> tuple[float, float]:
    """Return factors as they are, or negative ones where a tensor has both signs.

    Not one of each: a sum that decides which way a model goes is to have another sign, too.
    """
    if value.is_complex() or not value.numel():
        return factors
    has_both = bool((value < 0).any()) and bool((value > 0).any())
    one, other = factors
    return (-one, -other) if has_both else factors


def _factors(
    value: torch.Tensor, factors: tuple[float, float], *, second: torch.Tensor | None = None
) -> torch.Tensor:
    """Draw a factor for each element, always the same ones; some are to have the second."""
    generator = torch.Generator().manual_seed(value.numel())
    drawn = torch.randint(len(factors), tuple(value.shape), generator=generator).to(value.device)
    if second is not None:
        drawn = drawn.masked_fill(second, 1)
    return torch.tensor(factors, device=value.device)[drawn].to(value.dtype)


def _may_grow(value: torch.Tensor) -> bool:
    """Return whether numbers can become larger than any was.

    Numbers up to 1 are shares, pixels or angles, which models convert or look up. Elsewhere than on
    CPUs what is looked up too far ends the process.
    """
    return value.is_cpu and value.numel() > 0 and bool((value.abs() > 1).any())


def _is_farthest(value: torch.Tensor) -> torch.Tensor | None:
    """Return which elements are farthest from zero; `None` if several are and no other is there."""
    sizes = value.abs()
    farthest = sizes == sizes.max()
    return None if value.numel() > 1 and bool(farthest.all()) else farthest


def _is_extreme(value: torch.Tensor) -> torch.Tensor | None:
    """Return which elements are the largest or smallest of their row; `None` if that is all."""
    if value.is_complex() or not value.numel() or not value.dim():
        return None
    rows = value.flatten(1) if value.dim() > 1 else value.unsqueeze(0)
    extreme = (rows == rows.amax(1, keepdim=True)) | (rows == rows.amin(1, keepdim=True))
    return None if bool(extreme.all()) else extreme.reshape(value.shape)


def _is_number(value: torch.Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()
