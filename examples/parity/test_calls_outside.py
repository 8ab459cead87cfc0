"""Calls of what is not torch: printing, logging, clocks, random numbers, files."""

import logging
import os
import random
import time
import warnings

import torch
from torch import nn

LOGGER = logging.getLogger(__name__)


class Prints(nn.Module):
    """It prints while it computes."""

    def forward(self, x):
        x = x * 2
        print("the mean is near 1")
        return x + 1


class Logs(nn.Module):
    """It writes to a logger."""

    def forward(self, x):
        x = x * 2
        LOGGER.debug("of size %s", x.shape)
        return x + 1


class Warns(nn.Module):
    """It warns."""

    def forward(self, x):
        x = x * 2
        warnings.warn("this is the old way", DeprecationWarning, stacklevel=2)
        return x + 1


class LooksAtTheClock(nn.Module):
    """It measures what it does."""

    def __init__(self):
        super().__init__()
        self.seconds = 0.0

    def forward(self, x):
        started = time.perf_counter()
        x = (x @ x).relu()
        self.seconds = time.perf_counter() - started
        return x


class DrawsInPython(nn.Module):
    """Random numbers of Python's own generator."""

    def forward(self, x):
        random.seed(3)
        return x * random.random()


class DrawsInTorch(nn.Module):
    """Random numbers of torch's generator, which graphs may hold."""

    def forward(self, x):
        return x + torch.rand_like(x)


class ReadsTheEnvironment(nn.Module):
    """A setting from the environment."""

    def forward(self, x):
        return x * 2 if os.environ.get("EXAMPLE_DOUBLE", "1") == "1" else x


class GraphBreaksOnPurpose(nn.Module):
    """It asks for the end of a graph."""

    def forward(self, x):
        x = x.relu()
        torch._dynamo.graph_break()
        return x.sigmoid()


class LeavesOutPart(nn.Module):
    """A function that Dynamo is told to leave alone."""

    def forward(self, x):
        return left_alone(x.relu()).sigmoid()


@torch.compiler.disable
def left_alone(x):
    return x * 3


TESTCASES = [
    (Prints, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (Logs, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (Warns, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (LooksAtTheClock, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (DrawsInPython, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (DrawsInTorch, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (ReadsTheEnvironment, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (GraphBreaksOnPurpose, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (LeavesOutPart, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
]
