"""What Dynamo makes of a callable, in values that can be shown or stored. No torch."""

from __future__ import annotations

from dynamometer.results.values.cases import Value
from dynamometer.results.values.coverage import Recompile, SkippedFrame


class Instruction(Value, frozen=True, kw_only=True):
    """One instruction of Python's bytecode."""

    offset: int
    """Where it stands, in bytes: what jumps name."""
    line: int | None
    """The source line it begins, if it begins one."""
    operation: str
    argument: str = ""


class Operation(Value, frozen=True, kw_only=True):
    """One node of a graph, a row of its table."""

    name: str
    kind: str
    """`placeholder`, `get_attr`, `call_function`, `call_method`, `call_module` or `output`."""
    target: str
    """What is called, or read."""
    inputs: str
    result: str
    """Dtype and shape; of a dimension that varies, its symbol."""


class Guard(Value, frozen=True, kw_only=True):
    """One thing that has to hold for compiled code to be used again."""

    words: str
    code: str
    """As Dynamo has it."""
    place: str | None = None
    """The line of the user's code it is there for, where Dynamo says."""


class Frame(Value, frozen=True, kw_only=True):
    """One compilation of one Python function, or of the rest of one after a graph break."""

    function: str
    file: str
    line: int
    original: tuple[Instruction, ...]
    rewritten: tuple[Instruction, ...]
    """What Dynamo has Python run instead."""
    graphs: tuple[tuple[Operation, ...], ...]
    guards: tuple[Guard, ...]


class ExplainedBreak(Value, frozen=True, kw_only=True):
    """A line at which a graph had to end."""

    reason: str
    explanation: str | None
    advice: tuple[str, ...]
    file: str
    line: int
    function: str
    excerpt: tuple[tuple[int, str], ...]
    """Numbered lines of the source around it."""


class LeftAlone(Value, frozen=True, kw_only=True):
    """A function Dynamo left as it is."""

    frame: SkippedFrame
    excerpt: tuple[tuple[int, str], ...]
    """Numbered lines of the source around that at which Dynamo stopped."""


class Explanation(Value, frozen=True, kw_only=True):
    """What Dynamo makes of a callable over some calls."""

    target: str
    torch: str
    """Its version."""
    calls: int
    frames: tuple[Frame, ...]
    breaks: tuple[ExplainedBreak, ...]
    left_alone: tuple[LeftAlone, ...]
    recompiles: tuple[Recompile, ...]

    @property
    def graphs(self) -> int:
        """How many graphs there are, over all frames."""
        return sum(len(frame.graphs) for frame in self.frames)
