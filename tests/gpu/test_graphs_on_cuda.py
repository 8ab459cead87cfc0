"""Captured graphs of a GPU."""

from __future__ import annotations

import pytest
import torch

from dynamometer.dynamo.graphs.inputs import describe, draw

pytestmark = pytest.mark.gpu


def test_a_tensor_of_a_gpu_is_drawn_there() -> None:
    """Strides are kept on the way."""
    (found,) = draw(describe([torch.randn(4, 6, device="cuda").t()]), 0)
    assert isinstance(found, torch.Tensor)
    assert (found.device.type, found.stride()) == ("cuda", (1, 6))
