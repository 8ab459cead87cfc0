"""Branches and loops: on Python's values, which are traced, and on data, which end a graph."""

import torch
from torch import nn


class OnShape(nn.Module):
    """A branch on a size is decided while it is traced."""

    def forward(self, x):
        return x.sum(1) if x.shape[0] > 2 else x.sum(0)


class OnTraining(nn.Module):
    """So is one on whether the module is being trained."""

    def forward(self, x):
        return nn.functional.dropout(x) if self.training else x * 2


class OnData(nn.Module):
    """A branch on an element must wait until it is computed."""

    def forward(self, x):
        x = x + 1
        if x.sum() > 0:
            return x * 2
        return x - 1


class WhereOnData(nn.Module):
    """The same with both sides computed is one graph."""

    def forward(self, x):
        x = x + 1
        return torch.where(x.sum() > 0, x * 2, x - 1)


class LoopOverRange(nn.Module):
    """A loop whose length is known is unrolled."""

    def __init__(self, times):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(times))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


class LoopUntilSmall(nn.Module):
    """A loop that ends when the data says so."""

    def forward(self, x):
        while x.abs().max() > 0.5:
            x = x / 2
        return x


class EarlyReturn(nn.Module):
    """A return in the middle of a loop over layers."""

    def __init__(self, stop):
        super().__init__()
        self.stop = stop

    def forward(self, x):
        for index in range(10):
            if index == self.stop:
                return x
            x = x * 1.5
        return x


class Asserts(nn.Module):
    """An assertion on a size, and one on data."""

    def forward(self, x):
        assert x.shape[1] == 4
        assert (x >= 0).all(), "there is something negative"
        return x.sqrt()


TESTCASES = [
    # (nn.Module, init_args, forward_args)
    (OnShape, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (OnTraining, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (OnData, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (WhereOnData, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (LoopOverRange, lambda: ([3], {}), lambda: ([torch.rand([2, 4])], {})),
    (LoopUntilSmall, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (EarlyReturn, lambda: ([], {"stop": 3}), lambda: ([torch.rand([4, 4])], {})),
    (Asserts, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
]
