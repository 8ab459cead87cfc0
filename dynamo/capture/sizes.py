"""What Dynamo makes of a callable whose inputs change their sizes from call to call."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.dynamo import state
from dynamometer.dynamo.capture import compilations, internals
from dynamometer.dynamo.trees import tree_leaves
from dynamometer.results.reports.guard_words import in_words, readable
from dynamometer.results.values.sizes import SizeSweep, Specialization

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType

    Call = tuple[tuple[Any, ...], Mapping[str, Any]]

_OF_SIZES = (".size()", ".stride()", ".storage_offset()")


def mark_varying(calls: Sequence[Call]) -> None:
    """Mark every size that differs between calls as dynamic from the start, unlike all others."""
    leaves = [[each for each in tree_leaves(call) if _is_tensor(each)] for call in calls]
    for same in zip(*leaves, strict=False):
        for dimension, sizes in enumerate(zip(*(each.shape for each in same), strict=False)):
            if len(set(sizes)) > 1:
                for tensor in same:
                    internals.maybe_mark_dynamic(tensor, dimension)


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def observe(function: Callable[..., Any], calls: Sequence[Call], names: Sequence[str]) -> SizeSweep:
    """Have Dynamo compile a callable, after forgetting what it compiled, call after call.

    Args:
        function: a function or module; graphs run as they are.
        calls: the arguments of each, of another size each.
        names: what these sizes are called.
    """
    state.forget_compiled()
    log = compilations.CompileLog.start()
    codes: list[tuple[CodeType, CodeType]] = []
    numbers: list[tuple[str, int, internals.Place | None]] = []

    def backend(graph: torch.fx.GraphModule, example_inputs: object) -> Callable[..., Any]:
        del example_inputs
        numbers.extend(internals.specializations())
        run_as_is: Callable[..., Any] = graph.forward
        return run_as_is

    with internals.watching(lambda original, rewritten: codes.append((original, rewritten))):
        compiled = internals.optimize(backend)(function)
        for args, kwargs in calls:
            compiled(*args, **kwargs)
    texts = dict.fromkeys(text for pair in codes for text, _ in internals.guards_of(*pair))
    found = SizeSweep(
        sizes=tuple(names),
        frames=len(codes),
        recompiles=log.read().recompiles,
        guards=tuple(in_words(text) for text in texts if any(each in text for each in _OF_SIZES)),
        specializations=tuple(_specialization(*each) for each in dict.fromkeys(numbers)),
    )
    state.forget_compiled()
    return found


def _specialization(size: str, number: int, place: internals.Place | None) -> Specialization:
    if place is None:
        return Specialization(size=readable(size), number=number)
    file, line, function = place
    code = linecache.getline(file, line).strip() or None
    return Specialization(
        size=readable(size), number=number, file=file, line=line, function=function, code=code
    )
