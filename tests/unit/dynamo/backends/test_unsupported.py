"""What is read by strides, for runtimes that know none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from dynamometer.dynamo.backends.programs import export, program_of
from dynamometer.dynamo.backends.unsupported import UnsupportedError, order_in_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.dynamo.backends.programs import Program

# What torch.export says of itself.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


class Reads(nn.Module):
    """Reads what is made of an input."""

    def __init__(self, made: Callable[[torch.Tensor], torch.Tensor], *strides: Any) -> None:
        super().__init__()
        self._made, self._strides = made, strides

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add one, as an output that is a view has its own way."""
        return self._made(x + 1).as_strided(*self._strides) + 1


def program(module: nn.Module, x: torch.Tensor) -> Program:
    """Make a program of a module."""
    with torch.no_grad():
        return program_of(export(module, (x,)), [x])


READS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Any]] = {
    "as it is": (lambda x: x, ((2, 3), (1, 2))),
    "transposed": (lambda x: x.transpose(0, 2), ((2, 3), (1, 2))),
    "permuted, and a start": (lambda x: x.permute(2, 0, 1), ((4, 2), (3, 1), 5)),
    "without a dimension": (lambda x: x.transpose(1, 2)[0:1], ((3, 2), (4, 1))),
    "a part that has no gaps": (lambda x: x.transpose(1, 2)[1], ((3, 2), (4, 1))),
}


@pytest.mark.parametrize("case", READS)
def test_what_is_read_lies_in_memory_as_its_dimensions_do(case: str) -> None:
    """So that who takes each tensor for contiguous, as runtimes do, reads the same."""
    made, strides = READS[case]
    x = torch.arange(24.0).reshape(2, 3, 4)
    module = Reads(made, *strides)
    found = program(module, x)
    assert found.exported is not None
    (read,) = (node for node in found.exported.graph.nodes if "as_strided" in str(node.target))
    source = read.args[0].meta["val"]
    assert source.is_contiguous()
    assert source.storage_offset() == 0
    (computed,) = found.exported.module()(x)
    assert torch.equal(computed, module(x))


@pytest.mark.parametrize(
    ("made", "strides"),
    [
        (lambda x: x[:, ::2], ((2, 2), (12, 8))),
        (lambda x: x[1], ((2, 2), (12, 1), 0)),
        (lambda x: x[0], ((2, 2), (12, 1))),
        (lambda x: x[:, :1].expand(2, 3, 4), ((2, 2), (4, 1))),
    ],
    ids=["gaps", "before its first", "behind its last", "overlapping"],
)
def test_what_cannot_be_read_in_order_is_refused(made: Any, strides: Any) -> None:
    """Runtimes would read something else, or outside."""
    with pytest.raises(UnsupportedError, match="as_strided"):
        program(Reads(made, *strides), torch.arange(24.0).reshape(2, 3, 4))


class ReadsNothing(nn.Module):
    """Reads by strides what it doesn't use, and none of what there is, or none of nothing."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute something."""
        y = x + 1
        return (
            x[:, ::2].as_strided((2, 2), (12, 8)),
            y.as_strided((0, 100), (1, 1)) + 1,
            y[:0].as_strided((0, 3), (1, 1)) + 1,
            y,
        )


def test_what_is_not_read_is_not_refused() -> None:
    """A view of an input is made around the program; of nothing nothing can be wrong."""
    x = torch.arange(24.0).reshape(2, 3, 4)
    found = program(ReadsNothing(), x)
    assert found.exported is not None
    compute = found.exported.module()
    for one, two in zip(found.run(lambda fed: compute(*fed), [x]), ReadsNothing()(x), strict=True):
        assert torch.equal(one, two)


class ReadsInABranch(nn.Module):
    """Reads by strides where a condition holds."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute something."""
        found: torch.Tensor = torch.cond(
            x.sum() > 0, lambda y: y.as_strided((24,), (1,)) + 0, lambda y: y.flatten() + 1, (x,)
        )
        return found


def test_what_reads_in_a_branch_is_refused() -> None:
    """As its tensors are laid out by what is around it."""
    with pytest.raises(UnsupportedError, match="may or may not run"):
        program(ReadsInABranch(), torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1))


class Writes(nn.Module):
    """Writes by strides."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute something."""
        return torch.as_strided_scatter(x + 1, x[0, 0], (4,), (1,)) * 2


def test_what_is_written_by_strides_is_refused() -> None:
    """Nobody has needed it."""
    with pytest.raises(UnsupportedError, match="writes by strides"):
        program(Writes(), torch.arange(24.0).reshape(2, 3, 4))


def test_order_of_dimensions_in_memory() -> None:
    """Of which sizes of one say nothing, and symbols neither."""
    assert order_in_memory((2, 3, 4), (12, 4, 1)) == [0, 1, 2]
    assert order_in_memory((4, 2, 3), (1, 12, 4)) == [1, 2, 0]
    assert order_in_memory((1, 3), (77, 1)) == [0, 1]
    assert order_in_memory((), ()) == []
    assert order_in_memory((3, 0), (1, 1)) == [0, 1]
    assert order_in_memory((2, 3), (4, 1)) is None
    assert order_in_memory((2, 3), (0, 1)) is None
    assert order_in_memory(("s0", 3), (3, 1)) is None
