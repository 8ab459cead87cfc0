"""Packages that compute what backends compile: their versions change figures and decisions."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

RUNTIME_PACKAGES = (
    "apache-tvm",
    "onnxruntime",
    "onnxruntime-gpu",
    "openvino",
    "tensorrt",
    "torch_tensorrt",
    "triton",
)
"""As they are called by `importlib.metadata`."""


def installed(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages of some names that are installed."""
    from importlib.metadata import PackageNotFoundError, version  # a fifth of the start-up time

    found = {}
    for name in names:
        with suppress(PackageNotFoundError):
            known: str | None = version(name)
            if known:  # what a removed package leaves behind may have none
                found[name] = known
    return found
