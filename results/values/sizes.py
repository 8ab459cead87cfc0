"""What Dynamo makes of a model at several sizes. Pure values; no torch."""

from __future__ import annotations

from dataclasses import replace

from dynamometer.results.values.cases import Value
from dynamometer.results.values.coverage import Recompile
from dynamometer.results.values.metrics import LATENCY, Metric

STATIC = "static"
"""The arm that is compiled for the one size it is called with."""
NOT_REACHED = "the process had ended before"
"""Why there is nothing of a size, of which the process has yet to time anything."""


class Specialization(Value, frozen=True, kw_only=True):
    """A size that was to vary, and that the code makes a number."""

    size: str
    """Such as `x.size()[0]`."""
    number: int
    file: str | None = None
    line: int | None = None
    """The line that does, where torch knows."""
    function: str | None = None
    code: str | None = None


class SizeSweep(Value, frozen=True, kw_only=True):
    """What Dynamo makes of a model that is called at several sizes, one after the other."""

    sizes: tuple[str, ...]
    """What each is called."""
    frames: int
    """Compilations in all."""
    recompiles: tuple[Recompile, ...]
    guards: tuple[str, ...]
    """Those on sizes and strides that may vary, in words."""
    specializations: tuple[Specialization, ...]


def latency_at(index: int) -> Metric:
    """Return the metric of latencies at one of the sizes."""
    return replace(LATENCY, name=f"latency_at_size/{index}")
