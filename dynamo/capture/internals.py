"""What capture relies on and torch doesn't promise, here and in `compilations`.

The names are looked up by `private`, where they are used.

tests/unit/dynamo/capture/test_internals.py fails, by name, when one of these changes.
"""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.dynamo.capture.compilations import innermost
from dynamometer.dynamo.private import GoneError, offered, private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType

    from torch import fx

graph_break = offered("torch._dynamo.graph_break")
mark_dynamic = offered("torch._dynamo.mark_dynamic")
mark_static = offered("torch._dynamo.mark_static")
maybe_mark_dynamic = offered("torch._dynamo.maybe_mark_dynamic")

Place = tuple[str, int, str]
"""File, line and function."""

_GUARD_PLACE = re.compile(r"# ([^#]+?:\d+ in (?:\w+|<\w+>))")


def control_flow() -> tuple[type[BaseException], ...]:
    """Return what Dynamo raises through backends to itself."""
    found = []
    for name in ("RestartAnalysis", "ShortenTraceback"):
        with suppress(GoneError):
            found.append(private(f"torch._dynamo.exc.{name}"))
    return tuple(found)


def compile_failures() -> tuple[type[BaseException], ...]:
    """Return what Dynamo raises to its caller where it, or a backend, can't compile."""
    with suppress(GoneError):
        return (private("torch._dynamo.exc.TorchDynamoException"),)
    return ()


def counters(group: str) -> Counter[str]:
    """Copy one of Dynamo's groups of counters.

    Raises:
        GoneError: torch has none any more; likewise below, for whatever torch doesn't promise.
    """
    return Counter(private("torch._dynamo.utils.counters")[group])


def graphs_from_caches() -> int:
    """Count the graphs Inductor and AOTAutograd have found in their caches so far.

    None ever seems to be where torch doesn't count them any more.
    """
    try:
        of_inductor, of_aot_autograd = counters("inductor"), counters("aot_autograd")
    except GoneError:
        return 0
    return of_inductor["fxgraph_cache_hit"] + of_aot_autograd["autograd_cache_hit"]


def seconds_spent() -> dict[str, float]:
    """Copy torch's timers of what it does to compile."""
    return dict(private("torch._dynamo.utils.calculate_time_spent")())


_LOOKUP = "TorchDynamo Cache Lookup"

_PROFILED_STEPS = (3, 20)
_PROFILED_FOR_S = 0.3


def lookup_s(step: Callable[[], object]) -> float | None:
    """Return the seconds of a step in which Dynamo looks for what it has compiled: checks guards.

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
    """Return the median step's seconds, of events in order, of which each step has as many."""
    ends = [len(durations_ns) * each // steps for each in range(steps + 1)]
    return statistics.median(sum(durations_ns[low:high]) for low, high in pairwise(ends)) / 1e9


def compilations_by_frame() -> Counter[object]:
    """Copy how often each frame was compiled."""
    return Counter(private("torch._dynamo.convert_frame.FRAME_COMPILE_COUNTER"))


def optimize(
    backend: Callable[..., Any] | str, *, nopython: bool = False, dynamic: bool | None = None
) -> Any:
    """Return Dynamo's own decorator, which compiles with a backend what it is applied to."""
    return private("torch._dynamo.optimize")(backend, nopython=nopython, dynamic=dynamic)


def run_only(function: Callable[..., Any] | None = None) -> Any:
    """Return Dynamo's own decorator, or context, that compiles nothing new."""
    return private("torch._dynamo.run")(function)


@contextmanager
def watching(rewritten: Callable[[CodeType, CodeType], None]) -> Iterator[None]:
    """Tell of every frame that is compiled meanwhile: its bytecode, and what Dynamo makes of it.

    Of none where torch doesn't tell any more.
    """

    def hook(code: CodeType, new_code: CodeType) -> None:
        rewritten(code, new_code)

    try:
        handle = private("torch._dynamo.convert_frame.register_bytecode_hook")(hook)
    except GoneError:
        yield
        return
    try:
        yield
    finally:
        handle.remove()


def guards_of(original: CodeType, rewritten: CodeType) -> tuple[tuple[str, str | None], ...]:
    """Return the guards that are checked before rewritten bytecode runs.

    Returns:
        The text of each, and the line of the user's code it is there for, if it is for one; nothing
        where Dynamo has dropped the bytecode since, or torch doesn't tell any more.
    """
    try:
        return _guards_of(original, rewritten)
    except GoneError:
        return ()


def _guards_of(original: CodeType, rewritten: CodeType) -> tuple[tuple[str, str | None], ...]:
    entries = private("torch._dynamo.eval_frame._debug_get_cache_entry_list")
    found = dict.fromkeys(
        text
        for entry in entries(original)
        if entry.code is rewritten
        for guard in _guards_below(entry.guard_manager.root)
        for text in guard.verbose_code_parts()
    )
    return tuple(map(_guard, found))


def _guards_below(manager: Any) -> Iterator[Any]:
    yield from manager.get_leaf_guards()
    if isinstance(manager, private("torch._C._dynamo.guards.DictGuardManager")):
        for pair in manager.get_key_value_managers().values():
            for each in pair:
                if each is not None:
                    yield from _guards_below(each)
    for child in manager.get_child_managers():
        yield from _guards_below(child)
    if isinstance(manager, private("torch._C._dynamo.guards.RootGuardManager")):
        yield from manager.get_epilogue_lambda_guards()


def _guard(text: str) -> tuple[str, str | None]:
    code, _, remarks = text.partition("  # ")
    places = [each for each in _GUARD_PLACE.findall(remarks) if not each.startswith("_dynamo/")]
    return code.strip(), places[-1] if places else None


def specializations() -> list[tuple[str, int, Place | None]]:
    """Return which symbols have become numbers in what is being compiled, for a backend to ask.

    Returns:
        Each expression of an input's size, its number, and the place that made it one, where torch
        knows; in order. Two frames may have sizes of one name.
    """
    try:
        context = private("torch._guards.TracingContext").try_get()
    except GoneError:
        return []
    shapes = context.fake_mode.shape_env if context and context.fake_mode else None
    found: list[tuple[str, int, Place | None]] = []
    if shapes is None:
        return found
    for symbol, number in shapes.replacements.items():
        for source in shapes.var_to_sources.get(symbol, ()) if number.is_number else ():
            stack = shapes.specialization_stacks.get(source)
            name = source.name() if callable(source.name) else source.name
            found.append((name, int(number), innermost(stack) if stack else None))
    return found


def input_source(node: fx.Node) -> str | None:
    """Return the expression a graph's input comes from, such as `L['x']`, where Dynamo says."""
    source = getattr(node, "_dynamo_source", None)  # set just before a backend sees the graph
    name = getattr(source, "name", None)
    return name() if callable(name) else name  # before torch 2.13 a method


def compiler_of(backend: str | Callable[..., Any]) -> Callable[..., Any]:
    """Look a backend up by its name; a callable is one.

    Raises:
        torch._dynamo.exc.InvalidBackend: there is none of that name.
    """
    found: Callable[..., Any] = private("torch._dynamo.lookup_backend")(backend)
    return found


def leave_alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have Dynamo run a function as it is; what that calls, it compiles."""
    left: Callable[..., Any] = private("torch._dynamo.disable")(function, recursive=False)
    return left


def autograd_sequence_number() -> int:
    """Return the number the next autograd node of this thread gets."""
    return int(private("torch._C._autograd._get_sequence_nr")())


def running_node_number() -> int | None:
    """Return the number of the autograd node whose backward runs; `None` in a forward."""
    node: Any = private("torch._C._current_autograd_node")()
    return None if node is None else int(node._sequence_nr())  # noqa: SLF001  this module is the place
