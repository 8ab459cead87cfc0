"""What torch doesn't promise is as this project takes it to be; by name, where it isn't."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dynamometer.dynamo import capture, internals, state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ROOT = Path(internals.__file__).resolve().parent.parent
FOLDERS = ("common", "dynamo", "models", "results")
ALLOWED = {
    "dynamo/internals.py": {"torch._dynamo", "torch._C", "torch._guards"},
    "dynamo/coverage.py": {"torch.utils._python_dispatch"},
    "dynamo/inductor.py": {"torch._inductor"},
    "dynamo/state.py": {"torch._dynamo", "torch._inductor"},
    "models/microbench.py": {"torch._check"},
}
"""What each file needs beyond what torch documents; configuration is dynamo/state.py's."""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Leave nothing compiled to other tests."""
    state.forget_compiled()
    yield
    state.forget_compiled()


def private(path: Path) -> set[str]:
    """Name the private parts of torch a file imports or reaches into.

    But for `torch.utils._pytree`, which much of what is written for torch relies on.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
    private = {name for name in found if re.match(r"torch\..*\._(?!_)|torch\._(?!_)", name)}
    return {name for name in private if not name.startswith("torch.utils._pytree")}


def test_private_parts_of_torch_are_in_one_place() -> None:
    """Where a file needs others, it is said here which."""
    for folder in FOLDERS:
        for path in (ROOT / folder).glob("*.py"):
            name = str(path.relative_to(ROOT))
            for used in private(path):
                allowed = ALLOWED.get(name, set())
                assert any(f"{used}.".startswith(f"{each}.") for each in allowed), (name, used)


def test_compilations_are_noted() -> None:
    """Frames, guards, their latency, breaks with a line, skipped frames and recompiles."""

    def function(x: torch.Tensor, times: int) -> torch.Tensor:
        x = x.sin() * times
        torch._dynamo.graph_break()  # here
        return x.cos()

    log = internals.CompileLog.start()
    compiled = internals.optimize("eager")(function)
    compiled(torch.ones(3), 2)
    found = log.read()
    assert (found.frames, found.frames_ok) == (2, 2)
    assert found.guards > 0
    assert found.guards_s is not None
    (seen,) = found.breaks
    assert (seen.file, seen.function) == (__file__, "function")
    assert Path(__file__).read_text().splitlines()[seen.line - 1].endswith("# here")
    assert (found.recompiles, found.recompile_limit_hits) == ((), 0)
    compiled(torch.ones(3), 3)
    (again, *_) = log.read().recompiles
    assert again.function == "function"
    assert "times" in again.guard


def test_backends_that_fail_leave_a_reason() -> None:
    """Frames they were given are skipped."""

    def broken(graph: Any, inputs: Any) -> Any:
        raise NotImplementedError

    log = internals.CompileLog.start()
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
    log = internals.CompileLog.start()

    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    compiled = internals.optimize("eager")(inner)
    internals.leave_alone(lambda x: compiled(x) + 1)(torch.ones(2))
    assert log.read().frames_ok == 1


def test_what_is_compiled_too_often_is_noted() -> None:
    """Dynamo gives up on a frame after some recompiles."""
    log = internals.CompileLog.start()
    compiled = internals.optimize("eager")(lambda x, name: x.sin() if name else x)
    for name in "abcdefghijkl":
        compiled(torch.ones(2), name)
    found = log.read()
    assert found.recompile_limit_hits >= 1
    assert len(found.recompiles) >= 5


def test_compilations_are_counted_where_all_must_be_one_graph() -> None:
    """Dynamo's counter of frames stands still then."""
    compiled = internals.optimize("eager", nopython=True)(lambda x: x.sin())
    seen = [capture.frames_seen()]
    for inputs in (torch.ones(2), torch.ones(2, dtype=torch.float64), torch.ones(2)):
        compiled(inputs)
        seen.append(capture.frames_seen())
    assert seen[0] < seen[1] < seen[2] == seen[3]
