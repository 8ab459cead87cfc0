"""Everything that differs between device types: waiting, naming, memory. One place for CUDA."""

from __future__ import annotations

import ctypes
import gc
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

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
    """The current CUDA device; memory is what torch's caching allocator has handed out."""

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
        """The allocator's peak."""
        return int(torch.cuda.max_memory_allocated())

    def is_disturbed(self) -> bool:
        """Ask the driver, where the package nvidia-ml-py is installed.

        In a container process ids are not the driver's, so it is the number of those that compute
        which tells: one is this process.
        """
        if find_spec("pynvml") is None:
            return False
        import pynvml

        try:
            pynvml.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties().uuid}"
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
        except (AttributeError, pynvml.NVMLError):  # a driver, or a pynvml, that is too old
            return False
        hot = (
            pynvml.nvmlClocksThrottleReasonHwSlowdown
            | pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
        )
        return _computing(handle) > 1 or bool(reasons & hot)


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


def open_device(kind: str) -> Device:
    """Return the device of a type.

    Raises:
        ValueError: the type is neither `cpu` nor `cuda`.
    """
    match kind:
        case "cpu":
            return Cpu()
        case "cuda":
            return Cuda()
        case _:
            msg = f"device type {kind!r} is neither cpu nor cuda"
            raise ValueError(msg)


def _status_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    msg = f"/proc/self/status has no {field}"
    raise OSError(msg)
