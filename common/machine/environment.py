"""The machine and its software, read without importing torch."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

import msgspec

import dynamometer
from dynamometer.common.errors import UnfitEnvironmentError
from dynamometer.common.machine import cgroups
from dynamometer.common.machine.variables import recorded
from dynamometer.dynamo.processor import processor_name
from dynamometer.dynamo.runtime_packages import RUNTIME_PACKAGES, installed
from dynamometer.results.values.records import Environment

_PACKAGES = (
    "diffusers",
    "numpy",
    "onnx",
    "onnxscript",
    "timm",
    "torch",
    "torch_geometric",
    "torchvision",
    "transformers",
    *RUNTIME_PACKAGES,
)
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def read_environment() -> Environment:
    """Describe this machine and what is installed."""
    own, measured = Path(__file__).resolve().parents[2], _repository(Path.cwd())
    commits = {root: _git_commit(root) for root in {own, measured}}  # often one repository
    unidentified = Environment(
        id="",
        machine=platform.node(),
        cpu=processor_name(),
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=_container_memory_bytes(),
        os=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        packages=_packages(),
        git=commits[own],
        measured_git=commits[measured],
        governor=_GOVERNOR.read_text().strip() if _GOVERNOR.exists() else None,
        load_1min=os.getloadavg()[0],
        variables=recorded(),
    )
    lasting = msgspec.json.encode(msgspec.structs.replace(unidentified, load_1min=0.0))
    digest = hashlib.sha256(lasting).hexdigest()[:12]
    return msgspec.structs.replace(unidentified, id=digest)


def differences(before: Environment, now: Environment) -> list[str]:
    """Say, field by field, what has changed between two environments.

    The load is no change. Nor is the commit of what is measured: its files are looked at
    themselves.
    """
    found = []
    for name in Environment.__struct_fields__:
        old, new = getattr(before, name), getattr(now, name)
        if name in {"id", "load_1min", "measured_git"} or old == new:
            continue
        if isinstance(old, dict):
            found += [
                f"{key} was {old.get(key, 'not there')}, is {new.get(key, 'not there')}"
                for key in sorted(old.keys() | new.keys())
                if old.get(key) != new.get(key)
            ]
        else:
            found.append(f"{name} was {old}, is {new}")
    return found


def memory_bytes() -> int:
    """Return the memory this process may use: the machine's, or less where a cgroup limits it."""
    total = _container_memory_bytes()
    return min(total, cgroups.memory_limit_bytes() or total)


def _container_memory_bytes() -> int:
    """Return the memory of the machine, or of the container; not of a job, which others may have.

    A run that was ended in one job can be resumed in another.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(total, cgroups.memory_limit_bytes(is_of_container=True) or total)


def require_device(device: str) -> None:
    """Check that a device type is there, without importing torch into this process.

    Raises:
        UnfitEnvironmentError: it isn't.
    """
    if device not in {"cpu", "cuda"}:
        _require_accelerator(device)
    if device == "cuda" and not cuda_device_count():
        msg = (
            "no CUDA device here: the driver library libcuda.so.1 is missing or finds none. "
            "Run with -d cpu, or check nvidia-smi and CUDA_VISIBLE_DEVICES."
        )
        raise UnfitEnvironmentError(msg)


_FIND_ACCELERATOR = """
import sys, torch
if not torch.get_device_module(sys.argv[1]).is_available():
    sys.exit("torch knows the type, and finds no such device")
"""


def _require_accelerator(device: str) -> None:
    """Have another process ask torch for a device; there is no other way to find one.

    Raises:
        UnfitEnvironmentError: there is none.
    """
    words = [sys.executable, "-c", _FIND_ACCELERATOR, device]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603  ours
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        msg = (
            f"no device of type {device!r} here: {said}. Run with -d cpu, or install a torch for it"
        )
        raise UnfitEnvironmentError(msg)


def cuda_device_count() -> int:
    """Ask the CUDA driver how many devices it shows; 0 without a driver."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def _packages() -> dict[str, str]:
    # A checkout has no metadata, or not wherever it is run from.
    return {"dynamometer": dynamometer.__version__, **installed(_PACKAGES)}


def _repository(folder: Path) -> Path | None:
    """Return the root of the repository that a folder is in; `None` where it is in none."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _git_commit(root: Path | None) -> str | None:
    """Return the commit of a checkout; `None` where there is none, as of an installed package."""
    if root is None or not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if changed else commit


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603  fixed arguments
    return done.stdout.strip()
