"""Models whose inputs, state or results are of a kind that torch doesn't copy, or can't average."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from judging import judge
from torch import nn

from dynamometer.common.checking.checking import Checks
from dynamometer.results.values.cases import Mode

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support|.*nested tensors")


class Hidden(nn.Module):
    """Keeps what it computed in a container of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.hidden: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, 8]` to itself."""
        y: torch.Tensor = self.layer(x)
        self.hidden = {"of the last call": (y, 2 * y)}
        return y


@pytest.mark.parametrize("mode", Mode)
def test_what_was_computed_is_copied(mode: Mode) -> None:
    """Inputs, and what a model keeps, may have a history."""
    model, x = Hidden(), nn.Embedding(10, 8)(torch.arange(4))
    model(x)
    assert isinstance(judge(model, x, mode=mode), Checks)


class OfLayout(nn.Module):
    """Gives a result of a layout."""

    def __init__(self, layout: torch.layout) -> None:
        super().__init__()
        self.layer, self.layout = nn.Linear(8, 8), layout

    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Multiply, and change the layout."""
        y: torch.Tensor = rows @ self.layer(x)
        if self.layout is torch.strided:
            return y
        if self.layout is torch.jagged:
            return torch.nested.nested_tensor_from_jagged(y, torch.tensor([0, 1, 4]))
        return y.to_sparse(layout=self.layout)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged, torch.sparse_coo])
def test_layouts(layout: torch.layout, mode: Mode) -> None:
    """Compressed inputs are copied, and results have a loss of the numbers that they hold."""
    rows = torch.rand(4, 4).relu().to_sparse_csr()
    found = judge(OfLayout(layout), torch.randn(4, 8), rows, mode=mode)
    assert isinstance(found, Checks)


@pytest.mark.filterwarnings("ignore:.*treespec:FutureWarning")  # torch's own
def test_an_exported_module_stays_in_its_mode() -> None:
    """It refuses to be put into another."""
    program = torch.export.export(nn.Linear(8, 8).eval(), (torch.randn(4, 8),))
    assert isinstance(judge(program.module(), torch.randn(4, 8)), Checks)
