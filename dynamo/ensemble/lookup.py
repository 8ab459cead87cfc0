"""Looking decisions up while a model is compiled, and keeping what was chosen."""

from __future__ import annotations

import copy
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from torch import fx

from dynamometer.dynamo.capture import internals
from dynamometer.dynamo.ensemble.compiling import NotCompiledError, WithWeightsInside, compile_graph
from dynamometer.dynamo.ensemble.setting import setting_of
from dynamometer.dynamo.graphs.key import graph_key
from dynamometer.dynamo.graphs.recorder import by_parts, is_within_autocast
from dynamometer.results.store.decisions import decision_that_counts
from dynamometer.results.values.cases import NO_BACKEND, MatmulPrecision
from dynamometer.results.values.choices import ASSEMBLED, Choice, Subject
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dynamometer.dynamo.backends.backends import Backend
    from dynamometer.results.values.choices import Tuning
    from dynamometer.results.values.decisions import Decision, Setting


class Lookup:
    """Finds the decisions that count for a run.

    Attributes:
        load: gives the backend of an arm.
    """

    def __init__(
        self,
        tuning: Tuning | None,
        device: str,
        load: Callable[[str], Backend],
        precision: MatmulPrecision = MatmulPrecision.HIGHEST,
        allocator: Allocator = Allocator.KEEP,
    ) -> None:
        """Read nothing yet.

        Args:
            tuning: says in which file decisions are, and which of them count; `None` for none.
            device: that is computed on.
            load: gives the backend of an arm.
            precision: of float32 matrix products.
            allocator: that the run times under.
        """
        self.load = load
        self._tuning = tuning
        self._device = device
        self._precision = precision
        self._allocator = allocator
        self._choices: dict[tuple[Subject, str], Choice] = {}

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What was chosen so far, each graph once with how often it came up."""
        return tuple(self._choices.values())

    def of_model(
        self, key: str, compile_with: Callable[[str], Callable[..., Any]]
    ) -> Callable[..., Any] | None:
        """Return a model compiled with what was decided for it as a whole.

        Args:
            key: of the model.
            compile_with: compiles it with an arm.

        Returns:
            `None` where nothing was decided, its graphs were, or what was chosen fails.
        """
        found = self._find(Subject.MODEL, key)
        if found is None:
            return None
        if found.arm == ASSEMBLED:
            self._keep(Subject.MODEL, key, found)
            return None
        compiled = _attempt(
            found.arm, f"model {key[:16]}", "its graphs are looked up",
            lambda: compile_with(found.arm),
        )  # fmt: skip
        if compiled is not None:
            self._keep(Subject.MODEL, key, found)
        return compiled

    def compiler(self, *, trains: bool) -> Callable[..., Callable[..., Any]]:
        """Return what compiles Dynamo's graphs with what was decided for them.

        Args:
            trains: whether that was decided for parts of them, also of those in between that need
                no gradients.
        """
        return by_parts(lambda _: self._compile_part) if trains else self._compile_whole

    def _compile_whole(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compile a graph of Dynamo; within autocast no decision is on it."""
        key = graph_key(graph, inputs)
        if is_within_autocast(inputs):
            self._keep(Subject.GRAPH, key, None)
            forward: Callable[..., Any] = graph.forward
            return forward
        return self._compile(key, graph, inputs)

    def _compile_part(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compile a graph of AOTAutograd at its first call: until then its inputs are fake."""
        key = graph_key(graph, inputs)
        compiled: list[Callable[..., Any]] = []

        def run(*given: Any) -> Any:
            if not compiled:
                compiled.append(self._compile(key, graph, given))
            return compiled[0](*given)

        return run

    def _compile(
        self, key: str, graph: fx.GraphModule, inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        """Compile a graph with what was decided for it; it stays eager if that fails."""
        found = self._find(Subject.GRAPH, key)
        if found and found.arm != NO_BACKEND:
            as_it_was = fx.GraphModule(graph, copy.deepcopy(graph.graph))
            arm, given = found.arm, graph
            compiled = _attempt(
                arm, f"graph {key[:16]}", "it stays eager",
                lambda: compile_graph(self.load(arm), given, inputs),
            )  # fmt: skip
            if compiled is not None:
                self._keep(Subject.GRAPH, key, found)
                if isinstance(compiled, WithWeightsInside):
                    return self._guarded(compiled, key, arm, as_it_was.forward)
                return compiled
            graph, found = as_it_was, None
        self._keep(Subject.GRAPH, key, found)
        forward: Callable[..., Any] = graph.forward
        return forward

    def _guarded(
        self, compiled: Callable[..., Any], key: str, arm: str, eager: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Return a graph that is compiled when it is called, or stays eager if that fails.

        That is at its first call, and at the first with other weights or sizes.
        """
        now = compiled
        # Nothing was computed by then that would be computed twice.
        failures: tuple[type[BaseException], ...] = (
            NotCompiledError,
            *internals.compile_failures(),
        )

        def run(*given: Any) -> Any:
            nonlocal now
            try:
                return now(*given)
            except failures as error:
                if now is eager:
                    raise
                _warn(arm, f"graph {key[:16]}", "it stays eager", error.__cause__ or error)
                now = eager
                self._choices[Subject.GRAPH, key] = msgspec.structs.replace(
                    self._choices[Subject.GRAPH, key], arm=NO_BACKEND, is_decided=False,
                    eager_s=None, chosen_s=None,
                )  # fmt: skip
                return eager(*given)

        return run

    @cached_property
    def _setting(self) -> Setting:
        return setting_of(self._device, self._precision, self._allocator)

    def _find(self, subject: Subject, key: str) -> Decision | None:
        if self._tuning is None:
            return None
        return decision_that_counts(self._tuning, subject, key, self._setting)

    def _keep(self, subject: Subject, key: str, found: Decision | None) -> None:
        before = self._choices.get((subject, key))
        count = before.count + 1 if before else 1
        choice = Choice(subject=subject, key=key, arm=NO_BACKEND, is_decided=False)
        if found:
            choice = Choice(
                subject=subject,
                key=key,
                arm=found.arm,
                eager_s=found.eager_s,
                chosen_s=found.chosen_s,
                tuning_s=found.tuning_s,
            )
        self._choices[subject, key] = msgspec.structs.replace(choice, count=count)


def leaving_eager(arm: str, compiler: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """Return what compiles the graphs of a model as a user's compiler does, if that doesn't fail.

    It is called only when Dynamo captures a graph, long after the model was compiled with it.
    """

    def compile_or_leave(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        as_it_was = fx.GraphModule(graph, copy.deepcopy(graph.graph))
        compiled = _attempt(
            arm, "the model", "one of its graphs stays eager", lambda: compiler(graph, inputs)
        )
        forward: Callable[..., Any] = as_it_was.forward
        return forward if compiled is None else compiled

    return compile_or_leave


def _attempt(
    arm: str, subject: str, instead: str, compile_it: Callable[[], Callable[..., Any]]
) -> Callable[..., Any] | None:
    """Compile with what was chosen; warn, and give nothing, where that fails."""
    try:
        return compile_it()
    except internals.control_flow():
        raise
    except Exception as error:  # noqa: BLE001  whatever a backend raises that once worked
        _warn(arm, subject, instead, error)
        return None


def _warn(arm: str, subject: str, instead: str, error: BaseException) -> None:
    warnings.warn(
        f"{arm}, which was chosen for {subject}, fails on it now; {instead}:"
        f" {type(error).__name__}: {error}",
        RuntimeWarning,
        stacklevel=4,
    )
