"""Python's containers, in and out of modules."""

import collections
import dataclasses
import typing

import torch
from torch import nn


class Point(typing.NamedTuple):
    """Two tensors by name."""

    left: torch.Tensor
    right: torch.Tensor


@dataclasses.dataclass
class Settings:
    """How a module is set."""

    width: int
    scale: float = 2.0


class ReturnsADictionary(nn.Module):
    """Results by name."""

    def forward(self, x):
        return {"sum": x.sum(), "parts": {"positive": x.relu(), "negative": -(-x).relu()}}


class TakesADictionary(nn.Module):
    """Inputs by name, of which some may be missing."""

    def forward(self, batch):
        return batch["x"] + batch.get("bias", 0)


class NamedTuples(nn.Module):
    """A named tuple in and out."""

    def forward(self, point):
        return Point(point.left + 1, point.right * point.left)


class DataClassSettings(nn.Module):
    """Settings in a dataclass."""

    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.layer = nn.Linear(settings.width, settings.width)

    def forward(self, x):
        return self.layer(x) * self.settings.scale


class Deques(nn.Module):
    """A queue of the last results."""

    def forward(self, x):
        last = collections.deque(maxlen=2)
        for step in range(4):
            last.append(x * step)
        return last[0] + last[1]


class OrderedByName(nn.Module):
    """Layers in a dictionary of modules, gone over sorted."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({name: nn.Linear(4, 4) for name in ("b", "a")})

    def forward(self, x):
        for _, layer in sorted(self.layers.items()):
            x = layer(x)
        return x


class Generators(nn.Module):
    """A generator that yields tensors."""

    def parts(self, x):
        for row in x:
            yield row.sum()

    def forward(self, x):
        return torch.stack(list(self.parts(x)))


class ZipAndStar(nn.Module):
    """Several sequences side by side, and arguments by star."""

    def forward(self, *tensors, **named):
        pairs = zip(tensors, named.values(), strict=True)
        return sum(one * other for one, other in pairs)


class Comprehensions(nn.Module):
    """Comprehensions with conditions, and a set."""

    def forward(self, x):
        chosen = {index for index in range(8) if index % 3 == 0}
        return torch.stack([x[index] for index in sorted(chosen) if index < x.shape[0]])


TESTCASES = [
    (ReturnsADictionary, lambda: ([], {}), lambda: ([torch.randn([4, 4])], {})),
    (TakesADictionary, lambda: ([], {}), lambda: ([{"x": torch.rand([4, 4])}], {})),
    (NamedTuples, lambda: ([], {}), lambda: ([Point(torch.rand([4]), torch.rand([4]))], {})),
    (DataClassSettings, lambda: ([Settings(4)], {}), lambda: ([torch.rand([2, 4])], {})),
    (Deques, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (OrderedByName, lambda: ([], {}), lambda: ([torch.rand([2, 4])], {})),
    (Generators, lambda: ([], {}), lambda: ([torch.rand([4, 4])], {})),
    (
        ZipAndStar,
        lambda: ([], {}),
        lambda: ([torch.rand([4]), torch.rand([4])], {"a": torch.rand([4]), "b": torch.rand([4])}),
    ),
    (Comprehensions, lambda: ([], {}), lambda: ([torch.rand([8, 2])], {})),
]
