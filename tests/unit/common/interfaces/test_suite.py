"""A loaded model, and copies of it."""

from __future__ import annotations

import copyreg
import queue
import threading
from pathlib import Path

import pytest
import torch
from torch import nn

from dynamometer.common.interfaces.suite import LoadedModel


class Held:
    """What layers that synchronise between devices hold."""

    def __init__(self) -> None:
        """Hold a lock of either kind."""
        self.locks = (threading.Lock(), threading.RLock())
        self.condition = threading.Condition()


class Synchronised(nn.Linear):
    """A layer with locks."""

    def __init__(self) -> None:
        """Hold them at some depth."""
        super().__init__(2, 2)
        self.held = [Held()]


def test_a_copy_has_locks_of_its_own() -> None:
    """Such layers were once said not to run in eager, as nothing copies a lock."""
    model = Synchronised()
    before = dict(copyreg.dispatch_table)
    copied = LoadedModel(module=model, args=(torch.ones(2),)).copy().module
    assert copyreg.dispatch_table == before
    pairs = zip(model.held[0].locks, copied.held[0].locks, strict=True)
    assert all(type(one) is type(other) and one is not other for one, other in pairs)
    with model.held[0].locks[0], model.held[0].condition:
        assert copied.held[0].locks[0].acquire(blocking=False)
    with copied.held[0].condition as held:
        copied.held[0].condition.notify_all()
    assert held


def test_inputs_have_locks_of_their_own() -> None:
    """As what a queue hands on."""
    waiting: queue.Queue[int] = queue.Queue()
    waiting.put(1)
    (copied,) = LoadedModel(module=nn.Identity(), args=(waiting,)).copy().args
    assert (copied.get(), waiting.get()) == (1, 1)


def test_what_cant_be_copied_is_said() -> None:
    """And why a copy is wanted."""
    model = nn.Linear(2, 2)
    with Path(__file__).open() as file:
        model.file = file
        with pytest.raises(TypeError, match=r"can't be copied, and each arm needs .*TextIOWrapper"):
            LoadedModel(module=model).copy()


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_copy_of_a_scripted_module_can_be_trained(*, is_frozen: bool) -> None:
    """Its parameters are its own, and no results of the original's."""
    part = torch.jit.script(nn.Linear(2, 2))
    part.weight.requires_grad_(not is_frozen)
    original = nn.Sequential(part, nn.Linear(2, 2))
    copied = LoadedModel(module=original, args=(torch.ones(2),)).copy().module
    trained = [each.requires_grad for each in original.parameters()]
    assert [each.requires_grad for each in copied.parameters()] == trained
    assert all(each.is_leaf for each in copied.parameters())
    before = [each.clone() for each in original.parameters()]
    copied(torch.ones(2)).sum().backward()
    torch.optim.SGD(copied.parameters(), lr=1.0).step()
    assert all(each.grad is None for each in original.parameters())
    for known, now, own in zip(before, original.parameters(), copied.parameters(), strict=True):
        assert torch.equal(known, now)
        assert torch.equal(own, now) is not own.requires_grad


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_scripted_module_may_share_weights_with_another() -> None:
    """As its own original, which torch's copy doesn't keep."""
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, torch.jit.script(layer))
    copied = LoadedModel(module=model, args=(torch.ones(2),)).copy().module
    assert all(each.is_leaf for each in copied.parameters())
    torch.testing.assert_close(copied(torch.ones(2)), model(torch.ones(2)))
