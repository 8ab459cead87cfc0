"""What is counted of models of which it is known."""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hand_built as models
import pytest
import torch
from fakes import FakeClock
from torch import nn

from dynamometer.dynamo.capture import coverage
from dynamometer.dynamo.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from dynamometer.results.values.coverage import Coverage


@dataclass(frozen=True)
class Known:
    """What there is to capture of a model, inference first, training second.

    Attributes:
        make: the model.
        graphs: operators of each graph, as Dynamo counts them.
        captured: operators inside graphs.
        total: all of them.
        lost: at each line that ends a graph, in the order of lines.
        reasons: for which each of these does, as Dynamo begins to say it.
    """

    make: Callable[[], nn.Module]
    graphs: list[int]
    captured: tuple[int, int]
    total: tuple[int, int]
    lost: tuple[list[int], list[int]] = ([], [])
    reasons: tuple[str, ...] = ()


TORCH_2_11 = torch.__version__.startswith("2.11.")
PRINT = "Failed to trace builtin operator"
LIBRARY = {
    "2.11": "Attempted to call function marked as skipped",
    "2.15": "call to a callable object with no traceable __call__",
}.get(torch.__version__[:4], "Unsupported method call")
KNOWN = (
    # sin, add, cos; backward of cos: sin, neg, mul; of sin: cos, mul
    Known(models.Straight, [3], (3, 8), (3, 8)),
    Known(models.Prints, [2, 2], (4, 15), (4, 15), ([0], [0]), (PRINT,)),
    # outside: the conversion of the comparison to a bool
    Known(models.Branches, [3, 1], (4, 9), (5, 10), ([1], [1]), ("Data-dependent branching",)),
    # outside: the number's way out of the tensor
    Known(models.Items, [2, 2], (4, 8), (5, 9), ([1], [1]), ("Unsupported Tensor.item()",)),
    # outside: add, relu; in training what relu keeps for its backward, twice, and that
    Known(
        models.Breaks,
        [1, 1, 1, 1],
        (4, 15),
        (6, 20),
        ([0, 2, 0], [0, 5, 0]),
        ("Call to `torch._dynamo.graph_break()`", "Skip calling `torch.compiler.disable()`", PRINT),
    ),
    Known(
        models.CallsALibrary,
        [1, 2],
        (3, 8),
        (3, 8),
        ([0], [0]),
        (LIBRARY,),
    ),
    Known(models.Nested, [6], (9, 42), (9, 42)),
    Known(models.InnerBreak, [1, 2, 2, 1], (6, 20), (6, 20), ([0], [0]), (PRINT,)),
    Known(models.Loops, [100], (100, 300), (100, 300)),
    Known(models.Generates, [6], (6, 17), (6, 17)),
    Known(models.Hooked, [2], (3, 14), (3, 14)),
    Known(models.Mutates, [4], (4, 10), (4, 10)),
    Known(models.Nothing, [], (0, 0), (0, 0)),
    # outside: exp, tanh, neg, abs, as nothing after the last line before `try` is compiled
    # in training five of backward, and what exp and tanh keep for it, twice
    Known(models.Tries, [2], (2, 7), (6, 20), ([4], [13]), (PRINT,)),
)


pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
    pytest.mark.filterwarnings("ignore:.*Function'> should not be instantiated"),
]
"""Dynamo does both, whatever the model."""


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


@dataclass(frozen=True)
class Step:
    """A step of a model of which everything is known, and what was counted of it."""

    known: Known
    training: bool
    found: Coverage


@pytest.fixture(
    scope="module",
    params=[(known, training) for known in KNOWN for training in (False, True)],
    ids=lambda param: f"{param[0].make.__name__}-{'training' if param[1] else 'inference'}",
)
def step(request: pytest.FixtureRequest) -> Step:
    """Count each step once for all tests."""
    known, training = request.param
    return Step(known, training, count(known.make(), training=training))


def test_counts_are_exact(step: Step) -> None:
    """Graphs, operators, lines and what is lost at each are what is written beside the model."""
    known, training, found = step.known, step.training, step.found
    assert [graph.ops for graph in found.graphs] == known.graphs
    assert [graph.calls for graph in found.graphs] == [1] * len(known.graphs)
    assert (found.captured_ops, found.total_ops) == (
        known.captured[training],
        known.total[training],
    )
    by_line = sorted(found.breaks, key=lambda each: each.line)
    assert [each.not_captured_ops for each in by_line] == known.lost[training]
    assert found.total_ops - found.captured_ops == sum(
        each.not_captured_ops for each in found.breaks
    )
    assert found.frames_ok >= len(known.graphs)  # printing has frames of its own
    assert found.frames_again == 0


def test_graphs_end_at_the_lines_that_say_so(step: Step) -> None:
    """Each break is at a line that is marked, for its reason; a module may hold another's line."""
    known, found = step.known, step.found
    module = models.Prints if known.make is models.InnerBreak else known.make
    assert inspect.isclass(module)
    lines, first = inspect.getsourcelines(module)
    marked = [first + index for index, text in enumerate(lines) if "# ends a graph" in text]
    by_line = sorted(found.breaks, key=lambda each: each.line)
    assert [(each.file, each.line) for each in by_line] == [
        (models.__file__, line) for line in marked
    ]
    assert len(by_line) == len(known.reasons)
    for each, reason in zip(by_line, known.reasons, strict=True):
        assert each.reason.startswith(reason)
        assert each.hint


def eager_ops(model: nn.Module, *, training: bool) -> int:
    """Count what a step runs without Dynamo."""
    x = torch.randn(2, 4, requires_grad=training)
    gradient = torch.ones_like(model(x))  # there is no loss here, nor in what is counted
    with torch.set_grad_enabled(training), models.EagerCount() as eager:  # type: ignore[no-untyped-call]  # torch's
        output = model(x)
        if training:
            output.backward(gradient)
    return eager.total


def test_the_total_is_what_eager_runs(step: Step) -> None:
    """Whatever Dynamo does with it, a model runs the operators it runs without."""
    assert step.found.total_ops == eager_ops(step.known.make(), training=step.training)


def test_an_autograd_function_has_its_backward_in_the_graph() -> None:
    """And no operator is lost."""
    for training, ops in ((False, 3), (True, 10)):
        found = count(models.Differentiates(), training=training)
        assert (found.captured_ops, found.total_ops) == (ops, ops)
        assert found.is_full_graph


def test_an_operator_that_runs_others_is_one() -> None:
    """Sum, comparison, branch, negation; in training the backward of the last two.

    To trace each branch torch 2.11 takes memory like its inputs: two, and four in the backward.
    """
    for training, ops in ((False, 4), (True, 12 if TORCH_2_11 else 6)):
        found = count(models.Conditional(), training=training)
        assert (found.captured_ops, found.total_ops) == (ops, ops)
        assert found.is_full_graph


@pytest.mark.parametrize(
    ("model", "captured"), [(models.Maps, (5, 19)), (models.ChecksInside, (1, 4))]
)
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_what_a_break_loses_around_a_call_is_its_own(
    model: type[nn.Module], captured: tuple[int, int], *, training: bool
) -> None:
    """Where Python or torch calls the function the break is in, and that is not captured."""
    found = count(model(), training=training)
    assert found.captured_ops == captured[training]
    assert found.total_ops == eager_ops(model(), training=training)
    (one,) = found.breaks
    assert "print(" in (one.code or "")
    assert one.not_captured_ops == found.total_ops - found.captured_ops
    assert one.not_captured_s
    assert found.unexplained_ops == 0


def line_of(model: type[nn.Module], text: str) -> int:
    """Find the line of a model that begins so."""
    lines, first = inspect.getsourcelines(model)
    (index,) = [number for number, each in enumerate(lines) if each.strip().startswith(text)]
    return first + index


@torch._dynamo.disable  # type: ignore[untyped-decorator]  # torch's
def nap() -> None:
    """Compute nothing."""
    time.sleep(1.0)


class Waits(nn.Module):
    """Loses time at a line, and no operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin()
        nap()
        return x.cos()


def test_time_is_lost_where_no_operator_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the line at which the graph before it ends; on a clock that nothing else advances."""
    clock = FakeClock()
    monkeypatch.setattr(Clock, "now", staticmethod(clock.now))
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.step(lambda _: seconds)())
    found = count(Waits(), training=False)
    (line,) = found.breaks
    assert (line.not_captured_ops, line.code) == (0, "nap()")
    assert (line.not_captured_s, found.total_s) == (1.0, 1.0)


class TwoReasons(nn.Module):
    """Ends graphs twice in one line, for two reasons."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin()
        print(x.sum().item(), end="")
        return x.cos()


def test_each_reason_of_a_line_is_told() -> None:
    """Who mends the first would still have the second; what the line costs is there once."""
    found = count(TwoReasons(), training=False)
    first, second = found.breaks
    assert first.reason.startswith("Unsupported Tensor.item()")
    assert second.reason.startswith(PRINT)
    assert first.line == second.line
    assert (first.not_captured_ops, second.not_captured_ops) == (1, 0)
    assert found.unexplained_ops == 0


class Wanders(nn.Module):
    """Takes a long way at some calls, by lines that are no part of the short one."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.sin()
        if self.is_long():
            nap()
            x = x.tan()
        torch._dynamo.graph_break()
        return x.cos()

    @torch._dynamo.disable  # type: ignore[untyped-decorator]  # torch's
    def is_long(self) -> bool:
        """Count the call, which Dynamo doesn't see."""
        self.calls += 1
        return self.calls % 2 == 1


def test_time_of_another_path_is_put_down_to_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted is one path, and steps that are timed may take another."""
    clock = FakeClock()
    monkeypatch.setattr(Clock, "now", staticmethod(clock.now))
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.step(lambda _: seconds)())
    found = count(Wanders(), training=False)
    assert found.total_s is not None
    assert found.captured_s is not None
    assert {each.not_captured_s for each in found.breaks} == {None}


@torch._dynamo.disable  # type: ignore[untyped-decorator]  # torch's
def three(x: torch.Tensor) -> torch.Tensor:
    """Compute three operators that no graph has."""
    return x.sin().cos().tan()


class FindsOut(nn.Module):
    """Comes by a line that ends a graph at its third call for the first time."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        x = x.exp()
        if self.is_late():
            x = x + 1
        return three(x)

    is_late = torch._dynamo.disable(lambda self: self.count() > 2)

    def count(self) -> int:
        """Count the call."""
        self.calls += 1
        return self.calls


def test_a_break_that_is_found_while_counting_has_its_operators() -> None:
    """They were put down to the line whose rest that was; the step is counted once more."""
    found = count(FindsOut(), training=False)
    lost = {each.code: each.not_captured_ops for each in found.breaks}
    assert lost == {"return three(x)": 3, "if self.is_late():": 0}
    assert found.unexplained_ops == 0


class Yields(nn.Module):
    """Is a generator."""

    def forward(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        """Compute as somebody asks."""
        for _ in range(3):
            yield x.sin()


def test_a_generator_is_counted_though_it_computes_later() -> None:
    """As whoever calls it takes all it gives."""
    capture = coverage.Capture.of(Yields(), lambda: None)
    x = torch.randn(2, 4)
    found = coverage.measure(capture, lambda: list(capture.compiled(x)))
    assert found.total_ops == 3


def test_a_function_that_is_left_as_it_is_says_what_it_loses() -> None:
    """No line ends a graph where there is none."""
    found = count(models.LoopBreaks(), training=False)
    assert (found.captured_ops, found.total_ops, found.breaks) == (0, 3, ())
    (frame, *_) = [each for each in found.skipped if each.not_captured_ops]
    assert (frame.function, frame.file, frame.not_captured_ops) == ("forward", models.__file__, 3)
    assert frame.stopped_file == models.__file__
    assert frame.stopped_line == line_of(models.LoopBreaks, "print(end")
    assert frame.not_captured_s
    assert found.unexplained_ops == 0


def test_a_function_around_the_only_graph_is_not_in_it() -> None:
    """Every operator is captured, and still one graph is not all."""
    found = count(models.LoopsOnce(), training=False)
    assert (found.captured_ops, found.total_ops, found.breaks) == (3, 3, ())
    assert found.skipped
    assert not found.is_full_graph


def test_what_is_lost_in_one_line_is_lost_once() -> None:
    """By whichever function that begins there; a break may be in the same line."""
    found = count(Comprehends(), training=False)
    assert found.unexplained_ops == 0
    assert (
        sum(each.not_captured_ops for each in found.not_captured)
        == found.total_ops - found.captured_ops
    )


class Comprehends(nn.Module):
    """Has functions without a name that begin in one line, one within the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        rows = [[print(end="") or x.sin() for _ in range(2)] for _ in range(2)]  # type: ignore[func-returns-value]  # None is the point
        return rows[0][0] + rows[1][1]


def test_a_backward_in_the_forward_is_part_of_it() -> None:
    """Every operator of it is lost at the line that calls it."""
    model = models.Slopes()
    step = step_of(model, training=False)
    with models.EagerCount() as eager:  # type: ignore[no-untyped-call]  # torch's
        step()
    found = count(model, training=False)
    (line,) = found.breaks
    assert (found.captured_ops, found.total_ops) == (2, eager.total)
    assert line.not_captured_ops == eager.total - 2


def test_what_is_computed_again_is_lost_where_it_belongs() -> None:
    """The second forward and its backward too, at the line that made the first."""
    found = count(models.Checkpoints(), training=True)
    (line,) = found.breaks
    assert found.total_ops - found.captured_ops == line.not_captured_ops
    assert found.captured_ops == 2 + 2 * 3  # two cosines, with a backward of sin, neg, mul each
    assert line.not_captured_ops >= 2 * 1 + 2  # sin, sin again, and its backward cos, mul


def test_one_graph_that_python_follows_is_not_the_whole() -> None:
    """Dynamo would raise if it had to be."""
    found = count(models.EndsWithAPrint(), training=False)
    assert (found.captured_ops, found.total_ops, len(found.graphs)) == (2, 2, 1)
    assert not found.is_full_graph


def test_a_step_of_several_calls_is_whole_if_each_is() -> None:
    """One graph for each."""
    capture = coverage.Capture.of(models.Straight(), lambda: None)
    call = step_of(capture.compiled, training=False)

    def step() -> None:
        call()
        call()

    found = coverage.measure(capture, step)
    assert (found.model_calls, found.graph_calls, len(found.graphs)) == (2, 2, 1)
    assert found.is_full_graph


def by_shape(model: nn.Module, call: Callable[..., Any], x: torch.Tensor) -> list[torch.Tensor]:
    """Call a model at two sizes."""
    del model
    return [call(x), call(torch.cat((x, x[:1])))]


def by_constant(model: nn.Module, call: Callable[..., Any], x: torch.Tensor) -> list[torch.Tensor]:
    """Call a model with two words."""
    del model
    return [call(x, "sin"), call(x, "cos")]


def by_attribute(model: nn.Module, call: Callable[..., Any], x: torch.Tensor) -> list[torch.Tensor]:
    """Call a model that holds one word, then another."""
    found = []
    for word in ("sin", "cos"):
        model.held = word  # type: ignore[assignment]  # a module's attributes are tensors to mypy
        found.append(call(x))
    return found


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize(
    ("make", "calls", "guard", "graphs", "ops"),
    [
        # a sine, an addition and a cosine in each graph, with five operators of backward
        (models.Straight, by_shape, "size mismatch at index 0", [3, 3], (6, 16)),
        # a sine with two of backward; a cosine and a negation with four
        (models.Chooses, by_constant, "given == 'sin'", [1, 2], (3, 9)),
        (models.Chooses, by_attribute, "held == 'sin'", [1, 2], (3, 9)),
    ],
)
def test_a_recompile_has_its_guard_and_loses_nothing(
    make: Callable[[], nn.Module],
    calls: Callable[..., list[torch.Tensor]],
    guard: str,
    graphs: list[int],
    ops: tuple[int, int],
    *,
    training: bool,
) -> None:
    """By shape, by constant and by a module's attribute: one each, at the function it is of."""
    model = make()
    capture = coverage.Capture.of(model, lambda: None)
    x = torch.randn(2, 4, requires_grad=training)

    def step() -> None:
        with torch.set_grad_enabled(training):
            for found in calls(model, capture.compiled, x):
                if training:
                    found.sum().backward()

    found = coverage.measure(capture, step)
    (again,) = found.recompiles
    assert guard in again.guard.replace('"', "'")
    assert (again.function, again.file) == ("forward", models.__file__)
    assert again.line == inspect.getsourcelines(make.forward)[1]
    assert [graph.ops for graph in found.graphs] == graphs
    assert (found.model_calls, found.graph_calls, found.frames_again) == (2, 2, 0)
    assert (found.captured_ops, found.total_ops) == (ops[training], ops[training])
    assert found.is_full_graph


class Growing(nn.Module):
    """Compiled anew at each call."""

    name = ""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        self.name += "a"
        x = x.sin()
        print(end="")
        return x


def test_a_model_that_never_rests_is_not_timed() -> None:
    """Compiling would be in it; graphs are those up to the step that is counted."""
    found = count(Growing(), training=False)
    assert found.frames_again == 1
    assert all("name" in each.guard for each in found.recompiles)
    assert len(found.graphs) == 3
    assert (found.captured_s, found.total_s, found.share_of_time) == (None, None, None)
    assert found.guards_s is None
    (line,) = found.breaks
    assert line.not_captured_s is None


class CountsCalls(nn.Module):
    """Compiled anew at each call, as one graph."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        self.calls += 1
        return x.sin() * self.calls


def test_a_model_that_is_given_up_as_it_is_timed_is_not_the_whole() -> None:
    """Recompiles and frames given up are those of all steps."""
    found = count(CountsCalls(), training=False)
    assert (found.captured_ops, found.total_ops, found.not_captured) == (2, 2, ())
    assert found.recompile_limit_hits == 1
    assert not found.is_full_graph
    assert len(found.recompiles) == torch._dynamo.config.recompile_limit - 1


class Refused(nn.Module):
    """Calls a function with more words than it may be compiled for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        for index in range(torch._dynamo.config.recompile_limit + 2):
            x = worded(x, str(index))
        return x


def worded(x: torch.Tensor, word: str) -> torch.Tensor:
    """Compute, by a constant."""
    torch._dynamo.graph_break()
    return x.sin() * len(word)


def test_a_function_that_was_compiled_too_often_is_named() -> None:
    """With what it runs uncompiled."""
    found = count(Refused(), training=False)
    assert found.recompile_limit_hits == 1
    assert found.unexplained_ops == 0
    assert any("worded" in each.function for each in found.skipped if each.not_captured_ops)
    assert found.captured_ops < found.total_ops


def test_times_add_up() -> None:
    """What is spent inside graphs is part of the forward, and what is lost is none of that."""
    found = count(models.Breaks(), training=False)
    assert found.captured_s is not None
    assert found.total_s is not None
    assert 0 < found.captured_s < found.total_s
    assert all(each.not_captured_s for each in found.breaks)
    not_captured_s = sum(each.not_captured_s or 0.0 for each in found.breaks)
    assert not_captured_s < found.total_s - found.captured_s
    assert found.share_of_time is not None
    assert 0 < found.share_of_time < 1


def test_a_step_is_its_graphs_and_the_gaps_between_them() -> None:
    """Nothing is counted twice, and nothing left out."""
    capture = coverage.Capture.of(models.Breaks(), lambda: None)
    step = step_of(capture.compiled, training=False)
    step()
    probe = capture.probe
    probe.restart()
    step()
    assert len(probe.gaps_s) == 4 + 1
    assert probe.captured_s + sum(probe.gaps_s) == pytest.approx(probe.total_s)
