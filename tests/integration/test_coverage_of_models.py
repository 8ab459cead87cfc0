"""Counts of real models, against counts that are made another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from hand_built import EagerCount
from torch.fx.experimental.proxy_tensor import make_fx

from dynamometer.common import registry
from dynamometer.common.command_line import cli
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning.cases import build_cases
from dynamometer.common.planning.selection import Selection, select
from dynamometer.common.studies.coverage.summary import coverage_of
from dynamometer.dynamo import state
from dynamometer.dynamo.capture import coverage
from dynamometer.results.store import store
from dynamometer.results.values.cases import Scale

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.common.interfaces.suite import LoadedModel

MODELS = {
    "torchbench": ("alexnet", "dcgan", "hf_DistilBert", "mnasnet1_0", "resnet18", "squeezenet1_1"),
    "huggingface": ("ElectraForCausalLM", "T5Small"),
    "timm_models": ("lcnet_050", "regnety_002"),
}
"""Each is one graph."""

MASKS = {"hf_DistilBert": 14, "ElectraForCausalLM": 14, "T5Small": 34}
"""Operators of attention masks, which under torch 2.11 transformers makes where it is traced."""


def load(suite_name: str, model: str) -> LoadedModel:
    """Build a model, as a run would."""
    suite = registry.suite(suite_name).open({})
    (spec,) = select(suite.specs(), Selection(only=(model,)))
    (case,) = build_cases([spec], Workload(arms=(), scale=Scale.TINY))
    state.seed_everything(0)
    loaded: LoadedModel = suite.load(spec, case)
    loaded.module.eval()
    return loaded


@pytest.mark.parametrize(
    ("suite", "model"), [(suite, model) for suite, names in MODELS.items() for model in names]
)
def test_counts_are_those_of_tracing_and_of_eager(suite: str, model: str) -> None:
    """A graph has as many operators as `make_fx` sees, a step as many as eager dispatches."""
    loaded = load(suite, model)
    args, kwargs = loaded.args, dict(loaded.kwargs)

    def forward(*args: Any) -> Any:
        return torch.utils._pytree.tree_leaves(loaded.module(*args, **kwargs))

    with torch.no_grad():
        with EagerCount() as eager:  # type: ignore[no-untyped-call]  # torch's
            loaded.module(*args, **kwargs)
        traced = make_fx(forward)(*args)
        capture = coverage.Capture.of(loaded.module, lambda: None)
        found = coverage.measure(capture, lambda: capture.compiled(*args, **kwargs))
    state.forget_compiled()
    nodes = [
        node for node in traced.graph.nodes if isinstance(node.target, torch._ops.OpOverload)
    ]  # and not what takes a result out of a tuple
    assert len(found.graphs) == 1
    masks = MASKS.get(model, 0) if torch.__version__.startswith("2.11.") else 0
    assert (found.captured_ops, found.total_ops) == (len(nodes) + masks, eager.total + masks)
    assert found.is_full_graph


@pytest.mark.parametrize(
    ("suite", "model"),
    [("torchbench", "dcgan"), ("torchbench", "alexnet"), ("timm_models", "lcnet_050")],
)
def test_counts_of_training_are_those_of_eager(suite: str, model: str) -> None:
    """Forward and backward, without a loss, and without adding up the parameters' gradients."""
    loaded = load(suite, model)
    module, args = loaded.module.train(), loaded.args
    gradient = torch.ones_like(module(*args))
    with EagerCount() as eager:  # type: ignore[no-untyped-call]  # torch's
        module(*args).backward(gradient)
    capture = coverage.Capture.of(module, lambda: None)
    found = coverage.measure(capture, lambda: capture.compiled(*args).backward(gradient))
    state.forget_compiled()
    assert (found.captured_ops, found.total_ops) == (eager.total, eager.total)
    assert found.is_full_graph


def test_a_run_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Through real workers: lines, a table of reasons, a CSV with the dashboards' columns."""
    words = ["run", "torchbench", "--coverage", "--scale", "tiny", "--only", "resnet18", "--only",
             "microbench_unbacked_tolist_sum", "--output-dir", str(tmp_path / "runs")]  # fmt: skip
    assert cli.main(None, words) == 0
    out = capsys.readouterr().out
    assert "1/  1 frames (+ 0),   1 graphs    1 calls" in out
    assert "models: 2 of 2 counted" in out
    assert "microbench.py:30" in out
    (directory,) = (tmp_path / "runs").iterdir()
    records = {each.case.model: each for each in store.read_records(directory)}
    found = coverage_of(records["resnet18"])
    assert found is not None
    assert found.is_full_graph
    assert records["resnet18"].command.startswith("dynamometer run torchbench --only resnet18")
    assert "--coverage" in records["resnet18"].command
    (table,) = directory.glob("*_coverage.csv")
    header = table.read_text().splitlines()[0]
    assert header.startswith(
        "dev,name,batch_size,graphs,graph_calls,captured_ops,total_ops,pct_ops,pct_time,"
    )


@pytest.mark.parametrize("word", ["--accuracy", "--backend=inductor", "--nopython", "--rigorous"])
def test_what_counting_does_not_go_with(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the same whatever the backend, and done once."""
    assert cli.main(None, ["run", "torchbench", "--coverage", "--only", "alexnet", word]) == 2
    assert f"leave out {word.partition('=')[0]}" in capsys.readouterr().err


def test_a_model_that_is_not_one_graph_fails_where_it_must_be(tmp_path: Path) -> None:
    """`--nopython`: with the reason, the line and a hint; one that is passes."""
    words = ["run", "torchbench", "--nopython", "--accuracy", "--backend", "eager", "--scale",
             "tiny", "--only", "resnet18", "--only", "tts_angular",
             "--output-dir", str(tmp_path / "runs")]  # fmt: skip
    assert cli.main(None, words) == 0
    (directory,) = (tmp_path / "runs").iterdir()
    records = {each.case.model: each for each in store.read_records(directory)}
    assert records["resnet18"].outcome.status == "pass"
    (capture,) = [each.capture for each in records["resnet18"].arms if each.capture]
    assert (capture.frames, capture.frames_ok, capture.graphs) == (1, 1, 1)
    failed = records["tts_angular"].outcome
    assert failed.status == "fail"
    assert failed.reason is not None
    assert "(speaker_encoder.py:33)" in failed.reason
    assert "allow_rnn" in failed.reason
    assert "--nopython" in records["resnet18"].command
