"""Makes torchvision's Python models importable where its compiled operators don't load.

torchvision registers Python code for `torchvision::nms` and `torchvision::qnms` while it is being
imported, which fails if nobody declared these operators. The declarations live in the package's
C++ extension, and the wheel of the package index links against CUDA: beside a CPU-only torch the
extension doesn't load. The classifiers need none of its operators, so declaring the two is enough.
"""

from __future__ import annotations

import functools
import importlib.util
from importlib.machinery import PathFinder

import torch

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)

EXTENSIONS = ("_C_stable", "_C")
"""What torchvision calls its operators' library: the first since 0.29. Were they declared all the
same, loading it later would end the process."""


@functools.cache
def define_missing_schemas() -> torch.library.Library | None:
    """Declare the operators `import torchvision` needs, unless the real ones are available.

    Call it before importing torchvision or a package that does, such as timm. Calling it again
    changes nothing. A declared operator has no kernel: calling it fails.

    Returns:
        The library that holds the declarations, which last as long as it does (the cache keeps
        it); `None` where nothing had to be declared, or torchvision isn't installed.
    """
    package = importlib.util.find_spec("torchvision")
    if package is None or _are_defined() or _loads_extension(package.submodule_search_locations):
        return None
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]  # torch leaves it untyped
    for schema in SCHEMAS:
        library.define(schema)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return library


def _are_defined() -> bool:
    return hasattr(torch.ops.torchvision, "nms")


def _loads_extension(locations: list[str] | None) -> bool:
    """Load the operators as torchvision itself does, and tell whether that worked."""
    return any(_loads(name, locations) for name in EXTENSIONS)


def _loads(name: str, locations: list[str] | None) -> bool:
    extension = PathFinder.find_spec(name, locations)
    if extension is None or extension.origin is None:
        return False
    try:
        torch.ops.load_library(extension.origin)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    except OSError:
        return False
    return _are_defined()
