"""What of a worker's life can be told without one."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from dynamometer.common.execution import worker


@pytest.mark.parametrize("limit", [16, 64, 256, 900, 1024, resource.RLIM_INFINITY])
def test_the_channel_is_moved_to_where_it_may_be(limit: int) -> None:
    """Below what `ulimit -n` allows, or no worker could report, and each would seem to crash."""
    low, high = worker._private_descriptors(limit)
    assert 2 < low < high
    if limit != resource.RLIM_INFINITY:
        assert high <= limit


def test_a_descriptor_is_moved_under_a_low_limit() -> None:
    """As in a shell after `ulimit -n 256`."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    reading, writing = os.pipe()
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        for _ in range(50):
            writing = worker._move_away(writing)
            assert writing < 256
        os.write(writing, b"x")
        assert os.read(reading, 1) == b"x"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        os.close(writing)
        os.close(reading)


_LIMITING = """
import resource
from types import SimpleNamespace
from dynamometer.common.execution import worker
resource.setrlimit(resource.RLIMIT_DATA, (2**34, 2**34))
worker._limit(SimpleNamespace(memory_limit_bytes=2**40, case=SimpleNamespace(device="cpu")))
print(resource.getrlimit(resource.RLIMIT_DATA)[0])
"""


def test_a_limit_of_whoever_started_the_run_stays() -> None:
    """As of `ulimit -d`, which nobody but root may raise: no worker came to its first stage."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", _LIMITING]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout) == 2**34
