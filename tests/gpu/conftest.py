"""Tests on a CUDA device: asked for with `-m gpu`, so a machine without one is an error."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def cuda_is_there() -> None:
    """Fail at once where there is no device, rather than pass over the tests."""
    from dynamometer.common.machine.environment import cuda_device_count

    assert cuda_device_count(), "tests marked gpu need a CUDA device"
