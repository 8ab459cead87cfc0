"""Backends whose effect is known beforehand, to find out how often measuring gets it wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.backends import Baseline
from dynamometer.dynamo.backends.inductor import inductor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn


@dataclass(frozen=True)
class Slowed(Baseline):
    """The module as it is, after each call of which some time is wasted.

    Attributes:
        share: of the call's own time.
    """

    share: float = 0.0

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Wrap the module. Where calls return before the device is done, nothing is known."""
        del args, kwargs

        def call(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            output = module(*args, **kwargs)
            ended = time.perf_counter()
            until = ended + self.share * (ended - started)
            while time.perf_counter() < until:
                pass
            return output

        return call


eager_again = Baseline()
eager_third = Baseline()
eager_fourth = Baseline()
eager_fifth = Baseline()
eager_sixth = Baseline()
slower_by_1_percent = Slowed(share=0.01)
slower_by_2_percent = Slowed(share=0.02)
slower_by_5_percent = Slowed(share=0.05)
inductor_first = inductor
inductor_again = inductor
