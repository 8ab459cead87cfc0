"""Models whose inputs, state or results are of a kind that torch doesn't copy, or can't average."""

from __future__ import annotations

from collections import deque
from typing import Any

import factories
import pytest
import torch
from judging import judge
from torch import nn

from dynamometer.common.checking.alteration import Alteration, alter
from dynamometer.common.checking.checking import Checks
from dynamometer.common.checking.steps import configure, copied_inputs
from dynamometer.common.interfaces.suite import LoadedModel
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
@pytest.mark.parametrize(
    "layout", [torch.strided, torch.jagged, torch.sparse_coo, torch.sparse_csr]
)
def test_layouts(layout: torch.layout, mode: Mode) -> None:
    """Compressed inputs are copied, and results have a loss of the numbers that they hold."""
    rows = torch.rand(4, 4).relu().to_sparse_csr()
    found = judge(OfLayout(layout), torch.randn(4, 8), rows, mode=mode)
    assert isinstance(found, Checks)


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("layout", [torch.jagged, torch.sparse_coo])
def test_layouts_of_results_compile(layout: torch.layout, mode: Mode) -> None:
    """In training the loss of them is compiled with the model, and must not be what fails."""

    class OfRows(OfLayout):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x, torch.eye(4))

    found = judge(
        OfRows(layout),
        torch.randn(4, 8),
        mode=mode,
        arm=lambda module: torch.compile(module, backend="aot_eager"),
    )
    assert isinstance(found, Checks)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_sparse_result_may_be_larger_than_memory() -> None:
    """Of 8 entries the loss is that of these."""

    class Few(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.values = nn.Parameter(torch.rand(8))

        def forward(self, places: torch.Tensor) -> torch.Tensor:
            return torch.sparse_coo_tensor(places, self.values, (200_000, 200_000))

    found = judge(Few(), torch.arange(16).view(2, 8), mode=Mode.TRAINING)
    assert isinstance(found, Checks)


@pytest.mark.parametrize("mode", Mode)
def test_nested_inputs_are_trained_on(mode: Mode) -> None:
    """A deep copy of one would have other offsets than its gradient."""
    rows = [torch.randn(count, 8) for count in (1, 3)]
    x = torch.nested.nested_tensor(rows, layout=torch.jagged)
    found = judge(nn.Linear(8, 8), x, mode=mode)
    assert isinstance(found, Checks)
    assert x.offsets().tolist() == [0, 1, 4]
    assert not any("offsets" in each for each in found.reservations)


def test_other_inputs_have_rows_where_they_were() -> None:
    """Offsets that change places would lead beyond what is stored."""
    rows = [torch.ones(count, 8) for count in (1, 3)]
    x = torch.nested.nested_tensor(rows, layout=torch.jagged)
    loaded = LoadedModel(module=nn.Linear(8, 8), args=(x,))
    alter(loaded, Alteration.ALL, Mode.INFERENCE)
    assert x.offsets().tolist() == [0, 1, 4]
    assert not torch.equal(x.values(), torch.ones(4, 8))


@pytest.mark.filterwarnings("ignore:.*treespec:FutureWarning")  # torch's own
def test_an_exported_module_stays_in_its_mode() -> None:
    """It refuses to be put into another; what is beside it does not."""
    program = torch.export.export(nn.Linear(8, 8).eval(), (torch.randn(4, 8),))
    assert isinstance(judge(program.module(), torch.randn(4, 8)), Checks)
    model = nn.Sequential(program.module(), nn.Dropout(), nn.BatchNorm1d(8))
    loaded = LoadedModel(module=model, args=(torch.randn(4, 8),))
    for mode in Mode:
        configured = configure(loaded, factories.case(mode=mode), "cpu")
        assert configured.notes == ("what was exported stays in the mode it was exported in",)
        assert all(each.training is (mode is Mode.TRAINING) for each in model[1:])


class Answers:
    """Has a value for every name, or an error of its own."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def __deepcopy__(self, memo: object) -> Answers:
        return Answers(**self.values)

    def __getattr__(self, name: str) -> Any:
        if name == "values":
            raise AttributeError(name)
        return self.values[name]


def test_objects_with_attributes_of_their_own_are_copied() -> None:
    """Only tensors are asked for what tensors have."""
    other = copied_inputs((Answers(scale=2), deque([nn.Linear(2, 2)(torch.ones(2))])))
    assert other[0].scale == 2
    assert other[1][0].grad_fn is None
