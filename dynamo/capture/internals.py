"""Everything of torch that capture relies on and torch doesn't promise, in one place.

tests/unit/dynamo/capture/test_internals.py fails, by name, when one of these changes.
"""

from __future__ import annotations

import re
import statistics
import sysconfig
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import _dynamo
from torch._C._dynamo.guards import DictGuardManager, RootGuardManager
from torch._dynamo import (
    convert_frame,
    eval_frame,
    exc,
    graph_break,
    mark_dynamic,
    mark_static,
    maybe_mark_dynamic,
    symbolic_convert,
    utils,
)
from torch._guards import TracingContext

from dynamometer.results.values.coverage import Recompile, SkippedFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from traceback import FrameSummary
    from types import CodeType

    from torch import fx
    from torch._dynamo.output_graph import GraphCompileReason

__all__ = ["graph_break", "mark_dynamic", "mark_static", "maybe_mark_dynamic"]
"""What is given on as it is."""

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

CONTROL_FLOW = (exc.RestartAnalysis, exc.ShortenTraceback)
"""What Dynamo raises through backends to itself."""

_HINT = re.compile(r"^\s*Hint: (.*)$", re.MULTILINE)
_EXPLANATION = re.compile(r"^\s*Explanation: (.*)$", re.MULTILINE)
_GUARD_PLACE = re.compile(r"# (\S+:\d+ in \w+)")


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
    the line before.
    """
    notes: list[BreakNote] = []
    translator: Any = symbolic_convert.InstructionTranslatorBase
    original = translator.log_graph_break

    def log_graph_break(self: Any, code_options: Any, **said: Any) -> None:
        error = said["exc"]
        if not getattr(error, "logged", False):
            stack = getattr(error, "real_stack", None) or TracingContext.extract_stack()
            place = (code_options[f"co_{each}"] for each in ("filename", "firstlineno", "name"))
            text = getattr(error, "msg", str(error))
            found = replace(_break(text, stack), left=tuple(place))
            notes.append(BreakNote(len(utils.graph_break_reasons), found))
        original(self, code_options, **said)

    translator.log_graph_break = log_graph_break
    try:
        yield notes
    finally:
        translator.log_graph_break = original


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
        compilations: that it had tried.
    """

    frames: int
    frames_ok: int
    breaks: int
    compilations: int

    @classmethod
    def start(cls) -> Self:
        """Begin to read."""
        utils.set_compilation_metrics_limit(_ALL_COMPILATIONS)
        return cls(
            frames=utils.counters["frames"]["total"],
            frames_ok=utils.counters["frames"]["ok"],
            breaks=len(utils.graph_break_reasons),
            compilations=len(utils.get_compilation_metrics()),
        )

    def read(self, notes: Sequence[BreakNote] = ()) -> Compilations:
        """Give what was done since.

        Args:
            notes: taken meanwhile, to name the causes of graphs' ends that don't name their own.
        """
        everything = utils.get_compilation_metrics()[self.compilations :]
        metrics = [each for each in everything if each.co_name]
        # One that is refused, as it was compiled too often, has only the number of its frame.
        places = {_frame_number(each): _place(each) for each in metrics}
        failed = [each for each in everything if each.fail_reason and _frame_number(each) in places]
        return Compilations(
            frames=utils.counters["frames"]["total"] - self.frames,
            frames_ok=utils.counters["frames"]["ok"] - self.frames_ok,
            breaks=tuple(
                _end_of_graph(reason, [each.found for each in notes if each.before <= index])
                for index, reason in enumerate(utils.graph_break_reasons)
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


def _frame_number(found: utils.CompilationMetrics) -> str:
    """Give what all compilations of a function have in common: the first part of `3/8`."""
    return str(found.compile_id).rpartition("/")[0]


def _place(found: utils.CompilationMetrics) -> dict[str, Any]:
    """Give a frame's name and where it is defined."""
    return {
        "function": found.co_name or "",
        "file": found.co_filename or "",
        "line": found.co_firstlineno or 0,
    }


def _end_of_graph(reason: GraphCompileReason, noted: Sequence[Break]) -> Break:
    """Say why a graph had to end: in Dynamo's words then, or in those it found for it before."""
    if reason.reason == _GAVE_UP and noted:
        return noted[-1]
    return _break(reason.reason, reason.user_stack)


def _break(text: str, stack: Sequence[FrameSummary]) -> Break:
    file, line, function = _innermost(stack)
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
    """Say why a graph that a backend is given had to end; `None` where all of a frame is in it.

    Args:
        graph: as Dynamo gives it.
        notes: taken until now.
    """
    reason: GraphCompileReason | None = getattr(graph, "compile_subgraph_reason", None)
    if reason is None or not reason.graph_break:
        return None
    return _end_of_graph(reason, [each.found for each in notes])


def by_line(breaks: Iterable[Break]) -> dict[tuple[str, int], tuple[Break, int]]:
    """Give of each file and line what says why graphs end there, and how many do."""
    own: dict[tuple[str, int], list[Break]] = {}
    for each in breaks:
        own.setdefault((each.file, each.line), []).append(each)
    # Dynamo may give up a line for one reason, and then its frame for having done so.
    return {
        line: (next((each for each in found if each.reason != _GAVE_UP), found[0]), len(found))
        for line, found in own.items()
    }


def _is_foreign(file: str) -> bool:
    """Tell whether a file is Python's own or torch's."""
    path = PurePath(file)
    return path.is_relative_to(torch.__path__[0]) or (
        path.is_relative_to(sysconfig.get_paths()["stdlib"])
        and not {"site-packages", "dist-packages"} & set(path.parts)
    )


def headline(reason: str) -> str:
    """Keep the first line of a reason that says anything."""
    lines = (line.strip() for line in reason.splitlines())
    return next((line for line in lines if line), "no reason given")


def counters(group: str) -> Counter[str]:
    """Copy one of Dynamo's groups of counters."""
    return Counter(utils.counters[group])


def graphs_from_caches() -> int:
    """Count the graphs Inductor and AOTAutograd have found in their caches so far."""
    of_inductor, of_aot_autograd = counters("inductor"), counters("aot_autograd")
    return of_inductor["fxgraph_cache_hit"] + of_aot_autograd["autograd_cache_hit"]


def seconds_spent() -> dict[str, float]:
    """Copy torch's timers of what it does to compile."""
    return dict(utils.calculate_time_spent())


_LOOKUP = "TorchDynamo Cache Lookup"

_PROFILED_STEPS = (3, 20)
_PROFILED_FOR_S = 0.3


def lookup_s(step: Callable[[], object]) -> float | None:
    """Give the seconds of a step in which Dynamo looks for what it has compiled: checks guards.

    Of every frame that is entered, by an event of torch's profiler; `None` if there was none. The
    median over 3 to 20 steps, as the first ones under the profiler are slower.
    """
    least, most = _PROFILED_STEPS
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        acc_events=True,  # changes nothing here, but torch 2.11 warns without it
    ) as profile:
        until_s = time.perf_counter() + _PROFILED_FOR_S
        for steps in range(1, most + 1):
            step()
            if steps >= least and time.perf_counter() > until_s:
                break
    results: Any = profile.profiler
    events = [each for each in results.kineto_results.events() if each.name() == _LOOKUP]
    if not events:
        return None
    in_order = sorted(events, key=lambda each: each.start_ns())
    return median_step_s([each.duration_ns() for each in in_order], steps)


def median_step_s(durations_ns: Sequence[int], steps: int) -> float:
    """Give the median step's seconds, of events in order, of which each step has as many."""
    ends = [len(durations_ns) * each // steps for each in range(steps + 1)]
    return statistics.median(sum(durations_ns[low:high]) for low, high in pairwise(ends)) / 1e9


def compilations_by_frame() -> Counter[object]:
    """Copy how often each frame was compiled."""
    return Counter(convert_frame.FRAME_COMPILE_COUNTER)


def optimize(
    backend: Callable[..., Any] | str, *, nopython: bool = False, dynamic: bool | None = None
) -> Any:
    """Give Dynamo's own decorator, which compiles with a backend what it is applied to."""
    return _dynamo.optimize(backend, nopython=nopython, dynamic=dynamic)


def run_only(function: Callable[..., Any] | None = None) -> Any:
    """Give Dynamo's own decorator, or context, that compiles nothing new."""
    return _dynamo.run(function)


@contextmanager
def watching(rewritten: Callable[[CodeType, CodeType], None]) -> Iterator[None]:
    """Tell of every frame that is compiled meanwhile: its bytecode, and what Dynamo makes of it."""

    def hook(code: CodeType, new_code: CodeType) -> None:
        rewritten(code, new_code)

    handle = convert_frame.register_bytecode_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def guards_of(original: CodeType, rewritten: CodeType) -> tuple[tuple[str, str | None], ...]:
    """Give the guards that are checked before rewritten bytecode runs.

    Returns:
        The text of each, and the line of the user's code it is there for, if it is for one; nothing
        where Dynamo has dropped the bytecode since.
    """
    found = dict.fromkeys(
        text
        for entry in eval_frame._debug_get_cache_entry_list(original)  # noqa: SLF001  this module is the place
        if entry.code is rewritten
        for guard in _guards_below(entry.guard_manager.root)
        for text in guard.verbose_code_parts()
    )
    return tuple(map(_guard, found))


def _guards_below(manager: Any) -> Iterator[Any]:
    yield from manager.get_leaf_guards()
    if isinstance(manager, DictGuardManager):
        for pair in manager.get_key_value_managers().values():
            for each in pair:
                if each is not None:
                    yield from _guards_below(each)
    for child in manager.get_child_managers():
        yield from _guards_below(child)
    if isinstance(manager, RootGuardManager):
        yield from manager.get_epilogue_lambda_guards()


def _guard(text: str) -> tuple[str, str | None]:
    code, _, remarks = text.partition("  # ")
    places = [each for each in _GUARD_PLACE.findall(remarks) if not each.startswith("_dynamo/")]
    return code.strip(), places[-1] if places else None


def specializations() -> dict[tuple[str, int], tuple[str, int, str] | None]:
    """Say which symbols have become numbers in what is being compiled, for a backend to ask.

    Returns:
        For each expression of an input's size and its number, the file, line and function that
        made it one, where torch knows.
    """
    context = TracingContext.try_get()
    shapes = context.fake_mode.shape_env if context and context.fake_mode else None
    found: dict[tuple[str, int], tuple[str, int, str] | None] = {}
    if shapes is None:
        return found
    for symbol, number in shapes.replacements.items():
        for source in shapes.var_to_sources.get(symbol, ()) if number.is_number else ():
            stack = shapes.specialization_stacks.get(source)
            name = source.name() if callable(source.name) else source.name
            found[name, int(number)] = _innermost(stack) if stack else None
    return found


def _innermost(stack: Sequence[FrameSummary]) -> tuple[str, int, str]:
    own = [frame for frame in stack if not _is_foreign(frame.filename)]
    place = (own or stack)[-1]
    return place.filename, place.lineno or 0, place.name


def input_source(node: fx.Node) -> str | None:
    """Give the expression a graph's input comes from, such as `L['x']`, where Dynamo says."""
    source = getattr(node, "_dynamo_source", None)  # set just before a backend sees the graph
    name = getattr(source, "name", None)
    return name() if callable(name) else name  # before torch 2.13 a method


def compiler_of(backend: str | Callable[..., Any]) -> Callable[..., Any]:
    """Look a backend up by its name; a callable is one.

    Raises:
        torch._dynamo.exc.InvalidBackend: there is none of that name.
    """
    found: Callable[..., Any] = _dynamo.lookup_backend(backend)
    return found


def leave_alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have Dynamo run a function as it is; what that calls, it compiles."""
    left: Callable[..., Any] = _dynamo.disable(function, recursive=False)  # type: ignore[no-untyped-call]  # torch's
    return left


def autograd_sequence_number() -> int:
    """Give the number the next autograd node of this thread gets."""
    return int(torch._C._autograd._get_sequence_nr())  # noqa: SLF001  this module is the place


def running_node_number() -> int | None:
    """Give the number of the autograd node whose backward runs; `None` in a forward."""
    node: Any = torch._C._current_autograd_node()  # noqa: SLF001  this module is the place
    return None if node is None else int(node._sequence_nr())  # noqa: SLF001  this module is the place
