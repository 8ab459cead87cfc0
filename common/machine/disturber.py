"""A process that computes now and then, as others do on a shared machine; stdlib only.

What measuring makes of a busy machine is calibrated beside it (`calibrate --busy`).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY_S, IDLE_S = 0.1, 0.9
"""Seconds for which the process computes and rests in turn, on average, that a machine is kept busy
by: a tenth of a processor, which is what a run takes for a disturbance."""

_COPIED_BYTES = 2**24
"""More than a core's own caches hold, so that it takes of what cores share, too."""


@contextmanager
def disturbed(seed: int, busy_s: float, idle_s: float) -> Iterator[int]:
    """Have a process come and go for as long as the context lasts, and give its number.

    Args:
        seed: what follows is drawn from it.
        busy_s: seconds it computes at a time, on average; exponentially distributed.
        idle_s: likewise, between these times.
    """
    arguments = [__file__, str(seed), str(busy_s), str(idle_s)]
    with subprocess.Popen(  # noqa: S603  our own interpreter and code
        [sys.executable, "-P", *arguments],
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # an interrupted run goes on until a replicate is done
    ) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def _come_and_go(seed: int, busy_s: float, idle_s: float) -> None:
    """Compute and rest in turn until the parent has ended."""
    rng, parent, data = random.Random(seed), os.getppid(), bytes(_COPIED_BYTES)  # noqa: S311  no secret
    while os.getppid() == parent:
        ends = time.monotonic() + rng.expovariate(1 / busy_s)
        while time.monotonic() < ends:
            bytearray(data)
        time.sleep(rng.expovariate(1 / idle_s))


if __name__ == "__main__":
    _come_and_go(int(sys.argv[1]), *map(float, sys.argv[2:]))
