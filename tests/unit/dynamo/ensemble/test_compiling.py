"""Graphs compute with the chosen backend what they do in eager, in inference and in training."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import factories
import pytest
import torch
from torch import nn

from dynamometer.common.interfaces.suite import Inputs, LoadedModel
from dynamometer.common.measuring.arm_backends import load_backend
from dynamometer.common.studies.experiment import Context
from dynamometer.dynamo.backends.compilers import ThroughDynamo, WholeModel
from dynamometer.dynamo.ensemble.ensemble import ensemble
from dynamometer.dynamo.ensemble.lookup import Lookup
from dynamometer.dynamo.ensemble.model_key import model_key
from dynamometer.dynamo.ensemble.setting import setting_of
from dynamometer.dynamo.graphs.key import graph_key
from dynamometer.dynamo.graphs.recorder import by_parts, recorder
from dynamometer.results.store.decisions import Decisions
from dynamometer.results.store.graphs.corpus import Corpus
from dynamometer.results.values.cases import NO_BACKEND, Mode
from dynamometer.results.values.choices import Subject, Tuning
from dynamometer.results.values.decisions import Decision
from dynamometer.results.values.graphs import Origin
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torch import fx

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # torch and runtimes warn of themselves
    pytest.mark.usefixtures("known_onnx_functions"),
]
SETTING = "inductor:config.max_fusion_size=8"


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "caches"))
    torch._dynamo.reset()


def model() -> nn.Module:
    """Make a model of one graph."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))


def skip_without(arm: str) -> None:
    """Skip where what an arm needs is not there."""
    if arm.startswith("inductor") and not shutil.which("g++"):
        pytest.skip("there is no C++ compiler")
    for package in getattr(load_backend(arm), "packages", ()):
        pytest.importorskip(package)


def decided(
    path: Path, arm: str, module: nn.Module, x: torch.Tensor, *, dynamic: bool | None = None
) -> Lookup:
    """Decide on an arm for every graph of a model, and give what looks that up."""
    keys = []

    def keep(graph: fx.GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        keys.append(graph_key(graph, inputs))
        return graph.forward

    training = torch.is_grad_enabled()
    backend = by_parts(lambda _: keep) if training else keep
    compiled = torch.compile(module, backend=backend, dynamic=dynamic)
    output = compiled(x)
    if training:
        output.sum().backward()
        module.zero_grad()
    torch._dynamo.reset()
    store = Decisions(path)
    for key in keys:
        store.put(
            Decision(subject=Subject.GRAPH, key=key, label="made up", setting=setting_of("cpu"),
                     arm=arm, tuning_s=1.0, decided_at="2026-01-01", run="made-up")
        )  # fmt: skip
    assert len(keys) == (2 if training else 1)
    return Lookup(Tuning(decisions=str(path)), "cpu", load_backend)


@pytest.mark.slow
@pytest.mark.parametrize("arm", [SETTING, "inductor:freezing", "ov"])
@torch.no_grad()
def test_in_inference_a_graph_is_computed_by_what_was_chosen(arm: str, tmp_path: Path) -> None:
    """At every call."""
    skip_without(arm)
    module, x = model().eval(), torch.randn(2, 8)
    lookup = decided(tmp_path / "decisions.sqlite", arm, module, x)
    compiled = torch.compile(module, backend=lookup.compiler(trains=False))
    for given in (x, x + 1):
        torch.testing.assert_close(compiled(given), module(given))
    assert [(each.arm, each.is_decided) for each in lookup.choices] == [(arm, True)]


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["inductor", "inductor:freezing", "onnxrt"])
def test_in_training_each_part_is_computed_by_what_was_chosen(arm: str, tmp_path: Path) -> None:
    """Its gradients are eager's, after weights were changed as well."""
    skip_without(arm)
    module, x = model(), torch.randn(2, 8)
    lookup = decided(tmp_path / "decisions.sqlite", arm, module, x)
    compiled = torch.compile(module, backend=lookup.compiler(trains=True))
    for _ in range(2):
        found = []
        for call in (module, compiled):
            module.zero_grad()
            call(x).sum().backward()
            found.append([each.grad for each in module.parameters()])
        torch.testing.assert_close(found[0], found[1])
        with torch.no_grad():
            for each in module.parameters():
                each.add_(0.125)
    assert [(each.arm, each.is_decided) for each in lookup.choices] == [(arm, True)] * 2


def fails(graph: fx.GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
    """Compile nothing, as where a compiler is not there any more."""
    del graph, inputs
    msg = "no compiler here"
    raise RuntimeError(msg)


@pytest.mark.parametrize("trains", [False, True])
def test_what_is_compiled_at_its_first_call_stays_eager_if_that_fails(
    tmp_path: Path, *, trains: bool
) -> None:
    """Graphs of AOTAutograd, and those with weights inside; the choice is none any more."""
    module, x, path = model(), torch.randn(2, 8), tmp_path / "decisions.sqlite"
    with torch.set_grad_enabled(trains):
        decided(path, "mine", module, x)

    def load(arm: str) -> ThroughDynamo:
        settings = {} if trains else {"freezing": True}
        return ThroughDynamo(name=arm, compiler=fails, settings=settings)

    lookup = Lookup(Tuning(decisions=str(path)), "cpu", load)
    compiled = torch.compile(module, backend=lookup.compiler(trains=trains))
    with torch.set_grad_enabled(trains):
        with pytest.warns(RuntimeWarning, match="mine, which was chosen for graph .* stays eager"):
            found = compiled(x)
        torch.testing.assert_close(found, module(x))
        torch.testing.assert_close(compiled(2 * x), module(2 * x))
    if trains:
        found.sum().backward()
    assert {(each.arm, each.is_decided) for each in lookup.choices} == {(NO_BACKEND, False)}


class OfOneSize:
    """A module that was compiled as a whole, for inputs of these sizes."""

    def __init__(self, module: nn.Module, inputs: tuple[Any, ...], named: object) -> None:
        """Compile it."""
        del named
        self.module, self.sizes = module, self.of(inputs)

    @staticmethod
    def of(inputs: tuple[Any, ...]) -> list[object]:
        """Return sizes, and numbers."""
        return [getattr(each, "shape", each) for each in inputs]

    def __call__(self, *inputs: Any) -> Any:
        """Refuse others."""
        if self.of(inputs) != self.sizes:
            msg = f"the module was exported for {self.sizes}"
            raise ValueError(msg)
        return self.module(*inputs)


@pytest.mark.parametrize("trains", [False, True])
def test_what_compiles_whole_models_is_asked_for_each_size(tmp_path: Path, *, trains: bool) -> None:
    """Of a graph that is captured once for all of them; each is compiled once."""
    module, path, sizes = model(), tmp_path / "decisions.sqlite", (2, 3, 5, 3, 2)
    made: list[OfOneSize] = []

    def whole(*given: Any) -> OfOneSize:
        made.append(OfOneSize(*given))
        return made[-1]

    with torch.set_grad_enabled(trains):
        decided(path, "mine", module, torch.randn(2, 8), dynamic=True)
        lookup = Lookup(
            Tuning(decisions=str(path)), "cpu", lambda arm: WholeModel(name=arm, compiler=whole)
        )
        compiled = torch.compile(module, backend=lookup.compiler(trains=trains), dynamic=True)
        for size in sizes:
            x = torch.randn(size, 8)
            found = compiled(x)
            torch.testing.assert_close(found, module(x))
            if trains:
                found.sum().backward()
    assert len(made) == len(set(sizes)) * (2 if trains else 1)
    assert {each.arm for each in lookup.choices} == {"mine"}


@torch.no_grad()
def test_what_is_to_be_decided_anew_is_not_looked_up(tmp_path: Path) -> None:
    """A graph without a decision since is eager, whatever was chosen before."""
    module, x, path = model().eval(), torch.randn(2, 8), tmp_path / "decisions.sqlite"
    decided(path, NO_BACKEND, module, x)
    for since, is_decided in ((None, True), ("2025-12-31", True), ("2026-01-02", False)):
        torch._dynamo.reset()
        lookup = Lookup(Tuning(decisions=str(path), since=since), "cpu", load_backend)
        torch.compile(module, backend=lookup.compiler(trains=False))(x)
        assert [each.is_decided for each in lookup.choices] == [is_decided]


class Prepared(nn.Module):
    """A model with a graph that needs no gradients, before one that does."""

    def __init__(self) -> None:
        """Draw weights."""
        super().__init__()
        self.linear = nn.Linear(3, 3)

    @torch.no_grad()
    def prepare(self, x: torch.Tensor) -> torch.Tensor:
        """Break the graph."""
        torch._dynamo.graph_break()
        return x.sin()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute both."""
        return self.linear(self.prepare(x))


def test_graphs_without_gradients_are_found_in_training(tmp_path: Path) -> None:
    """They were recorded as parts, as all are in training."""
    module, x = Prepared(), torch.ones(3)
    recording = recorder(
        Corpus.made(tmp_path / "graphs"), Origin(suite="mine", model="prepared", mode=Mode.TRAINING)
    )
    torch.compile(module, backend=recording.compiler)(x).sum().backward()
    torch._dynamo.reset()
    lookup = Lookup(None, "cpu", load_backend)
    torch.compile(module, backend=lookup.compiler(trains=True))(x).sum().backward()
    recorded = {each.key for each in recording.model.graphs}
    assert len(recorded) == 3
    assert {each.key for each in lookup.choices} == recorded


class Printing(nn.Module):
    """A model of two graphs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Break the graph."""
        x = x.sin()
        torch._dynamo.graph_break()
        return x.cos()


@torch.no_grad()
def test_a_backend_for_the_whole_model_keeps_to_one_graph(tmp_path: Path) -> None:
    """Where that is asked for, it raises as it would by itself."""
    module, x, path = Printing().eval(), torch.ones(3), tmp_path / "decisions.sqlite"
    Decisions(path).put(
        Decision(subject=Subject.MODEL, key=model_key(module, (x,), {}), label="made up",
                 setting=setting_of("cpu"), arm="aot_eager", tuning_s=1.0,
                 decided_at="2026-01-01", run="made-up")
    )  # fmt: skip
    loose, strict = (
        ensemble.reading(Tuning(decisions=str(path)), factories.case(nopython=each), load_backend)
        for each in (False, True)
    )
    torch.testing.assert_close(loose.compile(module, (x,), {})(x), module(x))
    assert [each.arm for each in loose.choices] == ["aot_eager"]
    torch._dynamo.reset()
    with pytest.raises(Exception, match="graph break"):
        strict.compile(module, (x,), {})(x)


@torch.no_grad()
def test_a_decision_for_a_model_is_for_all_calls_of_a_step(tmp_path: Path) -> None:
    """Not for a model that is called otherwise besides."""
    module, x, path = model().eval(), torch.ones(2, 8), tmp_path / "decisions.sqlite"
    second, third = (Inputs(args=(torch.ones(size, 8),)) for size in (3, 4))
    Decisions(path).put(
        Decision(subject=Subject.MODEL, key=model_key(module, (x,), {}, (second,)), label="made up",
                 setting=setting_of("cpu"), arm="aot_eager", tuning_s=1.0,
                 decided_at="2026-01-01", run="made-up")
    )  # fmt: skip
    for others, is_decided in (((second,), True), ((), False), ((third,), False)):
        reading = ensemble.reading(Tuning(decisions=str(path)), factories.case(), load_backend)
        replace(reading, others=others).compile(module, (x,), {})(x)
        assert [each.subject is Subject.MODEL for each in reading.choices] == [is_decided]


@torch.no_grad()
@pytest.mark.parametrize("graph_key", [None, "of a captured graph"])
def test_a_decision_is_found_by_the_key_from_before_any_call(
    graph_key: str | None, tmp_path: Path
) -> None:
    """What calls of eager change since, such as a cache in the model's file, doesn't matter."""
    module, x, path = model().eval(), torch.ones(2, 8), tmp_path / "decisions.sqlite"
    tuning = Tuning(decisions=str(path))
    job = SimpleNamespace(
        spec=None, case=factories.case(), seed=0, cache_dir=str(tmp_path), tuning=tuning
    )
    made = LoadedModel(module=module, args=(x,), graph_key=graph_key)
    suite, device = SimpleNamespace(load=lambda *_: made), SimpleNamespace(torch_device="cpu")
    nothing: Any = None
    context = Context(cast("Any", job), cast("Any", suite), cast("Any", device), nothing, nothing)
    loaded = context.load()
    assert loaded.model_key == model_key(module, (x,), {})
    Decisions(path).put(
        Decision(subject=Subject.MODEL, key=loaded.model_key, label="made up",
                 setting=setting_of("cpu"), arm="aot_eager", tuning_s=1.0,
                 decided_at="2026-01-01", run="made-up")
    )  # fmt: skip
    loaded.module.register_buffer("changed", torch.ones(1))
    for key in (loaded.model_key, None):
        reading = ensemble.reading(tuning, factories.case(), load_backend)
        replace(reading, key=key).compile(module, (x,), {})(x)
        assert [each.subject is Subject.MODEL for each in reading.choices] == [key is not None]


@torch.no_grad()
def test_decisions_count_under_the_allocator_they_were_made_under(tmp_path: Path) -> None:
    """Which is the run's."""
    module, x, path = model().eval(), torch.ones(2, 8), tmp_path / "decisions.sqlite"
    setting = setting_of("cpu", allocator=Allocator.JEMALLOC)
    Decisions(path).put(
        Decision(subject=Subject.MODEL, key=model_key(module, (x,), {}), label="made up",
                 setting=setting, arm="aot_eager", tuning_s=1.0,
                 decided_at="2026-01-01", run="made-up")
    )  # fmt: skip
    for allocator in Allocator:
        reading = ensemble.reading(
            Tuning(decisions=str(path)), factories.case(), load_backend, allocator
        )
        reading.compile(copy.deepcopy(module), (x,), {})(x)
        is_decided = allocator is Allocator.JEMALLOC
        assert [each.subject is Subject.MODEL for each in reading.choices] == [is_decided]


@pytest.mark.parametrize(
    ("arm", "says"),
    [
        ("bogus", "bogus, which was chosen for model .* its graphs are looked up: Unknown"),
        ("inductor:nonsense", "inductor:nonsense, which was chosen for model .* Unknown"),
        ("nomod:x", "nomod:x, which was chosen for model .* UsageError"),
        (
            "os:getcwd",
            "os:getcwd, which was chosen for the model, .* one of its graphs stays eager",
        ),
    ],
)
@torch.no_grad()
def test_a_model_runs_whatever_was_chosen_for_it(arm: str, says: str, tmp_path: Path) -> None:
    """As a graph does: what can't be used any more, or never could, is warned of."""
    module, x, path = model().eval(), torch.ones(2, 8), tmp_path / "decisions.sqlite"
    Decisions(path).put(
        Decision(subject=Subject.MODEL, key=model_key(module, (x,), {}), label="made up",
                 setting=setting_of("cpu"), arm=arm, tuning_s=1.0,
                 decided_at="2026-01-01", run="made-up")
    )  # fmt: skip
    reading = ensemble.reading(Tuning(decisions=str(path)), factories.case(), load_backend)
    with pytest.warns(RuntimeWarning, match=says):
        output = reading.compile(module, (x,), {})(x)
    torch.testing.assert_close(output, module(x))
    is_loaded = arm == "os:getcwd"
    assert [(each.subject, each.is_decided) for each in reading.choices] == [
        (Subject.MODEL, True) if is_loaded else (Subject.GRAPH, False)
    ]
