"""What is counted of models of which it is known."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hand_built as models
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dynamometer.dynamo import coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from torch import nn

    from dynamometer.results.coverage import Coverage


@dataclass(frozen=True)
class Known:
    """What there is to capture of a model, inference first, training second.

    Attributes:
        make: the model.
        graphs: operators of each graph, as Dynamo counts them.
        captured: operators inside graphs.
        total: all of them.
        lost: at each line that ends a graph, in the order of lines.
    """

    make: Callable[[], nn.Module]
    graphs: list[int]
    captured: tuple[int, int]
    total: tuple[int, int]
    lost: tuple[list[int], list[int]] = ([], [])


KNOWN = (
    # sin, add, cos; backward of cos: sin, neg, mul; of sin: cos, mul
    Known(models.Straight, [3], (3, 8), (3, 8)),
    Known(models.Prints, [2, 2], (4, 15), (4, 15), ([0], [0])),
    # outside: the conversion of the comparison to a bool
    Known(models.Branches, [3, 1], (4, 9), (5, 10), ([1], [1])),
    # outside: the number's way out of the tensor
    Known(models.Items, [2, 2], (4, 8), (5, 9), ([1], [1])),
    # outside: add, relu; in training what relu keeps for its backward, twice, and that
    Known(models.Breaks, [1, 1, 1, 1], (4, 15), (6, 20), ([0, 2, 0], [0, 5, 0])),
    Known(models.CallsALibrary, [1, 2], (3, 8), (3, 8), ([0], [0])),
    Known(models.Nested, [6], (9, 42), (9, 42)),
    Known(models.InnerBreak, [1, 2, 2, 1], (6, 20), (6, 20), ([0], [0])),
    Known(models.Loops, [100], (100, 300), (100, 300)),
    Known(models.Generates, [6], (6, 17), (6, 17)),
    Known(models.Hooked, [2], (3, 14), (3, 14)),
    Known(models.Mutates, [4], (4, 10), (4, 10)),
    Known(models.Nothing, [], (0, 0), (0, 0)),
)


pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
"""Dynamo looks at it of whatever a resumed frame is given."""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Leave nothing compiled to other tests."""
    yield
    torch._dynamo.reset()


def count(model: nn.Module, *, training: bool) -> Coverage:
    """Count a step of a model on a few numbers."""
    capture = coverage.Capture.of(model, lambda: None)
    return coverage.measure(capture, step_of(capture.compiled, training=training))


def step_of(call: Callable[..., Any], *, training: bool) -> Callable[[], object]:
    """Make the step: a forward, or one with its backward."""
    x = torch.randn(2, 4, requires_grad=training)

    def step() -> object:
        if training:
            call(x).sum().backward()
            return None
        with torch.no_grad():
            return call(x)

    return step


class EagerCount(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
    """Counts every operator there is."""

    total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one."""
        self.total += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.make.__name__)
def test_counts_are_exact(known: Known, *, training: bool) -> None:
    """Graphs, operators, lines and what is lost at each are what is written beside the model."""
    found = count(known.make(), training=training)
    assert [graph.ops for graph in found.graphs] == known.graphs
    assert [graph.calls for graph in found.graphs] == [1] * len(known.graphs)
    assert (found.captured_ops, found.total_ops) == (
        known.captured[training],
        known.total[training],
    )
    by_line = sorted(found.breaks, key=lambda each: each.line)
    assert [each.lost_ops for each in by_line] == known.lost[training]
    assert found.total_ops - found.captured_ops == sum(each.lost_ops for each in found.breaks)
    assert found.frames_ok >= len(known.graphs)  # printing has frames of its own
    assert found.frames_again == 0


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.make.__name__)
def test_graphs_end_at_the_lines_that_say_so(known: Known) -> None:
    """Each break is at a line that is marked, in the file it is written in, and has a reason."""
    found = count(known.make(), training=False)
    marked = [
        text.strip()
        for text in inspect.getsource(models).splitlines()
        if text.strip().partition("# ")[2].startswith("ends a graph")
    ]
    for each in found.breaks:
        assert each.file == models.__file__
        assert each.code in marked
        assert each.reason
    assert len(found.breaks) == len(known.lost[0])


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.make.__name__)
def test_the_total_is_what_eager_runs(known: Known) -> None:
    """Whatever Dynamo does with it, a model runs the operators it runs without."""
    model = known.make()
    step = step_of(model, training=False)
    with EagerCount() as eager:  # type: ignore[no-untyped-call]  # torch's
        step()
    assert count(model, training=False).total_ops == eager.total


def test_times_add_up() -> None:
    """What is spent inside graphs is part of the forward, and what is lost is none of that."""
    found = count(models.Breaks(), training=False)
    assert found.captured_s is not None
    assert found.total_s is not None
    assert 0 < found.captured_s < found.total_s
    lost = [each.lost_s for each in found.breaks if each.lost_s]
    assert len(lost) == 1
    assert found.captured_s + lost[0] <= found.total_s * 1.5
    assert found.share_of_time is not None
    assert 0 < found.share_of_time < 1
