"""A graph that is computed part by part, as an arm; for `bench/cut_graphs.py`.

The environment names a file with the parts of the graph, and of each the backend.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from cut_plans import PlannedPart
from cutting import Assembled, cut, operations

from dynamometer.common.measuring.arm_backends import load_backend
from dynamometer.dynamo.ensemble.compiling import compile_graph
from dynamometer.results.values.cases import NO_BACKEND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import fx

PLAN = "CUT_GRAPHS_PLAN"
"""The variable that names the file: JSON, the parts in order."""


def in_parts(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compile a graph of Dynamo as the plan says.

    A graph that was loaded and is captured again has its operations in the order they had; its
    inputs are in another, and so it has another key.

    Raises:
        ValueError: it has not as many operations as the graph that the plan is of.
    """
    del inputs
    parts = msgspec.json.decode(Path(os.environ[PLAN]).read_bytes(), type=list[PlannedPart])
    count = len(operations(graph))
    if count != parts[-1].stop:
        msg = f"the plan is of a graph of {parts[-1].stop} operations; this one has {count}"
        raise ValueError(msg)
    found = cut(graph, [each.start for each in parts[1:]])
    return Assembled(
        graph,
        found,
        [_compiled(each.arm, part.graph) for each, part in zip(parts, found, strict=True)],
    )


def _compiled(arm: str, graph: fx.GraphModule) -> Callable[..., Any]:
    """Compile a part at its first call: until then nobody knows what it is called with."""
    if arm == NO_BACKEND:
        forward: Callable[..., Any] = graph.forward
        return forward
    compiled: list[Callable[..., Any]] = []

    def run(*given: Any) -> Any:
        if not compiled:
            compiled.append(compile_graph(load_backend(arm), graph, given))
        return compiled[0](*given)

    return run
