"""What Dynamo captured, read from its own counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from torch._dynamo import convert_frame
from torch._dynamo.utils import counters

from dynamometer.results.records import CaptureStats


@dataclass(frozen=True)
class Snapshot:
    """Dynamo's counters at one moment; numbers are differences of two snapshots."""

    frames: int
    frames_ok: int
    graphs: int
    ops: int
    breaks: Counter[str]
    compilations: Counter[object]
    """By frame."""

    @classmethod
    def take(cls) -> Snapshot:
        """Copy the counters."""
        return cls(
            frames=counters["frames"]["total"],
            frames_ok=counters["frames"]["ok"],
            graphs=counters["stats"]["unique_graphs"],
            ops=counters["stats"]["calls_captured"],
            breaks=Counter(counters["graph_break"]),
            compilations=Counter(convert_frame.FRAME_COMPILE_COUNTER),
        )

    def stats_since(self, first_call: Snapshot) -> CaptureStats:
        """Give what was captured since this snapshot was taken.

        Args:
            first_call: taken after the first call; frames that it compiled and that are compiled
                again later on are recompiles. A frame that the first call itself compiles several
                times is one that several of the model's parts share.
        """
        now = Snapshot.take()
        breaks: Counter[str] = Counter()
        for reason, count in (now.breaks - self.breaks).items():
            breaks[_headline(reason)] += count
        return CaptureStats(
            frames=now.frames - self.frames,
            frames_ok=now.frames_ok - self.frames_ok,
            graphs=now.graphs - self.graphs,
            ops=now.ops - self.ops,
            breaks=dict(breaks),
            recompiles=sum(
                times
                for frame, times in (now.compilations - first_call.compilations).items()
                if first_call.compilations[frame] > self.compilations[frame]
            ),
        )


def _headline(reason: str) -> str:
    """Keep the first line of a reason that says anything."""
    lines = (line.strip() for line in reason.splitlines())
    return next((line for line in lines if line), "no reason given")


def frames_seen() -> int:
    """Count the frames Dynamo has looked at; a rise means that something was compiled."""
    return int(counters["frames"]["total"])
