"""Closures, properties, context managers, exceptions, and what else Python has."""

import contextlib
import functools

import torch
from torch import nn


class Closures(nn.Module):
    """A function within a function that changes a variable of the outer one."""

    def forward(self, x):
        total = x.sum()

        def add(more):
            nonlocal total
            total = total + more.sum()

        add(x * 2)
        return total


class Properties(nn.Module):
    """A value that is computed when it is asked for."""

    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    @property
    def size(self):
        return self.layer.weight.shape[0]

    def forward(self, x):
        return self.layer(x) / self.size


class Attributes(nn.Module):
    """Attributes that come from somewhere else."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def __getattr__(self, name):
        if name == "outer":
            return self.inner
        return super().__getattr__(name)

    def forward(self, x):
        return self.outer(x)


class Partial(nn.Module):
    """A function with some arguments given."""

    def __init__(self):
        super().__init__()
        self.activation = functools.partial(nn.functional.leaky_relu, negative_slope=0.3)

    def forward(self, x):
        return self.activation(x)


class WithoutGradients(nn.Module):
    """Part of it without gradients."""

    def forward(self, x):
        with torch.no_grad():
            mean = x.mean()
        return x - mean


class OwnContext(nn.Module):
    """A context manager of one's own."""

    def forward(self, x):
        with named("here"):
            return x * 2


@contextlib.contextmanager
def named(name):
    yield name


class Catches(nn.Module):
    """An exception that is expected."""

    def forward(self, x):
        try:
            return self.missing(x)
        except AttributeError:
            return x + 1


class BreaksWithin(nn.Module):
    """What Dynamo can't follow within `with`."""

    def forward(self, x):
        with torch.no_grad():
            x = x * 2
            print("within")
            x = x + 1
        return x


class Inherits(nn.Linear):
    """A layer that adds to what its parent does."""

    def forward(self, x):
        return super().forward(x) + x


class CallableObject(nn.Module):
    """An object that can be called, and holds a number."""

    def __init__(self):
        super().__init__()
        self.scale = Scale(3)

    def forward(self, x):
        return self.scale(x)


class Scale:
    """Multiplies."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


class FormatsText(nn.Module):
    """Text that is made of sizes."""

    def forward(self, x):
        key = f"{x.dim()}d-{x.shape[0]}"
        return {key: x * len(key)}


TESTCASES = [
    (Closures, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (Properties, lambda: ([4], {}), lambda: ([torch.rand([2, 4])], {})),
    (Attributes, lambda: ([], {}), lambda: ([torch.rand([2, 4])], {})),
    (Partial, lambda: ([], {}), lambda: ([torch.randn([4, 4])], {})),
    (WithoutGradients, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (OwnContext, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (Catches, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (BreaksWithin, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (Inherits, lambda: ([4, 4], {}), lambda: ([torch.rand([2, 4])], {})),
    (CallableObject, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (FormatsText, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
]
