"""An arm with threads of its own that spin when idle; for `bench/check_timing.py`."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn

SPINS_S = 0.035
"""After each call, as ONNX Runtime's do (docs/decisions/0007-error-bars.md)."""

_DATA = bytes(200_000)
"""What a thread hashes before it looks at the clock again, without Python's lock."""


class Pool:
    """A thread for each processor; they compute from a call on until some time after it."""

    def __init__(self) -> None:
        """Start them."""
        self._wanted, self._until_s = threading.Event(), 0.0
        for _ in range(os.cpu_count() or 1):
            threading.Thread(target=self._spin, daemon=True).start()

    def begin(self) -> None:
        """Have them compute until it is said how long."""
        self._until_s = float("inf")
        self._wanted.set()

    def end(self) -> None:
        """Have them stop in a while."""
        self._until_s = time.perf_counter() + SPINS_S

    def _spin(self) -> None:
        while self._wanted.wait():
            while time.perf_counter() < self._until_s:
                hashlib.sha256(_DATA)
            self._wanted.clear()


@dataclass(frozen=True)
class Spinning:
    """The module as it is, with threads of its own that spin."""

    captures: bool = False

    def available(self, device: str) -> str | None:
        """Check the device type."""
        return None if device == "cpu" else "this arm runs on a CPU only"

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Wrap the module."""
        del args, kwargs
        pool = Pool()

        def call(*args: Any, **kwargs: Any) -> Any:
            pool.begin()
            try:
                return module(*args, **kwargs)
            finally:
                pool.end()

        return call


spinning = Spinning()
