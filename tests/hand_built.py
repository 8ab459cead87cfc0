"""Models of which it is known what Dynamo can capture; a line that ends a graph says so.

Operators are counted as they are dispatched: a linear layer is a transposition and an `addmm`, and
in training each has its own backward.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator


class EagerCount(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
    """Counts every operator there is, but for adding up the gradients of parameters and inputs."""

    total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one."""
        node = torch._C._current_autograd_node()
        self.total += node is None or "AccumulateGrad" not in node.name()
        return func(*args, **(kwargs or {}))


class Straight(nn.Module):
    """Three operators, one graph."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return (x.sin() + 1).cos()


class Prints(nn.Module):
    """A print between two pairs of operators loses none."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin().cos()
        print(end="")  # ends a graph
        return x.exp().tanh()


class Branches(nn.Module):
    """A branch on data: the comparison is captured, its conversion to a bool is not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin()
        if x.sum() > 1e6:  # ends a graph
            return x.exp()
        return x.cos()


class Items(nn.Module):
    """A number taken out of a tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        factor = x.sin().sum().item()  # ends a graph
        return x.cos() * factor


class Breaks(nn.Module):
    """Three lines end graphs, of which one loses two operators."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin()
        torch._dynamo.graph_break()  # ends a graph
        x = x.cos()
        x = unseen(x)  # ends a graph
        x = x.exp()
        print(end="")  # ends a graph
        return x.tanh()


@torch._dynamo.disable  # type: ignore[untyped-decorator]  # torch's
def unseen(x: torch.Tensor) -> torch.Tensor:
    """Run two operators Dynamo may not look at."""
    return (x + 1).relu()


class CallsALibrary(nn.Module):
    """A call into a library that Dynamo doesn't trace."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin()
        known = json.loads("[1.0, 2.0]")  # ends a graph
        return x.cos() + known[0]


class Inner(nn.Module):
    """What others call."""

    def __init__(self) -> None:
        """Make a layer."""
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return self.layer(x).relu()


class Nested(nn.Module):
    """Modules within modules are inlined: one graph."""

    def __init__(self) -> None:
        """Make parts."""
        super().__init__()
        self.parts = nn.Sequential(Inner(), nn.Sequential(Inner(), Inner()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return cast("torch.Tensor", self.parts(x))


class InnerBreak(nn.Module):
    """A module that prints, called by another: the line is the inner one's."""

    def __init__(self) -> None:
        """Make parts."""
        super().__init__()
        self.inner = Prints()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return self.inner(x.abs()).neg()


class Loops(nn.Module):
    """A loop is unrolled: a hundred operators in one graph."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        for _ in range(100):
            x = x.sin()
        return x


class Generates(nn.Module):
    """A generator is traced like a loop."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        total = x
        for each in self.parts(x):
            total = total + each
        return total

    def parts(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        """Return three operators' results."""
        yield x.sin()
        yield x.cos()
        yield x.exp()


class Square(torch.autograd.Function):
    """A function with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Differentiate."""
        (x,) = ctx.saved_tensors
        return gradient * 2 * x


class Differentiates(nn.Module):
    """An autograd function is captured with its backward."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        squared: torch.Tensor = Square.apply(x.sin())  # type: ignore[no-untyped-call]  # torch's
        return squared.cos()


class Hooked(nn.Module):
    """A forward hook is traced with the module it is on."""

    def __init__(self) -> None:
        """Hang a hook on a layer."""
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.layer.register_forward_hook(lambda module, args, output: output.tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return cast("torch.Tensor", self.layer(x))


class Mutates(nn.Module):
    """Operators that change a tensor in place are captured as such."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        y = x.sin()
        y.add_(1)
        y.mul_(2)
        return y.cos()


class LoopBreaks(nn.Module):
    """A break in a loop loses the whole function."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        for _ in range(3):
            x = x.sin()
            print(end="")
        return x


@torch._dynamo.disable  # type: ignore[untyped-decorator]  # torch's
def slope(x: torch.Tensor) -> torch.Tensor:
    """Differentiate where Dynamo may not look."""
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        (found,) = torch.autograd.grad(y.sin().sum(), y)
    return found


class Slopes(nn.Module):
    """A backward within the forward is part of it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin()
        x = slope(x)  # ends a graph
        return x.cos()


@torch._dynamo.disable  # type: ignore[untyped-decorator]  # torch's
def computed_twice(x: torch.Tensor) -> torch.Tensor:
    """Keep nothing for the backward, which computes it again."""
    found: torch.Tensor = checkpoint(torch.sin, x, use_reentrant=True)  # type: ignore[no-untyped-call]  # torch's
    return found


class Checkpoints(nn.Module):
    """What a backward computes again is lost with what it belongs to."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.cos()
        x = computed_twice(x)  # ends a graph
        return x.cos()


def printing(x: torch.Tensor) -> torch.Tensor:
    """Run an operator before a graph has to end, and one after."""
    x = x.sin()
    print(end="")
    return x.cos()


class Maps(nn.Module):
    """What Python calls is captured in parts; how it adds up what that gives is not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        found: torch.Tensor = sum(map(printing, [x, x]))  # type: ignore[assignment]  # no int here
        return found.cos()


class ChecksInside(nn.Module):
    """A graph that has to end in what is computed twice loses all of that."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        again: torch.Tensor = checkpoint(printing, x, use_reentrant=False)  # type: ignore[no-untyped-call]  # torch's
        return again.cos()


class Tries(nn.Module):
    """Dynamo can't go on after a break within `try`, and leaves the rest as it is."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin()
        x = x.cos()
        try:
            x = x.exp()
            print(end="")  # ends a graph
            x = x.tanh()
        finally:
            x = x.neg()
        return x.abs()


class Conditional(nn.Module):
    """A branch that is an operator is captured."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        chosen: torch.Tensor = torch.cond(x.sum() > 1e6, torch.sin, torch.cos, (x,))
        return chosen.neg()


class LoopsOnce(nn.Module):
    """One graph holds every operator, but the function around it is left to Python."""

    def __init__(self) -> None:
        """Make a part."""
        super().__init__()
        self.inner = Straight()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        for _ in range(1):
            x = self.inner(x)
            print(end="")
        return x


class EndsWithAPrint(nn.Module):
    """All operators are in one graph, and still it is not the whole."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin().cos()
        print(end="")  # ends a graph
        return x


class Chooses(nn.Module):
    """A word decides which of two graphs is needed: one that is given, or one that is held."""

    def __init__(self) -> None:
        """Hold a word."""
        super().__init__()
        self.held = "sin"

    def forward(self, x: torch.Tensor, given: str | None = None) -> torch.Tensor:
        """Compute."""
        if (given or self.held) == "sin":
            return x.sin()
        return x.cos().neg()


class Nothing(nn.Module):
    """Nothing to capture."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return back what came."""
        return x
