from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from dynamometer.common.checking.alteration import Alteration, alter
from dynamometer.common.checking.snapshots import Snapshot
from dynamometer.common.interfaces.suite import Inputs, LoadedModel
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Callable


class Counting(nn.Module):
    """A layer with buffers of two kinds."""

    calls: torch.Tensor
    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("total", torch.zeros(3))


def loaded(**kwargs: Any) -> LoadedModel:
    """Return a model with a tensor, indices and a list for inputs."""
    torch.manual_seed(0)
    return LoadedModel(
        module=Counting(),
        args=(torch.rand(2, 3), torch.tensor([[0, 1, 2]]), [torch.rand(3), 5]),
        kwargs=kwargs,
    )


def _write_an_input(model: LoadedModel) -> None:
    model.args[0].add_(1.0)


def _write_within_a_list(model: LoadedModel) -> None:
    model.args[2][0].mul_(2.0)


def _count(model: LoadedModel) -> None:
    model.module.calls.add_(1)  # type: ignore[operator, union-attr]  # a buffer


def _replace_a_buffer(model: LoadedModel) -> None:
    model.module.total = torch.ones(3)


@torch.no_grad()
def _write_a_weight(model: LoadedModel) -> None:
    next(model.module.parameters()).add_(1.0)


CHANGES: dict[str, Callable[[LoadedModel], None]] = {
    "inputs.args[0]": _write_an_input,
    "inputs.args[2][0]": _write_within_a_list,
    "buffers.calls": _count,
    "buffers.total": _replace_a_buffer,
    "parameters.layer.weight": _write_a_weight,
}


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_is_found_and_put_back(path: str) -> None:
    """Of parameters, buffers and inputs, by the difference, under the model's own names."""
    model = loaded()
    start = Snapshot.of(model)
    assert start.changes() == {}
    CHANGES[path](model)
    (found,) = start.changes()
    assert found == f"change of {path}"
    start.restore()
    assert start.changes() == {}


@pytest.mark.parametrize("path", CHANGES)
def test_what_is_the_same_is_kept_once(path: str) -> None:
    """By all snapshots of a model and its copies; what has changed is kept by the one alone."""
    original = loaded()
    first = Snapshot.of(original)
    own = original.copy()
    start = Snapshot.of(own, beside=first.kept)
    tensors = {each for each, kept in first.kept.items() if isinstance(kept, torch.Tensor)}
    assert tensors == {each for each in tensors if start.kept[each] is first.kept[each]}
    CHANGES[path](own)
    now = Snapshot.of(own, beside=start.kept)
    assert [each for each in tensors if now.kept[each] is not first.kept[each]] == [path]
    assert now.changes() == {}
    assert list(start.changes()) == [f"change of {path}"]
    start.restore()
    assert start.changes() == {}
    assert Snapshot(original, start.kept).changes() == {}


class OwnKind(torch.Tensor):
    """A tensor that says what it likes of itself."""


ALIKE_BUT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "class": lambda value: value.clone().as_subclass(OwnKind),
    "layout": lambda value: value.to_sparse(),
    "bits": lambda value: value.to(torch.float8_e5m2),
}


@pytest.mark.parametrize("what", ALIKE_BUT)
def test_what_may_not_be_the_same_is_kept_anew(what: str) -> None:
    """It is not known to be: a class may compare as it likes."""
    value = ALIKE_BUT[what](torch.rand(2, 3))
    known = {"inputs.args[0]": value.clone()}
    kept = Snapshot.of(LoadedModel(module=Counting(), args=(value,)), beside=known).kept
    assert kept["inputs.args[0]"] is not known["inputs.args[0]"]


@pytest.mark.parametrize("rows", [2, 10_000])
def test_what_is_no_number_has_not_changed_while_it_stays_none(rows: int) -> None:
    """Be it compared in memory or element by element."""
    value = torch.rand(rows, 3)
    value[1] = torch.nan
    start = Snapshot.of(LoadedModel(module=Counting(), args=(value,)))
    again = Snapshot.of(start.loaded, beside=start.kept)
    assert again.kept["inputs.args[0]"] is start.kept["inputs.args[0]"]
    assert start.changes() == {}
    value[1, 1] = 0.5
    (change,) = start.changes().values()
    assert change.value[1, 1] == 0.5
    start.restore()
    assert start.changes() == {}
    assert value[1, 1].isnan()


def test_a_change_is_a_difference() -> None:
    """So that it is compared by its own size, however large the value."""
    model = loaded()
    start = Snapshot.of(model)
    model.args[0].add_(0.25)
    change = start.changes()["change of inputs.args[0]"]
    torch.testing.assert_close(change.value, torch.full((2, 3), 0.25))


def test_what_grew_cannot_be_put_back() -> None:
    """A cache that is passed in and appended to is found changed, and stays so."""
    model = loaded()
    start = Snapshot.of(model)
    model.args[2].append(torch.rand(1))
    assert list(start.changes()) == ["change of inputs.args[2][2]"]
    start.restore()
    assert list(start.changes()) == ["change of inputs.args[2][2]"]


def test_other_inputs_are_other_numbers_in_the_same_range() -> None:
    """None stays what it was, indices change places, and in inference weights stay."""
    model = loaded(scale=torch.tensor(2.0))
    start = Snapshot.of(model)
    before, indices = model.args[0].clone(), model.args[1].clone()
    alter(model, Alteration.ALL, Mode.INFERENCE)
    factors = set((model.args[0] / before).flatten().tolist())
    assert len(factors) > 1
    assert factors == {0.5, 0.25}
    assert model.args[1].tolist() == [[2, 0, 1]]
    assert {path for path in start.changes() if "parameters" in path} == set()
    start.restore()
    alter(model, Alteration.NUMBERS, Mode.INFERENCE)
    assert torch.equal(model.args[1], indices)


def test_in_training_weights_are_others_too() -> None:
    """A backend that has kept them, or the largest of a row, from its first call is found."""
    model = loaded()
    start = Snapshot.of(model)
    before = model.module.get_parameter("layer.weight").detach().clone()
    alter(model, Alteration.NUMBERS, Mode.TRAINING)
    assert "change of parameters.layer.weight" in start.changes()
    now = model.module.get_parameter("layer.weight").detach()
    assert set((now / before).flatten().tolist()) == {1.0, 0.5}
    for extreme in (before.argmax(1, keepdim=True), before.argmin(1, keepdim=True)):
        assert torch.equal(now.gather(1, extreme), before.gather(1, extreme) / 2)
    start.restore()


def test_inputs_of_every_size_are_looked_at() -> None:
    """Each call's have a number."""
    second = Inputs(args=(torch.ones(3),))
    model = LoadedModel(module=nn.ReLU(), args=(torch.ones(2),), others=(second,))
    start = Snapshot.of(model)
    second.args[0].zero_()
    assert list(start.changes()) == ["change of inputs[1].args[0]"]


def test_elements_that_share_memory_are_written_once() -> None:
    """An expanded input, or weight, is one element in several places."""
    model = LoadedModel(module=nn.ReLU(), args=(torch.rand(3, 1).expand(3, 4),))
    start = Snapshot.of(model)
    alter(model, Alteration.NUMBERS, Mode.INFERENCE)
    assert list(start.changes()) == ["change of inputs.args[0]"]
    start.restore()
    assert start.changes() == {}


STATES = {
    "flags": torch.tensor([True, False]),
    "fp8": torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn),
    "sparse": torch.eye(2).to_sparse(),
    "small integers": torch.tensor([1, 2], dtype=torch.uint8),
}


@pytest.mark.parametrize("kind", STATES)
def test_a_change_of_any_kind_of_state_is_found_and_put_back(kind: str) -> None:
    """To nothing, too, which is not the same as no change."""
    module = nn.Module()
    module.register_buffer("state", STATES[kind].clone())
    model = LoadedModel(module=module)
    start = Snapshot.of(model)
    assert start.changes() == {}
    state: Any = module.state
    state.copy_(torch.zeros(2).to(state.dtype) if kind != "sparse" else (state * 0))
    changes = start.changes()
    assert set(changes) == {"change of buffers.state"}
    assert changes["change of buffers.state"].value.any()
    start.restore()
    assert start.changes() == {}
