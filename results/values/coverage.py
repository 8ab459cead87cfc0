"""What share of a model Dynamo captures, and what is not captured where. Pure values; no torch.

Records of all formats call what is not captured lost.
"""

from __future__ import annotations

import msgspec

from dynamometer.results.values.cases import Value


class CapturedGraph(Value, frozen=True, kw_only=True):
    """One graph Dynamo captured."""

    ops: int
    """Operators in it, as Dynamo counts them: calls of functions, methods and modules."""
    calls: int
    """How often one step runs it."""


class GraphBreak(Value, frozen=True, kw_only=True):
    """A line of the user's code at which a graph had to end."""

    reason: str
    """Dynamo's own words, the first line of them."""
    hint: str | None = None
    """What Dynamo advises to do about it."""
    file: str
    line: int
    function: str
    code: str | None = None
    """The line itself."""
    times: int
    """How often Dynamo ended a graph there as it compiled."""
    not_captured_ops: int = msgspec.field(name="lost_ops")
    """Operators one step runs outside graphs because of it."""
    not_captured_s: float | None = msgspec.field(name="lost_s", default=None)
    """Seconds one step spends outside graphs because of it; `None` where time tells nothing."""


class SkippedFrame(Value, frozen=True, kw_only=True):
    """A function Dynamo looked at and left as it is."""

    function: str
    file: str
    line: int
    reason: str
    hint: str | None = None
    """What Dynamo advises to do about it."""
    not_captured_ops: int = msgspec.field(name="lost_ops", default=0)
    """Operators one step runs in it, beyond those not captured at a line."""
    not_captured_s: float | None = msgspec.field(name="lost_s", default=None)
    """Seconds one step spends outside graphs because of it; `None` where time tells nothing."""
    stopped_file: str | None = None
    stopped_line: int | None = None
    """Where Dynamo could not follow it any further, which may be in a function it calls."""

    @property
    def cause(self) -> tuple[str, int]:
        """File and line to look at: where Dynamo stopped, or the function, where it doesn't say."""
        if self.stopped_file is None or self.stopped_line is None:
            return self.file, self.line
        return self.stopped_file, self.stopped_line


class Recompile(Value, frozen=True, kw_only=True):
    """A frame that was compiled again, because a guard failed."""

    function: str
    file: str
    line: int
    guard: str
    """The guard that failed, in Dynamo's words."""


class Coverage(Value, frozen=True, kw_only=True):
    """What Dynamo captured of one step of a model: of its forward, and of its backward if trained.

    Operators are counted as they are dispatched, one by one, in the step as it is run. The loss is
    part of what is compiled, as everywhere here; the optimizer is not.
    """

    frames: int
    """Frames Dynamo looked at."""
    frames_ok: int
    """Of these, the ones it didn't fail on; there may have been nothing to compile."""
    frames_again: int
    """Frames it compiled in a second step with the same inputs: 0, unless it comes to no rest."""
    model_calls: int = 1
    """How often one step calls the model: once, unless it goes through several sizes."""
    graphs: tuple[CapturedGraph, ...] = ()
    captured_ops: int
    total_ops: int
    captured_s: float | None = None
    """Seconds of a forward spent inside graphs."""
    total_s: float | None = None
    """Seconds of a forward."""
    breaks: tuple[GraphBreak, ...] = ()
    skipped: tuple[SkippedFrame, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    guards: int = 0
    """Over all frames."""
    guards_s: float | None = None
    """Seconds of a step in which they are checked, to find what was compiled."""
    recompile_limit_hits: int = 0
    """Frames Dynamo gave up on, as they were compiled too often, in any step."""

    @property
    def graph_calls(self) -> int:
        """How often one step runs a graph."""
        return sum(graph.calls for graph in self.graphs)

    @property
    def share_of_ops(self) -> float | None:
        """Of the operators, the share inside graphs; `None` of a model that runs none."""
        return self.captured_ops / self.total_ops if self.total_ops else None

    @property
    def share_of_time(self) -> float | None:
        """Of the seconds of a forward, the share inside graphs; `None` as that of operators is."""
        if self.captured_s is None or not self.total_s or not self.total_ops:
            return None
        return min(1.0, self.captured_s / self.total_s)

    @property
    def is_full_graph(self) -> bool:
        """Whether one graph is all of it, in every call; no function is left to Python."""
        whole = self.captured_ops == self.total_ops and not self.not_captured
        return whole and self.graph_calls == self.model_calls and not self.recompile_limit_hits

    @property
    def unexplained_ops(self) -> int:
        """Operators outside graphs that are put down to no line and to no function."""
        return (
            self.total_ops
            - self.captured_ops
            - sum(each.not_captured_ops for each in self.not_captured)
        )

    @property
    def not_captured(self) -> tuple[GraphBreak | SkippedFrame, ...]:
        """The lines and functions that operators and time outside graphs are put down to."""
        return (*self.breaks, *self.skipped)

    @property
    def largest_graph(self) -> int:
        """Operators of the largest graph."""
        return max((graph.ops for graph in self.graphs), default=0)
