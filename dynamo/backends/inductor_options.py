"""What can be set of Inductor and AOTInductor, and the names of Inductor's settings. No torch."""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dynamometer.dynamo.backends.declared import BackendOption

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MODE = "mode"
"""Stands for the settings that torch has for a mode, which differ from release to release."""

CUDA_GRAPHS = "triton.cudagraphs"


@cache
def setting_names() -> frozenset[str]:
    """Return the names of Inductor's settings, read from its file; none where there is no such."""
    spec = find_spec("torch")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "_inductor", "config.py")
        if path.is_file():
            return frozenset(_bound(ast.parse(path.read_text(encoding="utf-8")).body))
    return frozenset()


def _bound(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[str]:
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name
            case ast.ClassDef(name=name, bases=bases):
                named = [each.id for each in bases if isinstance(each, ast.Name)]
                above = [classes[each] for each in named if each in classes]
                for each in (node, *above):
                    yield from _bound(each.body, f"{prefix}{name}.")
            case _:
                pass


_MODES = {
    "default": "Inductor as it is without options",
    "max-autotune": "templates and kernels chosen by timing them; CUDA graphs on a GPU",
    "max-autotune-no-cudagraphs": "the same without CUDA graphs",
    "reduce-overhead": "CUDA graphs on a GPU",
}
_WITHOUT_GRAPHS = {"reduce-overhead": ("no-cudagraphs",),
                   "max-autotune-no-cudagraphs": ("cudagraphs",)}  # fmt: skip


def _mode(name: str) -> BackendOption:
    return BackendOption(
        name=name,
        does=_MODES[name],
        sets={} if name == "default" else {MODE: name},
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
)
_CONFIG = BackendOption(
    name="config.",
    does="any setting of torch._inductor.config",
    family=setting_names,
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
    ),
    _FREEZING,
    _NO_CUDA_GRAPHS,
    _CONFIG,
)
