"""Everything that differs between device types: waiting, naming, memory."""

from __future__ import annotations

import ctypes
import gc
import time
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import torch

from dynamometer.dynamo.processor import processor_name

_RESET_PEAK = "5"  # proc(5): writing 5 to clear_refs resets the peak resident set size


class Device(Protocol):
    """A device that models run on."""

    @property
    def torch_device(self) -> torch.device:
        """What tensors and modules are moved to."""
        ...

    @property
    def name(self) -> str:
        """The hardware's own name."""
        ...

    def synchronize(self) -> None:
        """Return when everything that was launched has ended."""
        ...

    def release_cached(self) -> None:
        """Drop garbage and give cached memory back."""
        ...

    def used_bytes(self) -> int:
        """Memory in use now."""
        ...

    def reset_peak(self) -> None:
        """Start counting the peak anew."""
        ...

    def peak_bytes(self) -> int:
        """Largest memory in use since `reset_peak`."""
        ...

    def is_disturbed(self) -> bool:
        """Whether another process computes on it now, or heat slows it; unknown counts as no."""
        ...


class Cpu:
    """The host; memory is the process's resident set."""

    torch_device = torch.device("cpu")

    @property
    def name(self) -> str:
        """The processor's name."""
        return processor_name()

    def synchronize(self) -> None:
        """Do nothing: operators have ended when they return."""

    def release_cached(self) -> None:
        """Collect garbage and trim the heap, where the C library can."""
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

    def used_bytes(self) -> int:
        """Resident set size."""
        return _status_bytes("VmRSS")

    def reset_peak(self) -> None:
        """Reset Linux's high-water mark of the resident set."""
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK)

    def peak_bytes(self) -> int:
        """Linux's high-water mark of the resident set."""
        return _status_bytes("VmHWM")

    def is_disturbed(self) -> bool:
        """Leave that to Linux's counters (`common.machine.surroundings`)."""
        return False


class Cuda:
    """The current CUDA device.

    Memory is what torch's caching allocator has handed out. What it keeps for CUDA graphs belongs
    to the peak: a replay allocates nothing, but nobody else can have what it writes to.
    """

    torch_device = torch.device("cuda")

    @property
    def name(self) -> str:
        """The card's name."""
        return torch.cuda.get_device_name()

    def synchronize(self) -> None:
        """Wait for the device."""
        torch.cuda.synchronize()

    def release_cached(self) -> None:
        """Collect garbage and empty the caching allocator."""
        gc.collect()
        torch.cuda.empty_cache()

    def used_bytes(self) -> int:
        """Bytes in live tensors."""
        return int(torch.cuda.memory_allocated())

    def reset_peak(self) -> None:
        """Reset the allocator's peak."""
        torch.cuda.reset_peak_memory_stats()

    def peak_bytes(self) -> int:
        """The allocator's peak, and what is kept for graphs."""
        return int(torch.cuda.max_memory_allocated()) + _idle_in_graphs_bytes()

    def is_disturbed(self) -> bool:
        """Ask the driver, where it can be asked.

        In a container process ids are not the driver's, so it is the number of those that compute
        which tells: one is this process.
        """
        if self._card is None:
            return False
        import pynvml

        try:
            reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(self._card)
        except (AttributeError, pynvml.NVMLError):  # a driver, or a pynvml, that is too old
            return False
        hot = (
            pynvml.nvmlClocksThrottleReasonHwSlowdown
            | pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
        )
        return _computing(self._card) > 1 or bool(reasons & hot)

    @cached_property
    def _card(self) -> object | None:
        """The driver's handle of the device; `None` without nvidia-ml-py, or if it doesn't work."""
        if find_spec("pynvml") is None:
            return None
        import pynvml

        try:
            pynvml.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties().uuid}"
            handle: object = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except (AttributeError, pynvml.NVMLError):
            return None
        return handle


def _idle_in_graphs_bytes() -> int:
    """Count what graphs keep beyond live tensors, in whole segments of their own pools."""
    segments: list[dict[str, Any]]
    segments = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]  # not annotated
    here = (each for each in segments if each["device"] == torch.cuda.current_device())
    own = (each for each in here if any(each.get("segment_pool_id", ())))
    return sum(each["total_size"] - each["allocated_size"] for each in own)


def _computing(handle: object) -> int:
    """Count the processes that computed on a card lately; to hold a context of it is no harm."""
    import pynvml

    since_us = int(1e6 * (time.time() - _LATELY_S))
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(handle, since_us)
    except pynvml.NVMLError:  # nobody did, or this card doesn't tell
        return 0
    return len({each.pid for each in samples if each.smUtil})


_LATELY_S = 0.5
"""The driver samples several times a second; a block takes about as long."""


class Accelerator:
    """A device of any other type, of which nothing is known but what torch's module of it says.

    Source: docs.pytorch.org, "Accelerator" and "Facilitating New Backend Integration by
    PrivateUse1": functions that every such module should have, under the names of `torch.cuda`.
    """

    def __init__(self, kind: str) -> None:
        """Find torch's module of a device type.

        Raises:
            ValueError: torch knows no such type, or finds no such device.
        """
        try:
            self._module = torch.get_device_module(kind)
        except RuntimeError as error:
            msg = f"torch knows no device type {kind!r}: {error}"
            raise ValueError(msg) from error
        if not self._module.is_available():
            msg = f"torch finds no device of type {kind!r} here"
            raise ValueError(msg)
        self.torch_device = torch.device(kind)

    @property
    def name(self) -> str:
        """The device's name, or its type where torch doesn't say."""
        return str(getattr(self._module, "get_device_name", lambda: self.torch_device.type)())

    def synchronize(self) -> None:
        """Wait for the device."""
        self._module.synchronize()

    def release_cached(self) -> None:
        """Collect garbage, and empty the allocator's cache where there is one."""
        gc.collect()
        getattr(self._module, "empty_cache", lambda: None)()

    def used_bytes(self) -> int:
        """Bytes in live tensors.

        Raises:
            AttributeError: torch doesn't count them on this type; so for the peak.
        """
        return int(self._module.memory_allocated())

    def reset_peak(self) -> None:
        """Reset the allocator's peak."""
        self._module.reset_peak_memory_stats()

    def peak_bytes(self) -> int:
        """The allocator's peak."""
        return int(self._module.max_memory_allocated())

    def is_disturbed(self) -> bool:
        """Return no: torch has no way to ask."""
        return False


def open_device(kind: str) -> Device:
    """Return the device of a type.

    Raises:
        ValueError: torch knows no such type, or finds no such device.
    """
    match kind:
        case "cpu":
            return Cpu()
        case "cuda":
            return Cuda()
        case _:
            return Accelerator(kind)


def holds_tensors(kind: str) -> bool:
    """Return whether this process can use a device, by putting a tensor there.

    It can't where it was forked from one that had used the device, whether by torch or not.
    """
    try:
        torch.empty(1, device=kind)
    except Exception:  # noqa: BLE001  whatever a driver says
        return False
    return True


def _status_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    msg = f"/proc/self/status has no {field}"
    raise OSError(msg)
