"""The original interface: a decorator, a context manager, and what runs without compiling."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import pytest
import torch

from dynamometer.dynamo.interface import (
    allow_in_graph,
    disable,
    mark_dynamic,
    maybe_mark_dynamic,
    optimize,
    reset,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Counting:
    """A backend that runs graphs as they are.

    Attributes:
        graphs: how many it was given.
        runs: how often one ran.
    """

    def __init__(self) -> None:
        """Begin at nothing."""
        self.graphs = self.runs = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """Count a graph."""
        self.graphs += 1

        def call(*args: Any) -> Any:
            self.runs += 1
            return graph.forward(*args)

        return call


def twice(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    """Compute."""
    return x.sin() * factor


X = torch.arange(4.0)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Leave nothing compiled to other tests."""
    reset()
    yield
    reset()


def test_it_decorates() -> None:
    """What is decorated is compiled once and then run."""
    backend = Counting()
    compiled = optimize(backend)(twice)
    for _ in range(3):
        assert torch.equal(compiled(X), twice(X))
    assert (backend.graphs, backend.runs) == (1, 3)


def test_it_is_a_context() -> None:
    """What is called inside is compiled, and what is called outside runs as it is."""
    backend = Counting()
    with optimize(backend):
        assert torch.equal(twice(X), X.sin() * 2)
    assert (backend.graphs, backend.runs) == (1, 1)
    twice(X)
    assert backend.runs == 1


def test_a_size_that_was_marked_for_good_must_stay_a_symbol() -> None:
    """Code that makes it a number is refused, unless it was marked if possible."""

    def counted(x: torch.Tensor) -> torch.Tensor:
        return x * (1 if x.shape[0] == 4 else 2)

    x = torch.arange(4.0)
    mark_dynamic(x, 0)
    with pytest.raises(Exception, match="mark"):
        optimize("eager")(counted)(x)
    y = torch.arange(4.0)
    maybe_mark_dynamic(y, 0)
    assert torch.equal(optimize("eager")(counted)(y), counted(y))


def test_names_are_looked_up() -> None:
    """And one that there is not is refused at once."""
    assert torch.equal(optimize("eager")(twice)(X), twice(X))
    with pytest.raises(Exception, match="nonsense"):
        optimize("nonsense")


def test_running_compiles_nothing_new() -> None:
    """What is compiled is used; for other inputs, eager."""
    backend = Counting()
    compiled = optimize(backend)(twice)
    compiled(X)
    with run():
        compiled_again = twice(X)
    assert torch.equal(compiled_again, twice(X))
    assert backend.runs == 2
    for runs, only in enumerate((run(compiled), run()(compiled)), 3):
        assert torch.equal(only(X), twice(X))
        assert backend.runs == runs
        assert torch.equal(only(X, 3.0), twice(X, 3.0))
        assert (backend.graphs, backend.runs) == (1, runs)


def failing(graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """Compile nothing."""
    msg = "no such operator"
    raise NotImplementedError(msg)


def test_a_backend_that_fails_leaves_eager() -> None:
    """With one warning, and every failure counted."""

    def broken_in_two(x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        torch._dynamo.graph_break()
        return x.cos()

    optimized = optimize(failing)
    compiled = optimized(broken_in_two)
    with pytest.warns(RuntimeWarning, match="backend failing failed on a graph") as warned:
        assert torch.equal(compiled(X), X.sin().cos())
    assert len([each for each in warned if each.category is RuntimeWarning]) == 1
    assert "NotImplementedError: no such operator" in str(warned[0].message)
    assert [type(each) for each in optimized.backend_failures] == [NotImplementedError] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(X)


def test_a_backend_that_gives_no_callable_has_failed() -> None:
    """Dynamo itself would raise, and name no backend."""

    def forgets(graph: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        del graph, example_inputs

    optimized = optimize(forgets)
    with pytest.warns(RuntimeWarning, match="backend forgets failed .*a callable, not None"):
        assert torch.equal(optimized(torch.sin)(X), X.sin())
    assert [type(each) for each in optimized.backend_failures] == [TypeError]


def test_what_dynamo_raises_to_itself_is_no_failure() -> None:
    """A number that varies becomes a tensor, for which AOTAutograd has Dynamo start anew."""
    optimized = optimize("aot_eager", dynamic=True)
    compiled = optimized(twice)
    for factor in (2.5, 3.5, 4.5):
        assert torch.allclose(compiled(X, factor), twice(X, factor))
    assert optimized.backend_failures == ()


def test_its_failures_are_raised_where_asked() -> None:
    """By their own text."""
    optimized = optimize(failing, raise_backend_errors=True)
    with pytest.raises(Exception, match="no such operator"):
        optimized(twice)(X)
    assert optimized.backend_failures == ()


def test_nopython_raises_where_there_are_two_graphs() -> None:
    """Python between them is what is not wanted."""

    def prints(x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        print(end="")
        return x.cos()

    with pytest.raises(Exception, match=re.escape("print")):
        optimize("eager", nopython=True)(prints)(X)
    assert torch.equal(optimize("eager", nopython=True)(twice)(X), twice(X))


def test_reset_forgets() -> None:
    """What was compiled is compiled again."""
    backend = Counting()
    optimize(backend)(twice)(X)
    reset()
    optimize(backend)(twice)(X)
    assert backend.graphs == 2


def test_controls() -> None:
    """A function may be kept out of graphs, or put into one without being looked at."""
    seen: list[int] = []

    @disable  # type: ignore[untyped-decorator]  # torch's
    def left_alone(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @allow_in_graph
    def opaque(x: torch.Tensor) -> torch.Tensor:
        return x - 1

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        seen.append(sum(node.op.startswith("call_") for node in graph.graph.nodes))
        return graph.forward  # type: ignore[no-any-return]  # torch's

    compiled = optimize(backend)(lambda x: left_alone(x.sin()).cos())
    assert torch.equal(compiled(X), (X.sin() + 1).cos())
    assert seen == [1, 1]
    compiled = optimize(backend)(lambda x: opaque(x.sin()).cos())
    assert torch.equal(compiled(X), (X.sin() - 1).cos())
    assert seen == [1, 1, 3]


def test_a_graph_that_a_backend_spoilt_runs_as_it_was() -> None:
    """A compiler may have changed it when it raises."""

    def spoils(graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        for node in graph.graph.nodes:
            if node.target == "sin":
                node.target = "cos"
        graph.recompile()
        msg = "too late"
        raise ValueError(msg)

    with pytest.warns(RuntimeWarning, match="too late"):
        assert torch.equal(optimize(spoils)(twice)(X), twice(X))


def test_it_takes_what_the_original_took_in_its_order() -> None:
    """The second is whether one graph has to be all of it."""

    def breaks(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x.sin()

    with pytest.raises(Exception, match="graph_break"):
        optimize(Counting(), True)(breaks)(X)  # noqa: FBT003  as it was called


def test_errors_of_pytorchs_own_backends_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named, and no user's."""

    def fails(graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        msg = "not today"
        raise ValueError(msg)

    monkeypatch.setattr("dynamometer.dynamo.capture.internals.compiler_of", lambda name: fails)
    with pytest.raises(Exception, match="not today"):
        optimize("eager")(twice)(X)


@pytest.mark.parametrize("mark", [mark_dynamic, maybe_mark_dynamic])
def test_marked_sizes_are_symbols(mark: Callable[..., None]) -> None:
    """From the start, so that the next size needs no other graph."""
    backend = Counting()
    compiled = optimize(backend)(twice)
    for size in (4, 5, 6):
        x = torch.arange(float(size))
        mark(x, 0)
        assert torch.equal(compiled(x), twice(x))
    assert backend.graphs == 1
