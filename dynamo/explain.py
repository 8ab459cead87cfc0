"""What Dynamo makes of a callable: bytecode, graphs, guards and breaks, as it happens."""

from __future__ import annotations

import dis
import linecache
import re
from dataclasses import dataclass, field
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.dynamo import state
from dynamometer.dynamo.capture import compilations, internals
from dynamometer.dynamo.capture.function import FunctionModule
from dynamometer.results.reports.guard_words import in_words, readable
from dynamometer.results.values.explanation import (
    ExplainedBreak,
    Explanation,
    Frame,
    Guard,
    Instruction,
    LeftAlone,
    Operation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import CodeType

Call = tuple[tuple[Any, ...], "Mapping[str, Any]"]
"""Positional and keyword arguments."""

_BORING = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "RESUME"})
"""Instructions that say nothing to a reader, and differ from one Python to the next."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_UNIQUE = re.compile(r"(__compiled_fn_\d+)_[0-9a-f_]+")
"""The name of a compiled graph ends with a random number."""

_DIRECTORY = re.compile(r"^.*/")
_CONTEXT_LINES = 2


def explain(
    name: str, function: Callable[..., Any], calls: Sequence[Call], *, is_training: bool = False
) -> Explanation:
    """Have Dynamo compile a callable, after forgetting what it compiled, and note what it does.

    Args:
        name: what the callable is to be called.
        function: a function or module; it runs once for each of the calls.
        calls: the arguments of each; further calls show recompiles, and what lies beyond a branch.
        is_training: whether it gives a loss, of which a backward pass follows each call.
    """
    if isinstance(function, FunctionModule):
        function = function.function
    state.forget_compiled()
    recorder = _Recorder()
    with (
        compilations.keeping_all(),
        internals.watching(recorder.rewritten),
        compilations.noting_breaks() as notes,
    ):
        log = compilations.CompileLog.start()
        compiled = internals.optimize(recorder.backend)(function)
        for args, kwargs in calls:
            result = compiled(*args, **kwargs)
            if isinstance(result, GeneratorType):
                result = list(result)  # it has computed nothing yet
            if is_training:
                result.backward()
        done = log.read(notes)
    return Explanation(
        target=name,
        torch=str(torch.__version__).partition("+")[0],
        calls=len(calls),
        frames=tuple(map(_frame, recorder.frames)),
        breaks=tuple(_break(each) for each, _ in compilations.by_reason(done.breaks)),
        left_alone=tuple(
            LeftAlone(frame=each, excerpt=_excerpt(*each.cause)) for each in done.skipped
        ),
        recompiles=done.recompiles,
    )


@dataclass(frozen=True)
class _Compiled:
    original: CodeType
    rewritten: CodeType
    graphs: tuple[tuple[Operation, ...], ...]


@dataclass
class _Recorder:
    """Notes each graph, and then the frame it was captured in."""

    frames: list[_Compiled] = field(default_factory=list)
    _graphs: list[tuple[Operation, ...]] = field(default_factory=list)

    def backend(self, graph: torch.fx.GraphModule, example_inputs: object) -> Callable[..., Any]:
        del example_inputs
        self._graphs.append(tuple(map(_operation, graph.graph.nodes)))
        run_as_is: Callable[..., Any] = graph.forward
        return run_as_is

    def rewritten(self, original: CodeType, rewritten: CodeType) -> None:
        self.frames.append(_Compiled(original, rewritten, tuple(self._graphs)))
        self._graphs.clear()


def _operation(node: torch.fx.Node) -> Operation:
    arguments = [repr(each) for each in node.args]
    arguments += [f"{name}={value!r}" for name, value in node.kwargs.items()]
    return Operation(
        name=node.name,
        kind=node.op,
        target=_target(node),
        inputs=", ".join(arguments),
        result=_result(node.meta.get("example_value")),
    )


def _target(node: torch.fx.Node) -> str:
    if node.op == "placeholder":
        return readable(internals.input_source(node) or "")
    if isinstance(node.target, str):
        return "" if node.op == "output" else node.target
    module = getattr(node.target, "__module__", None) or "torch"
    module = "operator" if module == "_operator" else module
    return f"{module}.{node.target.__name__}"


def _result(value: object) -> str:
    """Return dtype and shape of what a node gives, as far as that is known before it runs."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return f"{dtype}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_result, value))})"
    return "" if value is None else str(value)


def _frame(found: _Compiled) -> Frame:
    code = found.original
    return Frame(
        function=code.co_name,
        file=code.co_filename,
        line=code.co_firstlineno,
        original=tuple(_instructions(code)),
        rewritten=tuple(_instructions(found.rewritten)),
        graphs=found.graphs,
        guards=tuple(_guards(internals.guards_of(code, found.rewritten))),
    )


def _guards(found: Iterable[tuple[str, str | None]]) -> Iterator[Guard]:
    """Return what each asks for, and what several ask for once."""
    said = set()
    for code, place in found:
        words = in_words(code)
        if words not in said:
            said.add(words)
            yield Guard(words=words, code=code, place=place and _DIRECTORY.sub("", place))


def _instructions(code: CodeType) -> Iterator[Instruction]:
    line = None
    for each in dis.get_instructions(code):
        # Python 3.13 says whether a line begins, and the line elsewhere.
        starts = getattr(each, "line_number", each.starts_line) if each.starts_line else None
        line = starts if starts is not None else line
        if each.opname not in _BORING:
            text = each.argrepr or ("" if each.arg is None else str(each.arg))
            argument = _UNIQUE.sub(r"\1", _ADDRESS.sub("", text))
            yield Instruction(
                offset=each.offset, line=line, operation=each.opname, argument=argument
            )
            line = None


def _break(found: compilations.Break) -> ExplainedBreak:
    return ExplainedBreak(
        reason=found.reason,
        explanation=found.explanation,
        advice=found.hints,
        file=found.file,
        line=found.line,
        function=found.function,
        excerpt=_excerpt(found.file, found.line),
    )


def _excerpt(file: str, around: int) -> tuple[tuple[int, str], ...]:
    first, last = around - _CONTEXT_LINES, around + _CONTEXT_LINES
    numbered = ((line, linecache.getline(file, line)) for line in range(first, last + 1))
    return tuple((line, text.rstrip()) for line, text in numbered if line > 0 and text)
