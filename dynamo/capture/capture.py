"""What Dynamo captured, read from its own counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dynamometer.dynamo.capture import internals
from dynamometer.dynamo.capture.compilations import CompileLog, headline
from dynamometer.dynamo.private import GoneError
from dynamometer.results.values.records import CaptureStats


@dataclass(frozen=True)
class Counters:
    """Dynamo's counters at one moment; numbers are differences of two of these."""

    graphs: int
    ops: int
    breaks: Counter[str]
    compiled_autograd: Counter[str]
    cudagraph_skips: int
    compilations: Counter[object]
    """By frame."""
    log: CompileLog

    @classmethod
    def take(cls) -> Counters | None:
        """Copy the counters; `None` where torch has not all of them any more."""
        try:
            return cls(
                graphs=internals.counters("stats")["unique_graphs"],
                ops=internals.counters("stats")["calls_captured"],
                breaks=internals.counters("graph_break"),
                compiled_autograd=internals.counters("compiled_autograd"),
                cudagraph_skips=internals.counters("inductor")["cudagraph_skips"],
                compilations=internals.compilations_by_frame(),
                log=CompileLog.start(),
            )
        except GoneError:
            return None

    def recompile_limit_hits(self) -> int:
        """Count the frames that Dynamo gave up on since these were taken."""
        return self.log.read().recompile_limit_hits

    def _autograd(self, now: Counters, what: str) -> int:
        return now.compiled_autograd[what] - self.compiled_autograd[what]

    def stats_since(self, first_call: Counters) -> CaptureStats:
        """Return what was captured since these were taken.

        Args:
            first_call: taken after the first call; frames that it compiled and that are compiled
                again later on are recompiles. A frame that the first call itself compiles several
                times is one that several of the model's parts share.
        """
        now, log = Counters.take(), self.log.read()
        assert now is not None, "there were counters before"
        breaks: Counter[str] = Counter()
        for reason, count in (now.breaks - self.breaks).items():
            breaks[headline(reason)] += count
        frames, frames_ok = log.frames, log.frames_ok
        if frames == 0:  # where the whole must be one graph Dynamo doesn't count: all are, or none
            frames = frames_ok = len(now.compilations - self.compilations)
        return CaptureStats(
            frames=frames,
            frames_ok=frames_ok,
            graphs=now.graphs - self.graphs,
            ops=now.ops - self.ops,
            breaks=dict(breaks),
            guards=log.guards,
            autograd_captures=self._autograd(now, "captures"),
            autograd_compiles=self._autograd(now, "compiles"),
            cudagraph_skips=now.cudagraph_skips - self.cudagraph_skips,
            recompiles=sum(
                times
                for frame, times in (now.compilations - first_call.compilations).items()
                if first_call.compilations[frame] > self.compilations[frame]
            ),
        )


def frames_seen() -> int:
    """Count the frames Dynamo has looked at; a rise means that something was compiled.

    Nothing ever seems to be where torch doesn't count them any more.
    """
    try:
        # Where the whole must be one graph, Dynamo counts no frames but those it compiles.
        return internals.counters("frames")["total"] + internals.compilations_by_frame().total()
    except GoneError:
        return 0
