"""Inductor as a backend, with what its C++ toolchain prepares once per machine and per process.

Inductor compiles a header of its own ahead, and finds out by compiling a probe which vector
instructions compiler and processor agree on. Both are otherwise charged to whichever model is
compiled first: 6 s, measured on two cores (docs/measuring.md).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.dynamo.backends.backends import DynamoBackend
from dynamometer.dynamo.private import GoneError, private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CACHE_DIR = "TORCHINDUCTOR_CACHE_DIR"


@dataclass(frozen=True)
class Inductor(DynamoBackend):
    """`torch.compile` with Inductor."""

    compiler: str | Callable[..., Any] = "inductor"

    def preload(self, device: str) -> None:
        """Import Inductor and, for a CPU, probe for vector instructions.

        Inductor asks once per process, by compiling a probe and loading it in another interpreter
        (3 s on two cores); a process forked from this one knows the answer. Starts no thread.
        """
        super().preload(device)
        if device == "cpu":
            with suppress(GoneError):  # the first model is charged for it then
                private("torch._inductor.cpu_vec_isa.valid_vec_isa_list")()

    def prepare(self, device: str) -> None:
        """Compile one small graph, unless that was done on this machine before."""
        stamp = _stamp(device)
        if stamp is not None and stamp.exists():
            return
        with _own_cache():
            example = torch.ones(4096, device=device)
            torch.compile(_normalized_sine, backend="inductor")(example)
        if stamp is not None:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()


def _normalized_sine(x: torch.Tensor) -> torch.Tensor:
    """Compute something that takes a loop, a reduction and a vector function."""
    return torch.sin(x) / x.abs().sum()


def _stamp(device: str) -> Path | None:
    """Name a file beside the prepared header, by everything that would make another one.

    `None` where torch doesn't tell that any more: whatever lasts is made again in every run.
    """
    try:
        get_cpp_compiler = private("torch._inductor.cpp_builder.get_cpp_compiler")
        version_of = private("torch._inductor.cpp_builder.get_compiler_version_info")
        cache = private("torch._inductor.runtime.cache_dir_utils.default_cache_dir")
    except GoneError:
        return None
    compiler = version_of(get_cpp_compiler())
    parts = (device, torch.__version__, torch.__file__, compiler)
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(cache()) / "precompiled_headers" / f"dynamometer-{digest}"


@contextmanager
def _own_cache() -> Iterator[None]:
    """Let Inductor keep what it makes in a folder that is removed afterwards."""
    before = os.environ.get(_CACHE_DIR)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_CACHE_DIR] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[_CACHE_DIR]
            else:
                os.environ[_CACHE_DIR] = before


inductor = Inductor()
