"""What Dynamo compiled and where graphs had to end, from its own logs.

Like `internals`, this relies on what torch doesn't promise; when that changes,
tests/unit/dynamo/capture/test_internals.py fails, by name.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self

import torch

from dynamometer.dynamo.private import GoneError, private
from dynamometer.results.values.coverage import Recompile, SkippedFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from traceback import FrameSummary

    from torch import fx
    from torch._dynamo.output_graph import GraphCompileReason
    from torch._dynamo.utils import CompilationMetrics


_GAVE_UP = "step_unsupported"
_JUMP = "generic_jump"
_OF_JUMPS = (
    "Data-dependent branching",
    "Which branch is taken depends on a number that is known only once a tensor is computed.",
    ("Compute both and choose with `torch.where`, or give both to `torch.cond`.",),
)
"""What Dynamo itself says of a branch on data elsewhere: here it gives the branch's operand."""

_ALL_COMPILATIONS = 100_000
"""Torch keeps the last 64 unless told."""

_HINT = re.compile(r"^\s*Hint: (.*)$", re.MULTILINE)
_EXPLANATION = re.compile(r"^\s*Explanation: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Break:
    """Why and where one graph had to end: the innermost line that is not Python's or torch's."""

    reason: str
    explanation: str | None
    hints: tuple[str, ...]
    file: str
    line: int
    function: str
    callers: tuple[tuple[str, int], ...] = ()
    """Files and lines that led there, innermost last, but for Python's and torch's."""
    left: tuple[str, int, str] | None = None
    """File, first line and name of a function of which Dynamo leaves the rest as it is."""


@dataclass(frozen=True)
class BreakNote:
    """What Dynamo could not follow, as it says when it finds out.

    Attributes:
        before: how many graphs had ended by then.
        found: what it was.
    """

    before: int
    found: Break


@contextmanager
def noting_breaks() -> Iterator[list[BreakNote]]:
    """Note what ends graphs; where Dynamo can't go on after it, it says no more of it later on.

    Such is a break within `try` or `with`: of the graph's end it only says `step_unsupported`, at
    the line before. Nothing is noted where torch has not what it takes any more.
    """
    notes: list[BreakNote] = []
    try:
        translator = private("torch._dynamo.symbolic_convert.InstructionTranslatorBase")
        tracing = private("torch._guards.TracingContext")
    except GoneError:
        yield notes
        return
    original = translator.log_graph_break

    def log_graph_break(self: Any, code_options: Any, **said: Any) -> None:
        error = said["exc"]
        if not getattr(error, "logged", False):
            stack = getattr(error, "real_stack", None) or tracing.extract_stack()
            place = (code_options[f"co_{each}"] for each in ("filename", "firstlineno", "name"))
            text = getattr(error, "msg", str(error))
            found = replace(_break(text, stack), left=tuple(place))
            notes.append(BreakNote(len(_utils("graph_break_reasons")), found))
        original(self, code_options, **said)

    translator.log_graph_break = log_graph_break
    try:
        yield notes
    finally:
        translator.log_graph_break = original


@contextmanager
def keeping_all() -> Iterator[None]:
    """Have torch keep what it notes of every compilation, and as many as before afterwards.

    Where torch can't be told any more, it keeps what it does.
    """
    try:
        before = _utils("_compilation_metrics").maxlen
        set_limit = _utils("set_compilation_metrics_limit")
    except GoneError:
        yield
        return
    set_limit(_ALL_COMPILATIONS)
    try:
        yield
    finally:
        set_limit(before)


@dataclass(frozen=True)
class Compilations:
    """What Dynamo has done since some moment."""

    frames: int
    frames_ok: int
    breaks: tuple[Break, ...]
    skipped: tuple[SkippedFrame, ...]
    recompiles: tuple[Recompile, ...]
    guards: int
    recompile_limit_hits: int


@dataclass(frozen=True)
class CompileLog:
    """Reads what Dynamo notes of what it does.

    Attributes:
        frames: that it had seen when this was made.
        frames_ok: that it had compiled.
        breaks: graphs that had ended.
        last: the compilation that it had tried last, if any.
    """

    frames: int
    frames_ok: int
    breaks: int
    last: CompilationMetrics | None

    @classmethod
    def start(cls) -> Self:
        """Begin to read; within `keeping_all` nothing is lost."""
        return cls(
            frames=_utils("counters")["frames"]["total"],
            frames_ok=_utils("counters")["frames"]["ok"],
            breaks=len(_utils("graph_break_reasons")),
            last=next(reversed(_utils("get_compilation_metrics")()), None),
        )

    def read(self, notes: Sequence[BreakNote] = ()) -> Compilations:
        """Return what was done since.

        Args:
            notes: taken meanwhile, to name the causes of graphs' ends that don't name their own.
        """
        everything = self._tried_since()
        metrics = [each for each in everything if each.co_name]
        # One that is refused, as it was compiled too often, has only the number of its frame.
        places = {_frame_number(each): _place(each) for each in metrics}
        failed = [each for each in everything if each.fail_reason and _frame_number(each) in places]
        return Compilations(
            frames=_utils("counters")["frames"]["total"] - self.frames,
            frames_ok=_utils("counters")["frames"]["ok"] - self.frames_ok,
            breaks=tuple(
                _end_of_graph(reason, [each.found for each in notes if each.before <= index])
                for index, reason in enumerate(_utils("graph_break_reasons"))
                if index >= self.breaks
            ),
            skipped=tuple(
                SkippedFrame(
                    **places[_frame_number(each)],
                    reason=headline(each.fail_reason or ""),
                    hint=next(iter(_HINT.findall(each.fail_reason or "")), None),
                    stopped_file=each.fail_user_frame_filename,
                    stopped_line=each.fail_user_frame_lineno,
                )
                for each in failed
            ),
            recompiles=tuple(
                Recompile(**_place(each), guard=headline(each.recompile_reason))
                for each in metrics
                if each.recompile_reason
            ),
            guards=sum(each.guard_count or 0 for each in metrics),
            recompile_limit_hits=sum(
                "recompile limit exceeded" in (each.fail_reason or "") for each in everything
            ),
        )

    def _tried_since(self) -> list[CompilationMetrics]:
        """Return the compilations that were tried since, as far as torch has kept them.

        Told by the last one before: torch drops the first ones, so that their number says nothing.
        """
        kept: list[CompilationMetrics] = _utils("get_compilation_metrics")()
        before = [index for index, each in enumerate(kept) if each is self.last]
        return kept[before[-1] + 1 :] if before else kept


def _utils(name: str) -> Any:
    """Look up where Dynamo keeps its books."""
    return private(f"torch._dynamo.utils.{name}")


def _frame_number(found: CompilationMetrics) -> str:
    """Return what all compilations of a function have in common: the first part of `3/8`."""
    return str(found.compile_id).rpartition("/")[0]


def _place(found: CompilationMetrics) -> dict[str, Any]:
    """Return a frame's name and where it is defined."""
    return {
        "function": found.co_name or "",
        "file": found.co_filename or "",
        "line": found.co_firstlineno or 0,
    }


def _end_of_graph(reason: GraphCompileReason, noted: Sequence[Break]) -> Break:
    """Return why a graph had to end: in Dynamo's words then, or in those it found for it before."""
    if reason.reason == _GAVE_UP and noted:
        return noted[-1]
    return _break(reason.reason, reason.user_stack)


def _break(text: str, stack: Sequence[FrameSummary]) -> Break:
    file, line, function = innermost(stack)
    own = tuple(
        (each.filename, each.lineno or 0) for each in stack if not _is_foreign(each.filename)
    )
    explanation = _EXPLANATION.search(text)
    if text.startswith(_JUMP):
        return Break(*_OF_JUMPS, file, line, function, own[:-1])
    return Break(
        reason=headline(text),
        explanation=explanation[1] if explanation else None,
        hints=tuple(_HINT.findall(text)),
        file=file,
        line=line,
        function=function,
        callers=own[:-1],
    )


def break_after(graph: fx.GraphModule, notes: Sequence[BreakNote] = ()) -> Break | None:
    """Return why a graph that a backend is given had to end; `None` where all of a frame is in it.

    Args:
        graph: as Dynamo gives it.
        notes: taken until now.
    """
    reason: GraphCompileReason | None = getattr(graph, "compile_subgraph_reason", None)
    if reason is None or not reason.graph_break:
        return None
    return _end_of_graph(reason, [each.found for each in notes])


def by_reason(breaks: Iterable[Break]) -> list[tuple[Break, int]]:
    """Return each reason why graphs end at a line once, with how many do; those of a line together.

    Dynamo may give up a line for one reason, and then its frame for having done so: that counts to
    the reason.
    """
    lines: dict[tuple[str, int], list[Break]] = {}
    for each in breaks:
        lines.setdefault((each.file, each.line), []).append(each)
    found = []
    for here in lines.values():
        told = [each for each in here if each.reason != _GAVE_UP] or here
        times = Counter(each.reason for each in told)
        times[told[0].reason] += len(here) - len(told)
        firsts = {each.reason: each for each in reversed(told)}
        found += [(firsts[reason], count) for reason, count in times.items()]
    return found


def _is_foreign(file: str) -> bool:
    """Return whether a file is Python's own or torch's."""
    path = PurePath(file)
    return path.is_relative_to(torch.__path__[0]) or (
        path.is_relative_to(PurePath(os.__file__).parent)
        and not {"site-packages", "dist-packages"} & set(path.parts)
    )


def headline(reason: str) -> str:
    """Keep the first line of a reason that says anything."""
    lines = (line.strip() for line in reason.splitlines())
    return next((line for line in lines if line), "no reason given")


def innermost(stack: Sequence[FrameSummary]) -> tuple[str, int, str]:
    """Return file, line and function of the model's own innermost frame, or of the last."""
    own = [frame for frame in stack if not _is_foreign(frame.filename)]
    place = (own or stack)[-1]
    return place.filename, place.lineno or 0, place.name
