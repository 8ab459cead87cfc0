"""Environment variables that change what is measured: what records hold, and what is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dynamometer.common.errors import UnfitEnvironmentError
from dynamometer.results.store.bounds import encodable

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "CC",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "CXX",
    "ENABLE_PERSISTENT_TMA_MATMUL",
    "ENABLE_TEMPLATE_TMA_STORE",
    "ENABLE_TMA_LOAD_FOR_TEMPLATE_EPILOGUE",
    "FAKE_ALLOW_META",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "NVIDIA_TF32_OVERRIDE",
    "TENSORIFY_PYTHON_SCALARS",
    "USE_NNPACK",
)
_GROUPS = (
    "AOTINDUCTOR_", "AOTI_", "AOT_", "CUBLAS_", "CUDNN_", "CUTEDSL_", "CUTLASS_", "DNNL_",
    "FBGEMM_", "GOMP_", "INDUCTOR_", "KMP_", "MALLOC_", "MKL_", "OMP_", "ONEDNN_", "OPENBLAS_",
    "ORT_", "OV_", "PARTITIONER_", "PYTORCH_", "THP_", "TORCHDYNAMO_", "TORCHINDUCTOR_", "TORCH_",
    "TRITON_", "TVM_",
)  # fmt: skip
"""How names begin of what torch, its compilers, kernels, runtimes, threads and allocators read."""
_PLACES = ("_DIR", "_FILE", "_HOME", "_HOST", "_PATH", "_PORT", "_ROOT", "_URL")
"""How names end of what only says where something is."""
_LOGGING = ("TORCH_LOGS_OUT", "TORCH_SHOW_CPP_STACKTRACES")
_SECRET = ("AUTH", "CREDENTIAL", "KEY", "PASSWORD", "SECRET", "TOKEN")

_TURN_OFF = {
    "TORCH_COMPILE_DISABLE": "turns torch.compile off",
    "TORCHDYNAMO_DISABLE": "turns torch.compile off",
}
"""Where they are 1. Sources: torch._dynamo.config.disable, torch._dynamo.eval_frame._optimize."""
_REPLACE = {
    "TORCHDYNAMO_DEBUG_FUNCTION": "leaves all functions but those of that name in eager",
    "TORCH_COMPILE_OVERRIDE_BACKENDS": "has other backends compile than those that are asked for",
}
"""Whatever they are. Sources: torch._dynamo.convert_frame, torch._dynamo.config."""


def is_secret(name: str) -> bool:
    """Return whether a variable is named after what nobody else may know."""
    return any(word in name for word in _SECRET)


def is_recorded(name: str) -> bool:
    """Return whether a variable changes what is measured."""
    if is_secret(name) or name.endswith(_PLACES) or name in _LOGGING:
        return False
    return name in VARIABLES or name.startswith(_GROUPS)


def recorded(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that change what is measured, in order; bytes that are no text escaped.

    Args:
        environment: of a process.
    """
    return {name: encodable(environment[name]) for name in sorted(environment) if is_recorded(name)}


def why_not_compiled(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Say of each variable by which torch wouldn't compile, or not with what was asked for, why."""
    effects = {name: does for name, does in _TURN_OFF.items() if environment.get(name) == "1"}
    effects |= {name: does for name, does in _REPLACE.items() if environment.get(name)}
    shown = recorded(environment)
    return [f"{name}={shown[name]} {does}" for name, does in effects.items()]


def require_compiling() -> None:
    """Refuse to measure where figures would be of eager, or of other backends.

    Raises:
        UnfitEnvironmentError: a variable has them be that; names all that do.
    """
    found = why_not_compiled()
    if found:
        msg = f"{'; '.join(found)}: unset {'it' if len(found) == 1 else 'them'}"
        raise UnfitEnvironmentError(msg)
