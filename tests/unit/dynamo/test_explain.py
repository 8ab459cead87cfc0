"""What Dynamo makes of functions of which that is known."""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import hand_built
import pytest
import torch
from torch import nn

from dynamometer.common.command_line import cli
from dynamometer.dynamo import state
from dynamometer.dynamo.capture import compilations
from dynamometer.dynamo.capture.function import FunctionModule
from dynamometer.dynamo.explain import explain
from dynamometer.dynamo.private import private
from dynamometer.results.reports import explanation_page
from dynamometer.results.values.cases import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.results.values.explanation import Explanation

X = torch.ones(2, 3)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Leave nothing compiled to other tests."""
    yield
    state.forget_compiled()


def scaled(x: torch.Tensor, times: int) -> torch.Tensor:
    """Two operators, one of which depends on a number."""
    return x.sin() * times


def branches(x: torch.Tensor) -> torch.Tensor:
    """A branch that depends on data."""
    x = x.sin()
    if x.sum() > 0:  # ends a graph
        return x.exp()
    return x.cos()


def words(found: Explanation) -> list[str]:
    """Return the guards of all frames."""
    return [guard.words for frame in found.frames for guard in frame.guards]


def test_a_graph_is_a_table() -> None:
    """Every node, with what it gives; inputs by the name they have in the source."""
    found = explain("scaled", scaled, [((X, 2), {})])
    (frame,) = found.frames
    (graph,) = frame.graphs
    assert [(each.kind, each.target) for each in graph] == [
        ("placeholder", "x"), ("call_method", "sin"), ("call_function", "operator.mul"),
        ("output", ""),
    ]  # fmt: skip
    assert [each.result for each in graph[:3]] == ["float32[2, 3]"] * 3
    assert graph[2].inputs == "sin, 2"
    assert (frame.function, frame.line) == ("scaled", scaled.__code__.co_firstlineno)
    assert (found.breaks, found.recompiles, found.left_alone) == ((), (), ())


def test_guards_are_those_that_are_checked() -> None:
    """The tensor's properties, and the number's value."""
    found = explain("scaled", scaled, [((X, 2), {})])
    assert "times == 2" in words(found)
    assert "x is a float32 tensor of size [2, 3], stride [3, 1], without gradient" in words(found)


def test_guards_name_lines_of_the_users_code() -> None:
    """And not those of torch that made them, nor what torch says beside."""
    found = explain("branches", branches, [((torch.ones(3),), {}), ((torch.ones(4),), {})])
    places = {guard.place for frame in found.frames for guard in frame.guards} - {None}
    assert places
    for each in places:
        assert re.fullmatch(rf"{Path(__file__).name}:\d+ in \w*branches\w*", each or "")


def test_bytecode_is_shown_beside_what_runs_instead() -> None:
    """The compiled graph is called by a name without anything random, and no address is left."""
    found = explain("scaled", scaled, [((X, 2), {})])
    (frame,) = found.frames
    assert any(each.argument == "sin" or "sin" in each.argument for each in frame.original)
    rewritten = " ".join(each.argument for each in frame.rewritten)
    assert re.search(r"__compiled_fn_\d+\b(?!_)", rewritten)
    assert " at 0x" not in rewritten


def test_a_recompile_says_what_no_longer_held() -> None:
    """Each compilation is a frame of its own."""
    found = explain("scaled", scaled, [((X, 2), {}), ((X, 3), {})])
    assert len(found.frames) == 2
    (again,) = found.recompiles
    assert "times" in again.guard
    assert "because: times == 2" in explanation_page.text(found)


def test_a_break_has_its_line_and_advice() -> None:
    """And lines of the source around it; what follows is a frame of its own, for each branch."""
    found = explain("branches", branches, [((X,), {}), ((-X,), {})])
    (one,) = found.breaks
    assert "branch" in (one.explanation or "")
    assert one.advice
    assert "# ends a graph" in dict(one.excerpt)[one.line]
    assert found.frames[0].function == "branches"
    assert len(found.frames) == 3
    assert [explanation_page.title(frame) for frame in found.frames[1:]] == [
        f"the rest of branches, from line {one.line}"
    ] * 2


def test_each_reason_of_a_line_is_a_break() -> None:
    """Who follows the advice on the first would still have the second."""

    def twice(x: torch.Tensor) -> torch.Tensor:
        print(x.sum().item(), end="")
        return x.cos()

    found = explain("twice", twice, [((torch.ones(2),), {})])
    assert [each.reason.split()[0] for each in found.breaks] == ["Unsupported", "Failed"]


def test_a_generator_is_run() -> None:
    """It computes as somebody asks, and nobody did."""
    ran: list[int] = []

    def each(x: torch.Tensor) -> Iterator[torch.Tensor]:
        for number in range(2):
            ran.append(number)
            yield x.sin()

    explain("each", each, [((torch.ones(2),), {})])
    assert ran == [0, 1]


def test_modules_name_their_parameters() -> None:
    """As a user would."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x)

    found = explain("Net", Net(), [((X,), {})])
    assert any(each.startswith("self.fc.weight is a float32 Parameter") for each in words(found))


def test_a_function_in_a_module_is_explained_itself() -> None:
    """Not the module around it."""
    found = explain("scaled", FunctionModule(scaled), [((X, 2), {})])
    assert [frame.function for frame in found.frames] == ["scaled"]


def test_sizes_that_vary_are_symbols() -> None:
    """In tables and guards."""
    with state.running(Mode.INFERENCE, None, dynamic=True):
        found = explain("scaled", scaled, [((torch.ones(4, 5), 2), {})])
    results = [each.result for each in found.frames[0].graphs[0]]
    assert any(re.fullmatch(r"float32\[s\d+, s\d+\]", each) for each in results)


MODELS = [
    each
    for each in vars(hand_built).values()
    if inspect.isclass(each) and issubclass(each, nn.Module)
]


@pytest.mark.filterwarnings("ignore:.*Function'> should not be instantiated")  # Dynamo does
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")  # of a checkpoint
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_hand_built_model_can_be_shown(model: type[nn.Module]) -> None:
    """As text and as a page; every break and every function that is left alone in both."""
    found = explain(model.__name__, model(), [((torch.ones(2, 4),), {})])
    shown, page = explanation_page.text(found), explanation_page.page(found)
    assert shown.count("GRAPH BREAK") == page.count("<h2>Graph break") == len(found.breaks)
    left = len(found.left_alone)
    assert shown.count("LEFT AS IT IS") == page.count("<h2>Left as it is") == left
    assert "<script" not in page


def test_a_function_that_is_left_alone_shows_where_dynamo_stopped() -> None:
    """With its source, and in the summary."""
    found = explain("LoopBreaks", hand_built.LoopBreaks(), [((torch.ones(2, 4),), {})])
    shown = explanation_page.text(found)
    assert re.search(r"LEFT AS IT IS: forward \(hand_built.py:\d+\)", shown)
    assert re.search(r"^  > +\d+ \|             print\(end=\"\"\)", shown, re.MULTILINE)
    assert re.search(r"\d functions? left alone", explanation_page.summary(found)[1])


def test_a_page_escapes_what_it_shows() -> None:
    """Reasons and source may hold anything."""
    found = explain("<b>", scaled, [((X, 2), {})])
    assert "<b>" not in explanation_page.page(found)
    assert "&lt;b&gt;" in explanation_page.page(found)


FILE = """
import torch

def build():
    print("said by the model")
    def double(x):
        return x * 2
    return double, [(torch.ones(3),), (torch.ones(4),)]

def fails():
    raise RuntimeError("no weights here")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A user's file."""
    path = tmp_path / f"mine_{tmp_path.name}.py"
    path.write_text(FILE)
    return path


def test_the_command(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text unless asked otherwise; one colon or two; a file in place of standard output."""
    assert cli.main(None, ["explain", f"{file}::build"]) == 0
    assert "2 calls, 2 frames compiled, 2 graphs, 0 graph breaks, 1 recompile" in (
        capsys.readouterr().out
    )
    assert cli.main(None, ["explain", f"{file}:build", "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["target"] == "build"
    assert "said by the model" in captured.err  # and is no part of what is explained
    page = file.with_suffix(".html")
    words = ["explain", f"{file}::build", "--format", "html", "-o", str(page)]
    assert cli.main(None, words) == 0
    assert page.read_text().startswith("<!doctype html>")
    assert cli.main(None, ["explain", "torchbench/lennard_jones"]) == 0
    assert "lennard_jones" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "code", "says"),
    [
        ("torchbench/", 2, "neither SUITE/MODEL nor FILE.py::NAME"),
        ("nothing", 2, "neither SUITE/MODEL nor FILE.py::NAME"),
        ("nowhere.py::x", 2, "nowhere.py"),
        ("torchbench/resnet", 2, "unknown model 'resnet'; did you mean"),
        ("torchbanch/resnet18", 2, "unknown suite 'torchbanch'"),
        ("{file}", 2, "holds several models: add one of build, fails"),
        ("{file}::other", 2, "it has: build, fails"),
        ("{file}::fails", 2, "as it fails: RuntimeError: no weights here"),
    ],
)
def test_what_cannot_be_explained(
    file: Path, capsys: pytest.CaptureFixture[str], target: str, code: int, says: str
) -> None:
    """The error names the target and what to do."""
    assert cli.main(None, ["explain", target.format(file=file)]) == code
    assert says in capsys.readouterr().err


def test_what_is_skipped_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words, not with the name of a class of ours."""
    file = tmp_path / "skipped.py"
    text = "from dynamometer.common.interfaces.outcome import SkippedError\n"
    file.write_text(f"{text}def skips(): raise SkippedError('not here')\n")
    assert cli.main(None, ["explain", f"{file}::skips"]) == 2
    assert capsys.readouterr().err.endswith("::skips can't be explained: not here\n")


CORPUS = """
import pathlib, torch
pathlib.Path({marker!r}).touch()
class Net(torch.nn.ReLU): ...
X = lambda: ([torch.ones(2)], {{}})
TESTCASES = [{entries}]
"""


@pytest.mark.parametrize("count", [1, 2])
def test_code_that_nobody_has_read_is_not_run_here(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says what runs it contained, of however many test cases."""
    file, marker = tmp_path / "test_net.py", tmp_path / "marker"
    entries = "(Net, lambda: ([], {}), X)," * count
    file.write_text(CORPUS.format(marker=str(marker), entries=entries))
    for target, instead in (
        (str(file), f"{file} --parity"),
        ("parity/net.Net", "DIR --parity --only net.Net"),
    ):
        assert cli.main(None, ["explain", target]) == 2
        assert "contained workers alone" in (said := capsys.readouterr().err)
        assert f"`dynamometer run {instead}`" in said
    assert not marker.exists()


DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="another torch says otherwise"
)
def test_the_walkthrough_is_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Bytecode included, where Python is the one it was made with."""
    target = DOCS / "examples" / "walkthrough.py"
    assert cli.main(None, ["explain", f"{target}::walkthrough"]) == 0
    (shown,) = re.findall(r"```text\n(.*?)```", (DOCS / "walkthrough.md").read_text(), re.DOTALL)
    said = capsys.readouterr().out
    if sys.version_info[:2] == (3, 11):
        number = re.compile(r"_\d+\b *")  # Dynamo's names are numbered on from those before
        assert number.sub("_", said) == number.sub("_", shown)
    assert without_bytecode(said) == without_bytecode(shown)


def without_bytecode(text: str) -> list[str]:
    """Leave out the two columns of bytecode."""
    listing = re.compile(r"  .{48} \||  .{4} +\d+ [A-Z_]+")
    return [line for line in text.splitlines() if not listing.match(line)]


def test_training_calls_backward() -> None:
    """The loss that is compiled is one that gradients come from."""
    weight = torch.ones(3, requires_grad=True)
    found = explain(
        "loss", lambda x: (x * weight).sum(), [((torch.ones(3),), {})], is_training=True
    )
    assert len(found.frames) == 1
    assert weight.grad is not None


def test_torch_keeps_as_many_compilations_as_before() -> None:
    """What is set to read all of them is put back."""
    before = private("torch._dynamo.utils._compilation_metrics").maxlen
    with compilations.keeping_all():
        assert private("torch._dynamo.utils._compilation_metrics").maxlen > before
        explain("scaled", scaled, [((X, 2), {})])
    assert private("torch._dynamo.utils._compilation_metrics").maxlen == before
