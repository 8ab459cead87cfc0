"""The backend `ensemble`: what was decided for a model as a whole, or else for each graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.compilers import ThroughDynamo
from dynamometer.dynamo.backends.declared import Declared
from dynamometer.results.values.cases import NO_BACKEND
from dynamometer.results.values.choices import ASSEMBLED, ENSEMBLE
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import nn

    from dynamometer.dynamo.backends.backends import Backend
    from dynamometer.dynamo.ensemble.lookup import Lookup
    from dynamometer.dynamo.ensemble.model_key import Call
    from dynamometer.results.values.cases import Case
    from dynamometer.results.values.choices import Choice, Tuning


@dataclass(frozen=True, kw_only=True)
class Ensemble(Declared):
    """What looks decisions up, and compiles with what they name.

    Attributes:
        delegates: whether a decision for a model as a whole counts.
        full_graph: whether Dynamo must capture all in one graph, or raise.
        lookup: finds decisions, and keeps what was chosen; `None` before it is told where they are.
        others: inputs of further calls of a step, for all of which a model as a whole is decided.
        key: of the model before any call of it; `None` to take it when it is compiled.
    """

    delegates: bool = True
    trains: bool = True
    full_graph: bool = False
    lookup: Lookup | None = field(default=None, compare=False)
    others: Sequence[Call] = field(default=(), compare=False)
    key: str | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        """Say that it is made of others."""
        return "chosen"

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What was chosen so far."""
        return self.lookup.choices if self.lookup else ()

    def reading(
        self,
        tuning: Tuning | None,
        case: Case,
        load: Callable[[str], Backend],
        allocator: Allocator = Allocator.KEEP,
    ) -> Ensemble:
        """Return it with decisions to look up.

        Args:
            tuning: says where they are, and which of them count; `None` for none, so that every
                graph stays eager.
            case: says on which device, how precisely, and whether Dynamo must capture all in one
                graph.
            load: gives the backend of an arm.
            allocator: that the run times under.
        """
        from dynamometer.dynamo.ensemble.lookup import Lookup

        lookup = Lookup(tuning, case.device, load, case.matmul_precision, allocator)
        return replace(self, lookup=lookup, full_graph=case.nopython)

    def compile(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Compile with what was decided for the model; if that is nothing, graph by graph."""
        from dynamometer.dynamo.ensemble.lookup import leaving_eager
        from dynamometer.dynamo.ensemble.model_key import model_key

        lookup = self._lookup

        def whole(arm: str) -> Callable[..., Any]:
            if arm == NO_BACKEND:
                return module
            chosen = lookup.load(arm)
            if isinstance(chosen, ThroughDynamo):
                chosen = replace(chosen, full_graph=chosen.full_graph or self.full_graph)
                if callable(chosen.compiler):  # it is called only when a graph is captured
                    chosen = replace(chosen, compiler=leaving_eager(arm, chosen.compiler))
            return chosen.compile(module, args, kwargs)

        if self.delegates:
            key = self.key or model_key(module, args, kwargs, self.others)
            compiled = lookup.of_model(key, whole)
            if compiled is not None:
                return compiled
        return self.compile_function(module)

    def compile_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function, or a module: each graph is compiled with what was decided for it."""
        import torch

        compiler = self._lookup.compiler(trains=torch.is_grad_enabled())
        assembled = ThroughDynamo(name=ASSEMBLED, compiler=compiler, full_graph=self.full_graph)
        return assembled.compile_function(function)

    @property
    def _lookup(self) -> Lookup:
        """Return what finds decisions; before it is told where they are, there are none."""
        from dynamometer.dynamo.ensemble.lookup import Lookup

        return self.lookup or Lookup(None, "cpu", _load_nothing)


def _load_nothing(arm: str) -> Backend:
    raise LookupError(arm)  # nothing names an arm where there are no decisions


ensemble = Ensemble(
    name=ENSEMBLE,
    summary="For each graph, or for the model, the backend that was measured to be the fastest",
)
assembled = Ensemble(
    name=ASSEMBLED,
    summary="`ensemble` of graphs alone, whatever was decided for the model as a whole",
    delegates=False,
)
