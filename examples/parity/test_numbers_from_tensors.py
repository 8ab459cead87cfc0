"""Numbers and shapes that only the data knows."""

import torch
from torch import nn


class Item(nn.Module):
    """A Python number out of a tensor."""

    def forward(self, x):
        scale = x.max().item()
        return x / scale


class ToList(nn.Module):
    """A list of numbers out of a tensor."""

    def forward(self, x, lengths):
        return [part.mean(0) for part in x.split(lengths.tolist())]


class Nonzero(nn.Module):
    """A result whose size depends on the data."""

    def forward(self, x):
        return (x > 0.5).nonzero().float().sum(0)


class BooleanMask(nn.Module):
    """Elements chosen by a mask."""

    def forward(self, x):
        return x[x > 0.5].sum() + x.mean()


class MaskedFill(nn.Module):
    """The same without a size that depends on the data."""

    def forward(self, x):
        return x.masked_fill(x <= 0.5, 0.0).sum() + x.mean()


class Unique(nn.Module):
    """Distinct elements, as many as there are."""

    def forward(self, x):
        return torch.unique(x).float() * 2


class AsNumpy(nn.Module):
    """Through NumPy and back."""

    def forward(self, x):
        doubled = x.numpy() * 2
        return torch.from_numpy(doubled) + 1


class ScalarIndex(nn.Module):
    """An index that the data holds."""

    def forward(self, x):
        return x[x.argmax() % x.shape[0]]


TESTCASES = [
    (Item, lambda: ([], {}), lambda: ([torch.rand([4, 4]) + 1], {})),
    (ToList, lambda: ([], {}), lambda: ([torch.rand([6, 2]), torch.tensor([1, 2, 3])], {})),
    (Nonzero, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (BooleanMask, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (MaskedFill, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (Unique, lambda: ([], {}), lambda: ([torch.randint(0, 5, [10])], {})),
    (AsNumpy, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (ScalarIndex, lambda: ([], {}), lambda: ([torch.rand([4])], {})),
]
