"""What the C++ toolchain prepares once per machine, done before the first case and shown apart.

Inductor compiles a header of its own ahead, and finds out by compiling a probe which vector
instructions compiler and processor agree on. Otherwise both are charged to whichever model is
compiled first: 6 s, measured on two cores (docs/measuring.md).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.common.experiment import Process
from dynamometer.common.messages import Findings
from dynamometer.results.schema import BASELINE, PASSED, Measurement, Stage

if TYPE_CHECKING:
    from dynamometer.common.experiment import Context
    from dynamometer.results.schema import Case, RunPlan


@dataclass(frozen=True)
class Toolchain:
    """Makes sure that the C++ toolchain has prepared what it keeps."""

    def processes(self, case: Case, plan: RunPlan, replicate: int) -> tuple[Process, ...]:
        """Prepare in one process; which case it is said to be for doesn't matter."""
        del case, replicate
        return (Process((BASELINE,), plan.protocol.allocator),)

    def salvage(self, findings: Findings, arms: tuple[str, ...]) -> Findings:
        """Leave it at that: what is wrong with the toolchain shows in every case."""
        del arms
        return findings

    def measure(self, context: Context) -> Findings:
        """Compile one small graph with Inductor, unless that was done here before."""
        with context.stages.at(Stage.COMPILE):
            stamp = _stamp(context.job.case.device)
            if not stamp.exists():
                _compile_something(context)
                stamp.parent.mkdir(parents=True, exist_ok=True)
                stamp.touch()
        seconds = context.stages.seconds[Stage.COMPILE]
        preparing = Measurement(metric="toolchain_time", unit="s", arm=BASELINE, samples=(seconds,))
        return Findings(outcome=PASSED, measurements=(preparing,))


def probe_instruction_set() -> None:
    """Let Inductor find the vector instructions it can use, for this process and its forks.

    It asks once per process, by compiling a probe and loading it in another interpreter (3 s on
    two cores). Starts no thread.
    """
    from torch._inductor.cpu_vec_isa import valid_vec_isa_list

    valid_vec_isa_list()


def _stamp(device: str) -> Path:
    """Name a file beside the prepared header, by everything that would make another one."""
    import torch
    from torch._inductor.cpp_builder import get_compiler_version_info, get_cpp_compiler
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    compiler = get_compiler_version_info(get_cpp_compiler())
    parts = (device, torch.__version__, torch.__file__, compiler)
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(default_cache_dir()) / "precompiled_headers" / f"dynamometer-{digest}"


def _compile_something(context: Context) -> None:
    import torch

    def normalized_sine(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) / x.abs().sum()

    with tempfile.TemporaryDirectory() as cache_dir:
        previous = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache_dir
        try:
            example = torch.ones(4096, device=context.device.torch_device)
            torch.compile(normalized_sine, backend="inductor")(example)
        finally:
            if previous is not None:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = previous
