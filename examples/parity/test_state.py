"""State that changes: inputs, attributes, buffers, hooks, operators of one's own."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class ChangesItsInput(nn.Module):
    """It writes into what it is given."""

    def forward(self, x):
        x.add_(1)
        return x * 2


class Counts(nn.Module):
    """It counts its calls in an attribute."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2


class RunningMean(nn.Module):
    """It keeps a mean in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean


class Hooks(nn.Module):
    """A hook changes what a layer gives."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.layer.register_forward_hook(lambda module, inputs, output: output * 2)

    def forward(self, x):
        return self.layer(x)


class Parametrized(nn.Module):
    """A weight that is computed from another."""

    def __init__(self):
        super().__init__()
        self.layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.layer(x)


class Checkpointed(nn.Module):
    """A part that is computed again in the backward."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=False).relu()


class Doubled(torch.autograd.Function):
    """Doubles, with a gradient of its own."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


class OwnGradient(nn.Module):
    """A function with a backward of one's own."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return Doubled.apply(self.layer(x))


class CreatesAModule(nn.Module):
    """A layer that is made in the forward."""

    def forward(self, x):
        return nn.ReLU()(x) + nn.functional.one_hot(torch.arange(4), 4)


class ChangesGlobals(nn.Module):
    """A list of the module's file that grows."""

    def forward(self, x):
        SEEN.append(x.shape)
        return x + 1


SEEN = []

TESTCASES = [
    (ChangesItsInput, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (Counts, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (RunningMean, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (Hooks, lambda: ([], {}), lambda: ([torch.rand([2, 4])], {})),
    (Parametrized, lambda: ([], {}), lambda: ([torch.rand([2, 4])], {})),
    (Checkpointed, lambda: ([], {}), lambda: ([torch.rand([2, 4])], {})),
    (OwnGradient, lambda: ([], {}), lambda: ([torch.rand([2, 4])], {})),
    (CreatesAModule, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (ChangesGlobals, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
]
