"""Models that are compiled before any arm is, so that none of them is eager."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

_SAYS_HOW = "get_compiler_config"
"""Of what `torch.compile` returns; what `torch.compiler.disable` returns has none."""


def refuse_compiled(model: nn.Module | FunctionType, name: str) -> None:
    """Refuse a model that can't be the baseline.

    Raises:
        TypeError: it is compiled, or a module of it is; says which.
    """
    parts = [("", model)] if isinstance(model, FunctionType) else model.named_modules()
    for part, each in parts:
        if _is_compiled(each):
            what = f"whose module {part} is" if part else "that is"
            msg = (
                f"{name} returns a model {what} compiled already, so that there is no eager to"
                " compare with: return it without torch.compile; each --backend compiles it"
            )
            raise TypeError(msg)


def _is_compiled(part: nn.Module | FunctionType) -> bool:
    """Return whether torch.compile was given a function, or a module or its forward."""
    if isinstance(part, FunctionType):
        return hasattr(part, _SAYS_HOW)
    in_place = getattr(part, "_compiled_call_impl", None)  # by its own method `compile`
    return in_place is not None or _SAYS_HOW in vars(part) or hasattr(part.forward, _SAYS_HOW)
