"""What tests of backends share."""

from __future__ import annotations

import functools
import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def known_onnx_functions() -> Iterator[None]:
    """Let `torch.onnx` read the sources of its 500 functions once, not at each export."""
    if importlib.util.find_spec("onnxscript") is None:
        yield
        return
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        known = staticmethod(functools.cache(ONNXRegistry.from_torchlib))
        patch.setattr(ONNXRegistry, "from_torchlib", known)
        yield
