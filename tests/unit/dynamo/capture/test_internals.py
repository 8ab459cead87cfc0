"""What torch doesn't promise is as this project takes it to be; by name, where it isn't."""

from __future__ import annotations

import ast
import linecache
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch._dynamo import exc
from torch.utils._python_dispatch import TorchDispatchMode

from dynamometer.dynamo import state
from dynamometer.dynamo.capture import capture, compilations, internals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType
    from typing import Any

ROOT = Path(internals.__file__).resolve().parents[2]
FOLDERS = ("common", "dynamo", "models", "results")
ALLOWED = {
    "dynamo/capture/internals.py": {"torch._dynamo", "torch._C", "torch._guards"},
    "dynamo/capture/compilations.py": {"torch._dynamo", "torch._C", "torch._guards"},
    "dynamo/capture/coverage.py": {"torch.utils._python_dispatch"},
    "dynamo/backends/inductor.py": {"torch._inductor"},
    "dynamo/accuracy/rounding.py": {"torch.utils._python_dispatch"},
    "dynamo/state.py": {"torch._dynamo", "torch._inductor"},
    "models/builders/microbench.py": {"torch._check"},
}
"""What each file needs beyond what torch documents; configuration is dynamo/state.py's."""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Leave nothing compiled to other tests."""
    state.forget_compiled()
    yield
    state.forget_compiled()


def private(path: Path) -> set[str]:
    """Name the private parts of torch a file imports or reaches into."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
    return {name for name in found if re.match(r"torch\..*\._(?!_)|torch\._(?!_)", name)}


def test_private_parts_of_torch_are_in_one_place() -> None:
    """Where a file needs others, it is said here which."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            for used in private(path):
                allowed = ALLOWED.get(name, set())
                assert any(f"{used}.".startswith(f"{each}.") for each in allowed), (name, used)


def test_compilations_are_noted() -> None:
    """Frames, guards, breaks with a line, skipped frames and recompiles."""

    def function(x: torch.Tensor, times: int) -> torch.Tensor:
        x = x.sin() * times
        torch._dynamo.graph_break()  # here
        return x.cos()

    log = compilations.CompileLog.start()
    compiled = internals.optimize("eager")(function)
    compiled(torch.ones(3), 2)
    found = log.read()
    assert (found.frames, found.frames_ok) == (2, 2)
    assert found.guards > 0
    (seen,) = found.breaks
    assert (seen.file, seen.function) == (__file__, "function")
    assert linecache.getline(__file__, seen.line).rstrip().endswith("# here")
    assert (found.recompiles, found.recompile_limit_hits) == ((), 0)
    compiled(torch.ones(3), 3)
    (again, *_) = log.read().recompiles
    assert again.function == "function"
    assert "times" in again.guard


def test_backends_that_fail_leave_a_reason() -> None:
    """Frames they were given are skipped."""

    def broken(graph: Any, inputs: Any) -> Any:
        raise NotImplementedError

    log = compilations.CompileLog.start()
    with pytest.raises(Exception, match="NotImplementedError"):
        internals.optimize(broken)(lambda x: x.sin())(torch.ones(2))
    (skipped,) = log.read().skipped
    assert "broken" in skipped.reason


def test_a_mode_may_let_compiled_code_run() -> None:
    """One that says so sees the operators of a graph; any other keeps Dynamo from running it."""

    class Quiet(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
        seen = 0

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.seen += 1
            return func(*args, **(kwargs or {}))

    ran = []

    def backend(graph: Any, inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            ran.append(1)
            return graph.forward(*args)

        return run

    compiled = internals.optimize(backend)(lambda x: x.sin().cos())
    x = torch.ones(2)
    compiled(x)
    with Quiet() as mode:  # type: ignore[no-untyped-call]  # torch's
        compiled(x)
    assert (mode.seen, len(ran)) == (2, 2)


def test_autograd_nodes_are_numbered_in_order() -> None:
    """The node an operator makes has the number that was next, and is known while it runs."""
    x = torch.ones(2, requires_grad=True)
    before = internals.autograd_sequence_number()
    y = x.sin()
    assert y.grad_fn is not None
    assert y.grad_fn._sequence_nr() == before
    assert internals.autograd_sequence_number() == before + 1
    running: list[int | None] = []

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            running.append(internals.running_node_number())
            return func(*args, **(kwargs or {}))

    with Watch():  # type: ignore[no-untyped-call]  # torch's
        y.backward(torch.ones(2))
    assert before in running
    assert internals.running_node_number() is None


def test_what_is_left_alone_compiles_what_it_calls() -> None:
    """Dynamo doesn't look at it, but at what it calls."""
    log = compilations.CompileLog.start()

    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    compiled = internals.optimize("eager")(inner)
    internals.leave_alone(lambda x: compiled(x) + 1)(torch.ones(2))
    assert log.read().frames_ok == 1


def test_what_is_compiled_too_often_is_noted() -> None:
    """Dynamo gives up on a frame after some recompiles."""
    log = compilations.CompileLog.start()
    compiled = internals.optimize("eager")(lambda x, name: x.sin() if name else x)
    for name in "abcdefghijkl":
        compiled(torch.ones(2), name)
    found = log.read()
    assert found.recompile_limit_hits >= 1
    assert len(found.recompiles) >= 5


def test_frames_given_up_are_counted_from_a_moment_on() -> None:
    """Each once, however often it is called afterwards."""
    before = capture.Counters.take()
    assert before is not None
    compiled = internals.optimize("eager")(lambda x, name: x.sin() if name else x)
    for name in "abcdefgh":
        compiled(torch.ones(2), name)
    assert before.recompile_limit_hits() == 0
    for name in "ijklm":
        compiled(torch.ones(2), name)
    assert before.recompile_limit_hits() == 1
    after = capture.Counters.take()
    assert after is not None
    assert after.recompile_limit_hits() == 0


def test_compilations_are_counted_where_all_must_be_one_graph() -> None:
    """Dynamo's counter of frames stands still then."""
    compiled = internals.optimize("eager", nopython=True)(lambda x: x.sin())
    seen = [capture.frames_seen()]
    for inputs in (torch.ones(2), torch.ones(2, dtype=torch.float64), torch.ones(2)):
        compiled(inputs)
        seen.append(capture.frames_seen())
    assert seen[0] < seen[1] < seen[2] == seen[3]


def times_two(x: torch.Tensor, times: int) -> torch.Tensor:
    """Compute."""
    if times == 2:
        return x.sin()
    return x.cos()


def test_bytecode_is_seen_with_its_guards() -> None:
    """Before and after, while one watches; a guard names the line it is there for."""
    pairs: list[tuple[CodeType, CodeType]] = []
    with internals.watching(lambda *codes: pairs.append(codes)):
        internals.optimize("eager")(times_two)(torch.ones(3), 2)
    internals.optimize("eager")(lambda x: x.cos())(torch.ones(3))
    (pair,) = pairs
    assert pair[0] is times_two.__code__
    assert pair[1] is not times_two.__code__
    guards = dict(internals.guards_of(*pair))
    (place,) = [place for text, place in guards.items() if text == "L['times'] == 2"]
    assert place is not None
    assert place.endswith(f"test_internals.py:{times_two.__code__.co_firstlineno + 2} in times_two")
    assert any("size=[3]" in text for text in guards)
    state.forget_compiled()
    assert internals.guards_of(*pair) == ()


def graphs_of(
    function: Callable[..., Any], look: Callable[[torch.fx.GraphModule], object]
) -> list[Any]:
    """Compile a function for three numbers, and give what is seen of each of its graphs."""
    found: list[Any] = []

    def backend(graph: torch.fx.GraphModule, inputs: object) -> Callable[..., Any]:
        found.append(look(graph))
        forward: Callable[..., Any] = graph.forward
        return forward

    internals.optimize(backend, dynamic=True)(function)(torch.ones(3))
    return found


def test_a_break_that_cannot_be_resumed_has_its_cause() -> None:
    """Dynamo itself says `step_unsupported`, and that of the line before."""

    def function(x: torch.Tensor) -> torch.Tensor:
        x = x.sin().cos()
        try:
            torch._dynamo.graph_break()  # within
            return x.exp()
        finally:
            x.abs()

    state.forget_compiled()
    log = compilations.CompileLog.start()
    with compilations.noting_breaks() as notes:
        internals.optimize("eager")(function)(torch.ones(3))
    (plain,), (told,) = log.read().breaks, log.read(notes).breaks
    assert plain.reason == "step_unsupported"
    assert "graph_break" in told.reason
    assert linecache.getline(__file__, told.line).rstrip().endswith("# within")
    first = function.__code__.co_firstlineno
    assert told.left == (__file__, first, "function")


def test_looking_for_compiled_code_is_timed() -> None:
    """Of each frame that is entered; nothing of what Dynamo has no part in."""
    compiled = internals.optimize("eager")(lambda x: x.sin())
    compiled(torch.ones(3))
    seconds = internals.lookup_s(lambda: compiled(torch.ones(3)))
    assert seconds is not None
    assert 0 < seconds < 0.1
    assert internals.lookup_s(lambda: torch.ones(3).sin()) is None


def test_the_time_of_a_step_is_that_of_all_its_frames() -> None:
    """In seconds: the median step's sum, whatever the first ones took."""
    assert internals.median_step_s([900, 100, 500, 100, 10, 20, 10, 20, 10, 21], 5) == 31e-9
    assert internals.median_step_s([1_000, 3_000, 2_000], 3) == 2e-6


def test_each_frame_that_is_entered_is_looked_up() -> None:
    """Three frames take longer than one of them."""

    def three(x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        torch._dynamo.graph_break()
        x = x.cos()
        torch._dynamo.graph_break()
        return x.exp()

    events: list[int] = []
    compiled = internals.optimize("eager")(three)
    compiled(torch.ones(3))

    def counting(durations_ns: Sequence[int], steps: int) -> float:
        events.append(len(durations_ns) // steps)
        return 1.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(internals, "median_step_s", counting)
        assert internals.lookup_s(lambda: compiled(torch.ones(3))) == 1.0
    assert events == [3]


def test_a_graph_knows_why_it_ended() -> None:
    """With the line, unless it holds all there is."""

    def function(x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        torch._dynamo.graph_break()  # the line
        return x.cos()

    first, last = graphs_of(function, compilations.break_after)
    assert (first.file, first.function) == (__file__, "function")
    assert linecache.getline(__file__, first.line).rstrip().endswith("# the line")
    assert "graph_break" in first.reason
    assert last is None


def test_inputs_of_graphs_have_sources() -> None:
    """As Python would write them."""
    (found,) = graphs_of(
        lambda x: x.sin(),
        lambda graph: {
            internals.input_source(node) for node in graph.graph.nodes if node.op == "placeholder"
        },
    )
    assert "L['x']" in found


def test_a_size_that_became_a_number_has_a_line() -> None:
    """Known while it is compiled, and nothing is outside."""

    def function(x: torch.Tensor) -> torch.Tensor:
        for each in range(x.shape[0]):  # needs the number
            x = x + each
        return x

    (found,) = graphs_of(function, lambda graph: internals.specializations())
    ((*size, place),) = found
    assert size == ["L['x'].size()[0]", 3]
    assert place is not None
    assert (place[0], place[2]) == (__file__, "function")
    assert linecache.getline(__file__, place[1]).rstrip().endswith("# needs the number")
    assert internals.specializations() == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("L['x'] == 1  # x.sin()  # mp/my dir/mine.py:34 in f", "mp/my dir/mine.py:34 in f"),
        ("L['x'] == 1  # x.sin()  # mine.py:3 in <lambda> (hint)", "mine.py:3 in <lambda>"),
        ("L['x'] == 1  # y = 'a#b'  # mine.py:3 in f", "mine.py:3 in f"),
        ("L['x'] == 1  # if x:  # mine.py:3 in f (_dynamo/v.py:2 in e)", "mine.py:3 in f"),
        (
            "L['x'] == 1  # a  # a.py:1 in f (_dynamo/v.py:2 in e) and b  # b.py:3 in g",
            "b.py:3 in g",
        ),
        ("L['x'] == 1", None),
    ],
)
def test_where_a_guard_is_for(text: str, place: str | None) -> None:
    """In a folder of any name, and in functions without one."""
    assert internals._guard(text) == ("L['x'] == 1", place)


def test_marked_sizes_are_symbols_from_the_start() -> None:
    """A second one needs no second compilation."""
    log = compilations.CompileLog.start()
    compiled = internals.optimize("eager")(lambda x: x.sin())
    for size in (3, 4):
        x = torch.ones(size)
        internals.maybe_mark_dynamic(x, 0)
        compiled(x)
    assert log.read().frames == 1


def test_what_is_compiled_can_run_alone() -> None:
    """And what isn't runs as it is, with nothing compiled."""
    compiled = internals.optimize("eager")(lambda x: x.sin())
    compiled(torch.ones(3))
    seen = capture.frames_seen()
    x = torch.ones(3, dtype=torch.float64)
    assert torch.equal(internals.run_only(compiled)(x), x.sin())
    assert capture.frames_seen() == seen


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")  # Inductor's own, at import
def test_torch_times_what_compiling_is_spent_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames, and within them the backend; Inductor by itself, where no cache spares it."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    before = internals.seconds_spent()
    internals.optimize("inductor")(lambda x: x.sin())(torch.ones(3))
    spent = {
        name: total_s - before.get(name, 0.0) for name, total_s in internals.seconds_spent().items()
    }
    nested = ("entire_frame_compile", "backend_compile", "inductor_compile")
    assert spent[nested[0]] > spent[nested[1]] > spent[nested[2]] > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")  # Inductor's own, at import
def test_graphs_that_come_from_caches_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was compiled before Dynamo forgot it is still in files."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    counts = [internals.graphs_from_caches()]
    for _ in range(2):
        state.forget_compiled()
        internals.optimize("inductor")(lambda x: x.sin() + 0.1234)(torch.ones(3))
        counts.append(internals.graphs_from_caches())
    assert counts[0] == counts[1] < counts[2]


def test_dynamo_speaks_to_itself_through_backends() -> None:
    """A backend may not take this for a failure of its own: Dynamo begins again."""
    tried = []

    def backend(graph: torch.fx.GraphModule, inputs: object) -> Callable[..., Any]:
        tried.append(1)
        if len(tried) == 1:
            raise exc.TensorifyScalarRestartAnalysis
        forward: Callable[..., Any] = graph.forward
        return forward

    log = compilations.CompileLog.start()
    internals.optimize(backend)(lambda x: x.sin())(torch.ones(3))
    assert issubclass(exc.TensorifyScalarRestartAnalysis, internals.control_flow())
    assert (len(tried), log.read().frames_ok) == (2, 1)


def test_backends_are_found_by_name() -> None:
    """And a callable is one."""

    def backend(graph: torch.fx.GraphModule, inputs: object) -> Callable[..., Any]:
        raise NotImplementedError

    assert callable(internals.compiler_of("eager"))
    assert internals.compiler_of(backend) is backend
