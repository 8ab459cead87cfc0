"""A backend that slows the other arms of its process, as a runtime does whose idle threads spin.

Imported by worker processes, through `PYTHONPATH`, as `spinning_backend:spinning`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn

_SPINS_S = 0.1
_CALL_S = 0.002


@dataclass(frozen=True)
class Spinning:
    """Takes 2 ms for a call, and has others take longer for a while after each."""

    captures: bool = False

    def available(self, device: str) -> str | None:
        """Give no reason against any device type."""
        return None

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Compute what the module does, without what slows it."""

        def call(*args: Any, **kwargs: Any) -> Any:
            os.environ["IN_SPINNING_ARM"] = "yes"
            time.sleep(_CALL_S)
            try:
                return module(*args, **kwargs)
            finally:
                del os.environ["IN_SPINNING_ARM"]
                os.environ["SPINNING_UNTIL"] = repr(time.perf_counter() + _SPINS_S)

        return call


spinning = Spinning()
