"""What can be set of Inductor and AOTInductor. No torch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.declared import BackendOption
from dynamometer.dynamo.backends.settings import inductor_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

MODE = "mode"
"""Stands for the settings that torch has for a mode, which differ from release to release."""

CUDA_GRAPHS = "triton.cudagraphs"


_MODES = {
    "default": "Inductor as it is without options",
    "max-autotune": "templates and kernels chosen by timing them; CUDA graphs on a GPU",
    "max-autotune-no-cudagraphs": "the same without CUDA graphs",
    "reduce-overhead": "CUDA graphs on a GPU",
}
_WITHOUT_GRAPHS = {"reduce-overhead": ("no-cudagraphs",),
                   "max-autotune-no-cudagraphs": ("cudagraphs",)}  # fmt: skip


def _of_mode(name: str) -> Mapping[str, Any]:
    return inductor_settings.modes().get(name, {})


def _mode(name: str) -> BackendOption:
    return BackendOption(
        name=name,
        does=_MODES[name],
        sets={} if name == "default" else {MODE: name},
        means=partial(_of_mode, name),
        excludes=(*(each for each in _MODES if each != name), *_WITHOUT_GRAPHS.get(name, ())),
    )


_FREEZING = BackendOption(
    name="freezing",
    does="weights are constants, folded and packed when compiling; inference",
    sets={"freezing": True},
    trains=False,
)
_NO_CUDA_GRAPHS = BackendOption(
    name="no-cudagraphs",
    does="no CUDA graphs, whatever the mode",
    sets={CUDA_GRAPHS: False},
    excludes=("cudagraphs", "reduce-overhead"),
    overrides=("max-autotune",),
)
_CONFIG = BackendOption(
    name="config.",
    does="any setting of torch._inductor.config",
    family=inductor_settings.settings,
)
INDUCTOR = (
    *map(_mode, _MODES),
    _FREEZING,
    BackendOption(
        name="cpp-wrapper",
        does="what calls the kernels is C++ as well",
        sets={"cpp_wrapper": True},
    ),
    BackendOption(
        name="cudagraphs",
        does="CUDA graphs on a GPU",
        sets={CUDA_GRAPHS: True},
        excludes=("no-cudagraphs", "max-autotune-no-cudagraphs"),
    ),
    _NO_CUDA_GRAPHS,
    _CONFIG,
)
AOT_INDUCTOR = (
    BackendOption(
        name="max-autotune",
        does="templates and kernels chosen by timing them",
        sets={MODE: "max-autotune-no-cudagraphs"},
        means=partial(_of_mode, "max-autotune-no-cudagraphs"),
    ),
    _FREEZING,
    _NO_CUDA_GRAPHS,
    _CONFIG,
)
