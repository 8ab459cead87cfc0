"""Computations that have no weights, as modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable


class FunctionModule(nn.Module):
    """Gives a plain function of tensors the shape the runner asks for: a module to call.

    A class for each function would say nothing that the function doesn't.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Wrap `function`, which must be pure: it changes none of its arguments."""
        super().__init__()
        self.function = function

    def extra_repr(self) -> str:
        """Name the function where the module is printed."""
        return getattr(self.function, "__qualname__", repr(self.function))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with the inputs."""
        return self.function(*args, **kwargs)
