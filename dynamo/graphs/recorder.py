"""A compiler for Dynamo that records every graph once, and runs it as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
import torch

from dynamometer.dynamo.graphs.saved import Captured
from dynamometer.dynamo.graphs.targets import UnsaveableError
from dynamometer.dynamo.private import private
from dynamometer.results.store.graphs.contents import holds
from dynamometer.results.values.cases import Mode
from dynamometer.results.values.graphs import Part, RecordedGraph, RecordedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import fx

    from dynamometer.results.store.graphs.corpus import Corpus
    from dynamometer.results.values.graphs import Origin

    Compiler = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]


_WITHIN_AUTOCAST = "it is computed within torch.autocast, which no file of a graph says"


def is_within_autocast(inputs: Sequence[Any]) -> bool:
    """Return whether a graph that is compiled now is computed within `torch.autocast`.

    As a part of a model behind a graph break is: nothing in the graph, nor its key, says so.
    """
    devices = {each.device.type for each in inputs if isinstance(each, torch.Tensor)}
    # Of a device without autocast, such as meta, torch can't be asked.
    return any(map(torch.is_autocast_enabled, filter(torch.amp.is_autocast_available, devices)))


def by_parts(compile_part: Callable[[Part], Compiler]) -> Compiler:
    """Return a compiler of Dynamo's graphs that compiles forward and backward graphs apart.

    AOTAutograd cuts them, always in the same way, so that their keys are the same ones.

    Args:
        compile_part: gives the compiler of a part.

    Raises:
        GoneError: torch has no longer what cuts them.
    """
    cut = private("torch._dynamo.backends.common.aot_autograd")
    boxed = private("torch._functorch._aot_autograd.utils.make_boxed_func")

    def compiler_of(part: Part) -> Compiler:
        compile_graph = compile_part(part)

        def compile_boxed(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            compiled = compile_graph(graph, inputs)
            done = compiled if hasattr(compiled, "_boxed_call") else boxed(compiled)
            return cast("Callable[..., Any]", done)

        return compile_boxed

    compiler: Compiler = cut(
        fw_compiler=compiler_of(Part.FORWARD),
        bw_compiler=compiler_of(Part.BACKWARD),
        inference_compiler=compiler_of(Part.INFERENCE),
        partition_fn=private("torch._functorch.partitioners.min_cut_rematerialization_partition"),
        keep_inference_input_mutations=True,
    )
    return compiler


@dataclass
class _Seen:
    captured: Captured
    part: Part
    calls: int = 0
    reason: str | None = None


@dataclass
class Recorder:
    """Records the graphs of one model.

    Attributes:
        corpus: that they are put into.
        origin: the model.
    """

    corpus: Corpus
    origin: Origin
    _seen: dict[tuple[str, Part], _Seen] = field(default_factory=dict)

    @property
    def compiler(self) -> Compiler:
        """What Dynamo compiles with."""
        if self.origin.mode is Mode.TRAINING:
            return by_parts(lambda part: partial(self._compile, part))
        return partial(self._compile, Part.INFERENCE)

    @property
    def model(self) -> RecordedModel:
        """What was recorded so far."""
        return RecordedModel(
            origin=self.origin,
            graphs=tuple(
                RecordedGraph(
                    key=each.captured.key,
                    part=each.part,
                    op_count=sum(each.captured.ops.values()),
                    calls=each.calls,
                    reason=each.captured.reason or each.reason,
                )
                for each in self._seen.values()
            ),
        )

    def _compile(
        self, part: Part, graph: fx.GraphModule, inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        captured = Captured.of(graph, inputs)
        # Parts that AOTAutograd cuts have the casts in them.
        is_whole = self.origin.mode is not Mode.TRAINING
        reason = _WITHIN_AUTOCAST if is_whole and is_within_autocast(inputs) else None
        seen = self._seen.setdefault((captured.key, part), _Seen(captured, part, reason=reason))

        def run(*given: Any) -> Any:
            seen.calls += 1
            if seen.calls == 1 and seen.reason is None:
                self._save(seen, given)
            return graph.forward(*given)

        return run

    def _save(self, seen: _Seen, given: Sequence[Any]) -> None:
        """Save a graph unless it is there, whole, or no file can hold it."""
        path = self.corpus.path(seen.captured.key)
        if seen.captured.reason or holds(path, seen.captured.key):
            return
        origin = msgspec.structs.replace(self.origin, part=seen.part)
        try:
            seen.captured.save(path, given, origin)
        except UnsaveableError as error:
            seen.reason = str(error)


def recorder(corpus: Corpus, origin: Origin) -> Recorder:
    """Return what records the graphs of a model into a corpus."""
    return Recorder(corpus, origin)
