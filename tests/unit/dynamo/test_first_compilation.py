"""What compiling finds out for logs alone is left out where nothing is timed and none is read."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch

from dynamometer.dynamo import first_compilation

if TYPE_CHECKING:
    from collections.abc import Callable

_NAMES = (
    ("torch._dynamo.symbolic_convert", "get_funcname"),
    ("torch._dynamo.guards", "profile_guard_manager"),
    ("torch._dynamo.utils", "_get_dynamo_config_for_logging"),
    ("torch._dynamo.utils", "_scrubbed_inductor_config_for_logging"),
    ("torch._dynamo.utils", "_compiler_config_for_logging"),
    ("torch._dynamo.utils", "_functorch_config_for_logging"),
    ("torch._dynamo.convert_frame", "log_dynamo_start"),
)
_VARIABLES = ("TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE_DEBUG")


@pytest.fixture(autouse=True)
def _no_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no log asked for."""
    for variable in _VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def _all() -> list[Callable[..., Any]]:
    """Return those that this torch has."""
    modules = [(importlib.import_module(module), name) for module, name in _NAMES]
    assert all(hasattr(module, name) for module, name in modules[:2])  # these every torch has
    return [getattr(module, name) for module, name in modules if hasattr(module, name)]


@pytest.mark.parametrize("variable", _VARIABLES)
def test_logs_that_are_read_say_what_they_said(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing is left out."""
    before = _all()
    monkeypatch.setenv(variable, "dynamo")
    with first_compilation.without_what_is_logged():
        assert _all() == before


def test_compiling_goes_on_without_what_is_logged() -> None:
    """It captures the same, guards it, and compiles anew where a guard fails."""
    before, layer = _all(), torch.nn.Linear(3, 2)
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    with first_compilation.without_what_is_logged():
        assert not set(before) & set(_all())
        compiled = torch.compile(layer, backend=backend, dynamic=False)
        for size in (4, 4, 5):
            inputs = torch.rand(size, 3)
            torch.testing.assert_close(compiled(inputs), layer(inputs))
    assert len(graphs) == 2
    assert _all() == before
    torch._dynamo.reset()


def test_a_torch_without_such_names_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another release may have renamed them, and nothing may have imported Dynamo."""
    (first, name), (second, _), *_ = _NAMES
    monkeypatch.delattr(f"{first}.{name}")
    monkeypatch.delitem(sys.modules, second)
    with first_compilation.without_what_is_logged():
        assert not hasattr(sys.modules[first], name)
        assert second not in sys.modules
    assert not hasattr(sys.modules[first], name)


def test_a_backend_that_cannot_be_imported_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever compiles meets it again, and says so of that arm."""

    def fails() -> list[str]:
        raise RuntimeError

    monkeypatch.setattr(torch.compiler, "list_backends", fails)
    first_compilation.preload()


def _traces(monkeypatch: pytest.MonkeyPatch) -> list[torch.fx.GraphModule]:
    """Have what Dynamo traces collected, as well as traced."""
    found: list[torch.fx.GraphModule] = []
    compile_ = torch.compile

    def spying(model: torch.nn.Module, *, backend: Callable[..., Any]) -> Callable[..., Any]:
        def spy(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
            found.append(graph)
            compiled: Callable[..., Any] = backend(graph, inputs)
            return compiled

        traced: Callable[..., Any] = compile_(model, backend=spy)
        return traced

    monkeypatch.setattr(torch, "compile", spying)
    return found


def test_a_sample_is_traced_as_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of it runs, then, and forks begin with the random numbers that they would."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    traced, before = _traces(monkeypatch), torch.get_rng_state()
    first_compilation.preload()
    assert len(traced) == 1
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("reason", ["an accelerator", "logs"])
def test_nothing_is_traced_where_that_would_be_noticed(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An accelerator would be used, so that no fork could; logs would tell of a strange model."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: reason == "an accelerator")
    if reason == "logs":
        monkeypatch.setenv("TORCH_LOGS", "graph_code")
    traced = _traces(monkeypatch)
    first_compilation.preload()
    assert not traced


def test_nothing_runs_where_dynamo_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels start threads, which forks don't have."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)

    def kernel(*_: object, **__: object) -> None:
        pytest.fail("a convolution ran")

    monkeypatch.setattr(torch.nn.Conv2d, "forward", kernel)
    with torch.compiler.set_stance("force_eager"):
        first_compilation.preload()
