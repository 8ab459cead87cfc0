"""What compiling finds out for logs alone is left out where nothing is timed and none is read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest
import torch

from dynamometer.dynamo import first_compilation

if TYPE_CHECKING:
    from collections.abc import Callable

_NAMES = {
    "torch._dynamo.symbolic_convert": "get_funcname",
    "torch._dynamo.guards": "profile_guard_manager",
}
_VARIABLES = ("TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE_DEBUG")


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what is replaced, and have no log asked for."""
    for module, name in _NAMES.items():
        monkeypatch.setattr(module + "." + name, _named(module, name))
    for variable in _VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def _named(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _all() -> list[Callable[..., Any]]:
    return [_named(module, name) for module, name in _NAMES.items()]


@pytest.mark.parametrize("variable", _VARIABLES)
def test_logs_that_are_read_say_what_they_said(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing is left out."""
    before = _all()
    monkeypatch.setenv(variable, "dynamo")
    first_compilation.preload()
    assert _all() == before


def test_compiling_goes_on_without_what_is_logged() -> None:
    """It captures the same, guards it, and compiles anew where a guard fails."""
    before = _all()
    first_compilation.preload()
    assert not set(before) & set(_all())
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    layer = torch.nn.Linear(3, 2)
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend=backend, dynamic=False)
    for size in (4, 4, 5):
        inputs = torch.rand(size, 3)
        torch.testing.assert_close(compiled(inputs), layer(inputs))
    assert len(graphs) == 2
    torch._dynamo.reset()


def test_a_torch_without_such_names_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another release may have renamed them."""
    for module, name in _NAMES.items():
        monkeypatch.delattr(module + "." + name)
    first_compilation.preload()
    for module, name in _NAMES.items():
        assert not hasattr(importlib.import_module(module), name)
