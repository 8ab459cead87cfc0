"""What share of a step Dynamo captures, counted operator by operator in passes of its own.

PyTorch's own counter, which reads profiler events, says `0 of -1` on current torch, as one event
now encloses every graph. Here the graphs run through a backend that marks when it is inside one,
while a dispatch mode sees every operator. In training the operators of the backward are those of
autograd nodes that were made inside a graph or outside, told by their sequence numbers.
"""

from __future__ import annotations

import statistics
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from types import GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from dynamometer.dynamo import state
from dynamometer.dynamo.capture import compilations, internals
from dynamometer.dynamo.capture.not_captured import (
    NotCaptured,
    Site,
    graph_breaks,
    sites_of,
    skipped_frames,
)
from dynamometer.dynamo.clock import Clock
from dynamometer.dynamo.private import offered_class
from dynamometer.results.values.coverage import CapturedGraph, Coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType

    import torch

TorchDispatchMode = offered_class("torch.utils._python_dispatch.TorchDispatchMode")

_TIMED_STEPS = 5


@dataclass
class _Intervals:
    """Ranges of autograd sequence numbers, in order."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, start: int, end: int) -> None:
        self.starts.append(start)
        self.ends.append(end)

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self.starts, number) - 1
        return index >= 0 and number < self.ends[index]


@dataclass
class Probe:
    """Marks when a model and when its graphs run.

    Attributes:
        synchronize: waits for the device.
        ops: of each captured graph, in the order of capture.
        ends: of each the line at which it had to end; `None` where all of a frame is in it.
        calls: the graphs that ran since `restart`, in order.
    """

    synchronize: Callable[[], None]
    ops: list[int] = field(default_factory=list)
    ends: list[Site | None] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    inside: int | None = None
    notes: Sequence[compilations.BreakNote] = ()
    """What Dynamo could not follow so far."""
    in_model: bool = False
    model_calls: int = 0
    captured_s: float = 0.0
    total_s: float = 0.0
    gaps_s: list[float] = field(default_factory=list)
    """Seconds outside graphs: before the first, after it, after the second, and so on."""
    gap_ends: list[Site | None] = field(default_factory=list)
    """Of each gap the line at which the graph before it ended."""
    inside_nodes: _Intervals = field(default_factory=_Intervals)
    model_nodes: _Intervals = field(default_factory=_Intervals)
    _since_s: float = 0.0
    _ended: Site | None = None

    def restart(self) -> None:
        """Forget what ran so far, but not the graphs."""
        self.calls = []
        self.captured_s = self.total_s = 0.0
        self.model_calls = 0
        self.gaps_s, self.gap_ends = [], []
        self.inside_nodes, self.model_nodes = _Intervals(), _Intervals()

    def backend(self, graph: torch.fx.GraphModule, example_inputs: object) -> Callable[..., Any]:
        """Run a graph as it is, and mark when."""
        del example_inputs
        index = len(self.ops)
        self.ops.append(sum(node.op.startswith("call_") for node in graph.graph.nodes))
        ended = compilations.break_after(graph, self.notes)
        self.ends.append(Site(ended.file, ended.line) if ended else None)

        def run(*args: Any) -> Any:
            if self.inside is not None:  # a graph within a graph is part of it
                return graph.forward(*args)
            started_s = self._mark()
            self._end_gap(started_s)
            first = internals.autograd_sequence_number()
            self.inside = index
            try:
                return graph.forward(*args)
            finally:
                self.inside = None
                self.inside_nodes.add(first, internals.autograd_sequence_number())
                self.calls.append(index)
                self._since_s = self._mark()
                self._ended = self.ends[index]
                self.captured_s += self._since_s - started_s

        return run

    def model(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """Mark when the model runs: what the step does besides is not the model's."""

        def call(*args: Any, **kwargs: Any) -> Any:
            first = internals.autograd_sequence_number()
            self.in_model, self._ended = True, None
            started_s = self._since_s = self._mark()
            try:
                result = compiled(*args, **kwargs)
                # A generator has computed nothing yet.
                return list(result) if isinstance(result, GeneratorType) else result
            finally:
                ended_s = self._mark()
                self.in_model = False
                self.model_calls += 1
                self._end_gap(ended_s)
                self.total_s += ended_s - started_s
                self.model_nodes.add(first, internals.autograd_sequence_number())

        # Dynamo is to look at the model alone, as it does where nobody counts.
        return internals.leave_alone(call)

    def _end_gap(self, now_s: float) -> None:
        self.gaps_s.append(now_s - self._since_s)
        self.gap_ends.append(self._ended)

    def _mark(self) -> float:
        self.synchronize()
        return Clock.now()


@dataclass(frozen=True)
class _Owner:
    """To what an operator, and the autograd node it made, is put down."""

    captured: bool
    site: Site | None = None


class OpCounter(TorchDispatchMode):  # type: ignore[misc, valid-type]  # what torch has
    """Counts operators of a model, inside its graphs and outside.

    Attributes:
        captured: inside.
        not_captured: outside, by where; `None` where nothing that is known explains it.
        gaps: between which graph calls they ran, by index of `Probe.gaps_s`; of forwards alone.
    """

    supports_higher_order_operators = True
    """Each, such as `torch.cond`, counts as one, whatever it runs."""

    def __init__(self, probe: Probe, sites: frozenset[Site]) -> None:
        """Count for a probe, operators outside graphs by these places."""
        super().__init__()
        self.captured = 0
        self.not_captured: Counter[Site | None] = Counter()
        self.gaps: defaultdict[int, Counter[Site | None]] = defaultdict(Counter)
        self._probe, self._sites = probe, sites
        self._owners: dict[int, _Owner] = {}
        self._next_node = internals.autograd_sequence_number()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let compiled code run as it does without this mode."""
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Count an operator, and run it."""
        del types
        owner = self._owner()
        if owner is not None and owner.captured:
            self.captured += 1
        elif owner is not None:
            self.not_captured[owner.site] += 1
        # An operator's autograd node is made just before the operator is dispatched.
        next_node = internals.autograd_sequence_number()
        if owner is not None and next_node > self._next_node:
            self._owners[next_node - 1] = owner
        self._next_node = next_node
        return func(*args, **(kwargs or {}))

    def _owner(self) -> _Owner | None:
        """Return to what the operator being dispatched is put down; `None` if not to the model.

        In a backward that is what the node belongs to which runs it. What that makes in turn, as
        where a forward is computed again, belongs to the same.
        """
        probe = self._probe
        if probe.in_model:
            if probe.inside is not None:
                return _Owner(captured=True)
            owner = _Owner(captured=False, site=self._site())
            self.gaps[len(probe.gaps_s)][owner.site] += 1
            return owner
        node = internals.running_node_number()
        if node is None:
            return None
        if node in self._owners:
            return self._owners[node]
        if node in probe.inside_nodes:
            return _Owner(captured=True)
        return _Owner(captured=False) if node in probe.model_nodes else None

    def _site(self) -> Site | None:
        """Name the innermost place that is known to lose operators and is being executed."""
        frame: FrameType | None = sys._getframe(3)  # noqa: SLF001  inspect's is the same, and slower
        while frame is not None:
            code = frame.f_code
            for site in (
                Site(code.co_filename, frame.f_lineno),
                Site(code.co_filename, code.co_firstlineno, code.co_name),
            ):
                if site in self._sites:
                    return site
            frame = frame.f_back
        return None


@dataclass(frozen=True)
class Capture:
    """A module as Dynamo compiles it, with everything that happens being noted."""

    probe: Probe
    log: compilations.CompileLog
    compiled: Callable[..., Any]

    @classmethod
    def of(cls, module: torch.nn.Module, synchronize: Callable[[], None]) -> Self:
        """Have Dynamo compile a module at its first call, after forgetting what it compiled."""
        state.forget_compiled()
        probe, log = Probe(synchronize), compilations.CompileLog.start()
        compiled = internals.optimize(probe.backend)(module)
        return cls(probe, log, probe.model(compiled))


def measure(capture: Capture, step: Callable[[], object], *, timed: bool = True) -> Coverage:
    """Take steps of a model, and say how much of it is captured.

    Args:
        capture: of the model.
        step: one step, which calls `capture.compiled`; compiles at its first call.
        timed: whether further steps are taken, for what share of seconds it is.
    """
    probe, log = capture.probe, capture.log
    with compilations.noting_breaks() as probe.notes:
        step()
        first = log.read()
        step()
        second = log.read(probe.notes)
        counter, seen = _count(probe, step, log, second)
        counted, model_calls = _Path.of(probe), probe.model_calls
        calls = Counter(counted.graphs)
        graphs = [CapturedGraph(ops=ops, calls=calls[index]) for index, ops in enumerate(probe.ops)]
        captured_s, total_s, gaps_s = _time(probe, step, counted) if timed else (None, None, None)
        guards_s = internals.lookup_s(step) if timed else None
    last = log.read()  # a model that comes to no rest may be given up while it is timed
    # Else compiling is among what was timed.
    steady = timed and len(probe.ops) == len(graphs)
    not_captured_s = (
        _not_captured_s(counter, gaps_s, counted.ends) if steady and gaps_s is not None else None
    )
    not_captured = NotCaptured(dict(counter.not_captured), not_captured_s)
    return Coverage(
        frames=first.frames,
        frames_ok=first.frames_ok,
        frames_again=second.frames_ok - first.frames_ok,
        model_calls=model_calls,
        graphs=tuple(graphs),
        captured_ops=counter.captured,
        total_ops=counter.captured + counter.not_captured.total(),
        captured_s=captured_s if steady else None,
        total_s=total_s if steady else None,
        breaks=graph_breaks(seen.breaks, not_captured),
        skipped=skipped_frames(seen.skipped, not_captured),
        recompiles=last.recompiles,
        guards=seen.guards,
        guards_s=guards_s if steady else None,
        recompile_limit_hits=last.recompile_limit_hits,
    )


class _Path(NamedTuple):
    """What a step ran.

    Attributes:
        graphs: in order.
        ends: of each gap between them the line at which the graph before it ended.
    """

    graphs: Sequence[int]
    ends: Sequence[Site | None]

    @classmethod
    def of(cls, probe: Probe) -> Self:
        """Return that of the step since `restart`."""
        return cls(probe.calls, probe.gap_ends)


def _count(
    probe: Probe,
    step: Callable[[], object],
    log: compilations.CompileLog,
    seen: compilations.Compilations,
) -> tuple[OpCounter, compilations.Compilations]:
    """Count the operators of a step; of another one where that has found further breaks.

    The place of a break has to be known before its operators can be put down to it.
    """
    left = _MOST_COUNTED
    while True:
        sites = sites_of(seen)
        probe.restart()
        with OpCounter(probe, sites) as counter:
            step()
        seen, left = log.read(probe.notes), left - 1
        if sites_of(seen) == sites or not left:
            return counter, seen


_MOST_COUNTED = 3
"""A model may go on finding new paths for ever."""


def _time(
    probe: Probe, step: Callable[[], object], counted: _Path
) -> tuple[float, float, list[float] | None]:
    """Return seconds inside graphs, of the forward, and of each gap, as medians over some steps.

    No gaps unless each step ran what the counted one did: else they are of other lines.
    """
    rows: list[tuple[float, float, list[float]]] = []
    alike = True
    for _ in range(_TIMED_STEPS):
        probe.restart()
        step()
        rows.append((probe.captured_s, probe.total_s, probe.gaps_s))
        alike = alike and _Path.of(probe) == counted
    captured, total, gaps = zip(*rows, strict=True)
    return (
        statistics.median(captured),
        statistics.median(total),
        [statistics.median(each) for each in zip(*gaps, strict=True)] if alike else None,
    )


def _not_captured_s(
    counter: OpCounter, gaps_s: Sequence[float], ends: Sequence[Site | None]
) -> dict[Site | None, float]:
    """Put the seconds of each gap down to the lines whose operators ran in it.

    Where none did, as where a library computes something else, to the line before the gap.
    """
    not_captured_s: defaultdict[Site | None, float] = defaultdict(float)
    for index, (gap_s, ended) in enumerate(zip(gaps_s, ends, strict=True)):
        sites = counter.gaps[index] or Counter((ended,))
        for site, ops in sites.items():
            not_captured_s[site] += gap_s * ops / sites.total()
    return not_captured_s
