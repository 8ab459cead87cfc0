"""Inductor as a backend, with what its C++ toolchain prepares once per machine and per process.

Inductor compiles a header of its own ahead, and finds out by compiling a probe which vector
instructions compiler and processor agree on. Both are otherwise charged to whichever model is
compiled first: 6 s, measured on two cores (docs/measuring.md).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.dynamo.backends.inductor_options import INDUCTOR, MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import torch

CACHE_DIR = "TORCHINDUCTOR_CACHE_DIR"


def of_inductor(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Put a mode's own settings in its place; what is set apart from it counts.

    Raises:
        GoneError: torch doesn't tell them any more.
    """
    if MODE not in settings:
        return dict(settings)
    from dynamometer.dynamo.private import private

    of_mode: dict[str, Any] = private("torch._inductor.list_mode_options")(settings[MODE])
    return of_mode | {name: value for name, value in settings.items() if name != MODE}


@dataclass(frozen=True, kw_only=True)
class Inductor(ThroughDynamo):
    """`torch.compile` with Inductor."""

    def set_to(self, settings: Mapping[str, Any]) -> Self:
        """Return it with other settings, of which some may be a mode's."""
        return replace(self, settings={**self.settings, **of_inductor(settings)})

    def compile_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function, or a module; with frozen weights, at whichever call that compiles."""
        compiled = super().compile_function(function)
        if not self.settings.get("freezing"):
            return compiled
        from dynamometer.dynamo import state

        return state.freezing(compiled)

    def preload(self, device: str) -> None:
        """Import Inductor and, for a CPU, probe for vector instructions.

        Inductor asks once per process, by compiling a probe and loading it in another interpreter
        (3 s on two cores); a process forked from this one knows the answer. Starts no thread.

        Raises:
            OSError: it can't write to its folder, as no worker could.
        """
        from dynamometer.dynamo.private import GoneError, private

        super().preload(device)
        if device == "cpu":
            try:
                private("torch._inductor.cpu_vec_isa.valid_vec_isa_list")()
            except GoneError:
                pass  # the first model is charged for it then
            except OSError as error:
                msg = f"Inductor can't keep what it compiles: {error}; set TMPDIR to another folder"
                raise OSError(msg) from error

    def prepare(self, device: str) -> None:
        """Compile one small graph, unless that was done on this machine before."""
        import torch

        stamp = _stamp(device)
        if stamp is not None and stamp.exists():
            return
        # In a folder that is removed afterwards.
        with tempfile.TemporaryDirectory() as folder, environment(CACHE_DIR, folder):
            example = torch.ones(4096, device=device)
            torch.compile(_normalized_sine, backend="inductor")(example)
        if stamp is not None:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()


def _normalized_sine(x: torch.Tensor) -> torch.Tensor:
    """Compute something that takes a loop, a reduction and a vector function."""
    import torch

    return torch.sin(x) / x.abs().sum()


def _stamp(device: str) -> Path | None:
    """Name a file beside the prepared header, by everything that would make another one.

    `None` where torch doesn't tell that any more: whatever lasts is made again in every run.
    """
    import torch

    from dynamometer.dynamo.private import GoneError, private

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
def environment(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


inductor = Inductor(
    name="inductor",
    summary="Inductor: kernels in C++ or Triton for Dynamo's graphs; torch.compile's default",
    compiler="inductor",
    trains=True,
    options=INDUCTOR,
)
