"""What Dynamo captured, read from its own counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dynamometer.dynamo.capture import internals
from dynamometer.dynamo.capture.compilations import CompileLog, headline
from dynamometer.results.values.records import CaptureStats


@dataclass(frozen=True)
class Snapshot:
    """Dynamo's counters at one moment; numbers are differences of two snapshots."""

    graphs: int
    ops: int
    breaks: Counter[str]
    compilations: Counter[object]
    """By frame."""
    log: CompileLog

    @classmethod
    def take(cls) -> Snapshot:
        """Copy the counters."""
        return cls(
            graphs=internals.counters("stats")["unique_graphs"],
            ops=internals.counters("stats")["calls_captured"],
            breaks=internals.counters("graph_break"),
            compilations=internals.compilations_by_frame(),
            log=CompileLog.start(),
        )

    def stats_since(self, first_call: Snapshot) -> CaptureStats:
        """Return what was captured since this snapshot was taken.

        Args:
            first_call: taken after the first call; frames that it compiled and that are compiled
                again later on are recompiles. A frame that the first call itself compiles several
                times is one that several of the model's parts share.
        """
        now, log = Snapshot.take(), self.log.read()
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
            recompiles=sum(
                times
                for frame, times in (now.compilations - first_call.compilations).items()
                if first_call.compilations[frame] > self.compilations[frame]
            ),
        )


def frames_seen() -> int:
    """Count the frames Dynamo has looked at; a rise means that something was compiled."""
    # Where the whole must be one graph, Dynamo counts no frames but those it compiles.
    return internals.counters("frames")["total"] + internals.compilations_by_frame().total()
