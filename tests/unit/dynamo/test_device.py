"""Devices that are not here: types that nothing knows, and what NVIDIA's driver says of a card."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import torch

from dynamometer.common.execution import fork_server
from dynamometer.dynamo import device as devices
from dynamometer.dynamo.device import Cuda, open_device

if TYPE_CHECKING:
    from collections.abc import Callable

Fake = SimpleNamespace


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Fake]:
    """Have torch find a device of the type it keeps for others, with some functions."""

    def make(**functions: object) -> Fake:
        module = Fake(is_available=lambda: True, **functions)
        monkeypatch.setattr(torch, "get_device_module", lambda kind: module)
        return module

    return make


def test_a_device_is_asked_what_torch_asks_of_every_device(fake: Callable[..., Fake]) -> None:
    """Waiting, emptying the cache and counting go to its module."""
    calls: list[str] = []
    fake(
        get_device_name=lambda: "Fake 9000",
        synchronize=lambda: calls.append("synchronize"),
        empty_cache=lambda: calls.append("empty_cache"),
        reset_peak_memory_stats=lambda: calls.append("reset"),
        memory_allocated=lambda: 3.0,
        max_memory_allocated=lambda: 5.0,
    )
    device = open_device("privateuseone")
    device.synchronize()
    device.release_cached()
    device.reset_peak()
    assert calls == ["synchronize", "empty_cache", "reset"]
    assert (device.used_bytes(), device.peak_bytes()) == (3, 5)
    assert device.name == "Fake 9000"
    assert device.torch_device == torch.device("privateuseone")
    assert not device.is_disturbed()


def test_what_a_device_lacks_is_never_zero(fake: Callable[..., Fake]) -> None:
    """It has its type for a name, and memory that can't be counted is an error, not 0 bytes."""
    fake(synchronize=lambda: None)
    device = open_device("privateuseone")
    assert device.name == "privateuseone"
    device.release_cached()
    with pytest.raises(AttributeError):
        device.used_bytes()


def test_a_device_that_is_not_there_is_refused(fake: Callable[..., Fake]) -> None:
    """One that torch can name but doesn't find."""
    fake().is_available = lambda: False
    with pytest.raises(ValueError, match="torch finds no device of type 'privateuseone' here"):
        open_device("privateuseone")


def test_a_type_there_is_not_is_refused() -> None:
    """Torch's own word for it is in the message."""
    with pytest.raises(ValueError, match="torch knows no device type 'abacus'"):
        open_device("abacus")


class NvmlError(Exception):
    """What the driver's library raises."""


_HOT, _SLOW_FOR_POWER = 8, 4


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """A driver with one card, on which this process alone computes."""

    def handle_of(uuid: str) -> str:
        return f"handle of {uuid}"

    state = Fake(
        inits=0,
        reasons=0,
        users=[Fake(pid=1, smUtil=30), Fake(pid=1, smUtil=40), Fake(pid=2, smUtil=0)],
    )

    def init() -> None:
        state.inits += 1

    state.library = Fake(
        NVMLError=NvmlError,
        nvmlInit=init,
        nvmlDeviceGetHandleByUUID=handle_of,
        nvmlDeviceGetCurrentClocksEventReasons=lambda handle: state.reasons,
        nvmlClocksThrottleReasonHwSlowdown=_HOT,
        nvmlClocksThrottleReasonSwThermalSlowdown=32,
        nvmlDeviceGetProcessUtilization=lambda handle, since: state.users,
    )
    monkeypatch.setitem(sys.modules, "pynvml", state.library)
    monkeypatch.setattr(devices, "find_spec", lambda name: name)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda: Fake(uuid="1-2"))
    return state


def test_a_card_of_ones_own_is_not_disturbed(driver: Fake) -> None:
    """One process computes on it, others only hold it; the library is started once."""
    card = Cuda()
    assert [card.is_disturbed() for _ in range(3)] == [False] * 3
    assert driver.inits == 1


def test_another_process_that_computes_disturbs(driver: Fake) -> None:
    """Two of them did lately."""
    driver.users.append(Fake(pid=3, smUtil=1))
    assert Cuda().is_disturbed()


@pytest.mark.parametrize(("reasons", "is_disturbed"), [(_HOT, True), (_SLOW_FOR_POWER, False)])
def test_heat_disturbs(driver: Fake, reasons: int, is_disturbed: bool) -> None:  # noqa: FBT001  from a table
    """A cap on power is how the card always runs."""
    driver.reasons = reasons
    assert Cuda().is_disturbed() is is_disturbed


@pytest.mark.parametrize(
    "function",
    [
        "nvmlInit",
        "nvmlDeviceGetHandleByUUID",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetProcessUtilization",
    ],
)
def test_a_driver_that_does_not_tell_disturbs_nothing(driver: Fake, function: str) -> None:
    """What isn't known counts as no."""

    def fail(*_: object) -> None:
        raise NvmlError

    setattr(driver.library, function, fail)
    assert not Cuda().is_disturbed()


def test_without_the_library_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    assert not Cuda().is_disturbed()


@pytest.mark.parametrize(("kind", "works"), [("cpu", True), ("meta", True), ("nothing", False)])
def test_a_fork_tries_the_device(kind: str, *, works: bool) -> None:
    """By putting a tensor there."""
    assert fork_server._works_in_forks(kind) is works


def test_the_peak_counts_what_graphs_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay allocates nothing, and what it writes to is nobody else's."""
    segments = [
        {"device": 0, "segment_pool_id": (0, 0), "total_size": 900, "allocated_size": 100},
        {"device": 0, "segment_pool_id": (0, 1), "total_size": 500, "allocated_size": 20},
        {"device": 1, "segment_pool_id": (0, 2), "total_size": 300, "allocated_size": 0},
        {"device": 0, "total_size": 70, "allocated_size": 0},
    ]
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 120)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 400)
    assert (Cuda().used_bytes(), Cuda().peak_bytes()) == (120, 880)
