"""What compiling was spent in, as torch's own timers have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from dynamometer.dynamo.capture import internals
from dynamometer.dynamo.private import GoneError

if TYPE_CHECKING:
    from collections.abc import Mapping

_FRAMES, _BACKWARDS = "entire_frame_compile", "entire_backward_compile"
_BACKENDS, _INDUCTOR = "backend_compile", "inductor_compile"


@dataclass(frozen=True)
class Phases:
    """Torch's timers, in seconds: since the process began, or between two moments."""

    totals_s: Mapping[str, float]

    @classmethod
    def now(cls) -> Self:
        """Read the timers; none where torch has them no more."""
        try:
            return cls(internals.seconds_spent())
        except GoneError:
            return cls({})

    def since(self, earlier: Phases) -> Self:
        """Return what was spent between two moments."""
        before_s = earlier.totals_s
        return type(self)(
            {name: total_s - before_s.get(name, 0.0) for name, total_s in self.totals_s.items()}
        )

    def plus(self, further: Phases) -> Self:
        """Add what was spent at another time."""
        here, there = self.totals_s, further.totals_s
        return type(self)(
            {name: here.get(name, 0.0) + there.get(name, 0.0) for name in {**here, **there}}
        )

    def parts_s(self) -> dict[str, float]:
        """Split what was compiled.

        Dynamo's is what frames took beyond their backends. What backends took, lazily compiled
        backward graphs included, is split into AOTAutograd and Inductor where that was the
        compiler; of others torch doesn't tell how much of it was AOTAutograd.

        Returns:
            Seconds by `dynamo`, `aot_autograd` and `backend`; empty if nothing was compiled, and
            without what torch doesn't tell.
        """
        spent = self.totals_s
        frames_s = spent.get(_FRAMES, 0.0)
        if not frames_s:
            return {}
        backends_s = spent.get(_BACKENDS, 0.0)
        found = {"dynamo": frames_s - backends_s}
        backends_s += spent.get(_BACKWARDS, 0.0)
        inductor_s = spent.get(_INDUCTOR, 0.0)
        if not inductor_s:
            return {**found, "backend": backends_s}
        return {**found, "aot_autograd": max(0.0, backends_s - inductor_s), "backend": inductor_s}
