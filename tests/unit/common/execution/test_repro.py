"""The command in a record, read back by the very command line it is meant for."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import graph_files
import pytest

from dynamometer.common import registry
from dynamometer.common.command_line import begin, cli
from dynamometer.common.execution.repro import single_case_command
from dynamometer.common.interfaces.option import defaults
from dynamometer.common.studies.study import skip_reason
from dynamometer.models.suites.tables import TableSuite
from dynamometer.results.store.graphs.corpus import Corpus

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamometer.results.values.records import Manifest

SKIPPED = next(spec.name for spec in TableSuite("torchbench").specs() if spec.is_never_run)


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Manifest]:
    """Plan what `./torchbench.py`, or the command, with some words would run, and stop there."""
    kept: list[Manifest] = []

    def keep(manifest: Manifest, *_: object, **__: object) -> int:
        kept.append(manifest)
        return 0

    monkeypatch.setattr(begin, "execute", keep)
    monkeypatch.setattr("sys.argv", ["./torchbench.py"])
    monkeypatch.chdir(tmp_path)

    def plan(words: list[str], suite: str | None = "torchbench") -> Manifest:
        assert cli.main(suite, words) == 0
        return kept.pop()

    return plan


@pytest.mark.parametrize(
    "words",
    [
        "-k resnet",
        "--only resnet18 --backend eager",
        "--only resnet18 --backend eager --backend aot_eager --speedup-ts",
        "--only resnet18 --speedup-ts",
        "--only resnet18 --backend ts --backend eager",
        "--only resnet18 --backend onnx --speedup-ts --speedup-export --speedup-openvino",
        "--only resnet18 --speedup-trt --speedup-onnx --backend export",
        "--only resnet18 --backend inductor:max-autotune,freezing -c no-cudagraphs --speedup-onnx",
        "--only resnet18 --backend inductor -c max_autotune=True --freezing --cpp-wrapper",
        "--only resnet18 --backend openvino:precision=bf16 --backend aot_ts",
        "--only resnet18 --overhead",
        "--only resnet18 --coverage --dynamic-shapes",
        "--only resnet18 --sweep-sizes --backend eager",
        "--only resnet18 --sweep-sizes --backend ts",
        "--only resnet18 --parity --backend onnx",
        "--only resnet18 --parity --backend inductor --backend export --backend aot_inductor",
        "--only resnet18 --target 0.02",
        "--only resnet18 --dynamic-batch-only --nopython",
        "--only resnet18 --raise-backend-errors",
        "--only resnet18 --backend json:attribute",
        "--only resnet18 --scale tiny",
        "--only resnet18 --batch-size 3",
        "--only resnet18 -r 7 -n 25 --seed 12",
        "--only resnet18 --rigorous --target 0.005 --max-seconds 90",
        "--only resnet18 --cold",
        "--only resnet18 --warm -r 3",
        "--only resnet18 -t 2 --timeout 12.5",
        "--only resnet18 --timeout 1234567",
        "--only resnet18 --allocator stock",
        "--only resnet18 --spawn",
        "--only resnet18 --dynamic-shapes",
        "--only resnet18 --dynamic-shapes --scale tiny --batch-size 1",
        "--only dlrm --dynamic-shapes --scale tiny",
        "--only basic_gnn_gcn --dynamic-shapes",
        "--only resnet18 --training --compile-optimizer",
        "--only resnet18 --find-batch-sizes",
        "--only resnet18 --training --bfloat16",
        "--only resnet18 --training --scale tiny --batch-size 1",
        "--only resnet18 --amp --channels-last",
        "--only resnet18 --accuracy --float16",
        "--only resnet18 --memory-limit 3G",
        "--quick",
        f"--only {SKIPPED} --no-skip",
    ],
)
def test_the_command_repeats_the_case(planned: Callable[[list[str]], Manifest], words: str) -> None:
    """Given to the program, a record's command plans the same case under the same protocol."""
    manifest = planned(shlex.split(words))
    case = manifest.plan.cases[0]
    interpreter, script, *repeated = shlex.split(single_case_command(manifest, case))
    assert interpreter == sys.executable
    assert Path(script) == Path("torchbench.py").resolve()
    again = planned(repeated).plan
    assert again.cases == (case,)
    assert again.models == (manifest.plan.spec_of(case),)
    for name in (
        "protocol", "timeout_s", "memory_limit_bytes", "seed", "threads", "experiments", "no_skip",
        "executor", "raise_backend_errors", "suite", "suite_options",
    ):  # fmt: skip
        assert getattr(again, name) == getattr(manifest.plan, name), name
    study = registry.study(again.study)
    assert skip_reason(study, again, case) == skip_reason(study, manifest.plan, case)


@pytest.mark.parametrize("index", [0, 1])
def test_the_command_of_a_case_with_overrides_repeats_it_alone(
    planned: Callable[[list[str]], Manifest], index: int
) -> None:
    """Of the two cases of a model, with and without, each has a command for itself."""
    words = "--only resnet18 --disable-frame torch.nn.functional:relu"
    manifest = planned(shlex.split(words))
    case = manifest.plan.cases[index]
    _, _, *repeated = shlex.split(single_case_command(manifest, case))
    assert planned(repeated).plan.cases == (case,)


@pytest.mark.parametrize("weights", ["--offline-weights", "--hub-weights"])
def test_the_command_names_the_checkout_and_its_weights(
    planned: Callable[[list[str]], Manifest], tmp_path: Path, weights: str
) -> None:
    """A case of a checkout is repeated with the same checkout and the same kind of weights."""
    model = tmp_path / "checkout" / "torchbenchmark" / "models" / "alexnet"
    model.mkdir(parents=True)
    (model / "__init__.py").touch()
    manifest = planned(["--torchbench-root", str(tmp_path / "checkout"), weights])
    _, _, *repeated = shlex.split(single_case_command(manifest, manifest.plan.cases[0]))
    assert str(tmp_path / "checkout") in repeated
    assert weights in repeated


def test_the_command_of_a_skipped_case_runs_it() -> None:
    """Whoever wants to see why a model is skipped gets a command that tries it."""
    plan = factories.plan(factories.model_spec("a", skipped="broken"))
    command = single_case_command(factories.manifest(plan), plan.cases[0])
    assert "--no-skip" in command


def test_the_command_starts_with_what_was_typed() -> None:
    """A run of the `dynamometer` command is repeated by it, words kept apart as a shell needs."""
    plan = factories.plan(factories.model_spec("a model"))
    manifest = factories.manifest(plan, program="'/my dir/dynamometer' run timm")
    command = single_case_command(manifest, plan.cases[0])
    assert command.startswith("'/my dir/dynamometer' run timm --only 'a model' --backend inductor")


@pytest.mark.parametrize("backends", ["onnx", "eager openvino ov"])
def test_the_command_of_a_graph_names_all_its_candidates(
    planned: Callable[..., Manifest], tmp_path: Path, backends: str
) -> None:
    """Those too that have an option of their own, which `--tune` excludes."""
    corpus = Corpus.made(tmp_path / "corpus")
    graph_files.write_graph(corpus.path(graph_files.key(1)))
    named = [word for each in backends.split() for word in ("--backend", each)]
    manifest = planned(["run", str(corpus.folder), "--tune", *named], suite=None)
    (case,) = manifest.plan.cases
    _, *repeated = shlex.split(single_case_command(manifest, case))
    again = planned(repeated, suite=None).plan
    assert (again.cases, again.protocol) == ((case,), manifest.plan.protocol)
    assert case.arms[1:] == tuple(backends.split())


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--backend onnx",
        "--performance --backend inductor -r 2",
        "--overhead",
        "--coverage",
        "--accuracy --backend aot_eager",
    ],
)
def test_the_command_of_a_test_case_asks_the_same(
    planned: Callable[..., Manifest], tmp_path: Path, words: str
) -> None:
    """Of a corpus of modules something else is usually asked than of other suites."""
    (tmp_path / "test_net.py").write_text(
        "class A: ...\n\nTESTCASES = [\n    (A, lambda: ([], {}), lambda: ([], {})),\n]\n"
    )
    manifest = planned([str(tmp_path), *words.split()], suite="parity")
    (case,) = manifest.plan.cases
    _, _, *repeated = shlex.split(single_case_command(manifest, case))
    again = planned(repeated, suite="parity").plan
    assert again.cases == (case,)
    assert again.experiments == manifest.plan.experiments
    assert again.protocol == manifest.plan.protocol


@pytest.mark.parametrize(
    ("study", "suite", "is_whole"),
    [
        ("recording", "torchbench", True),
        ("tuning", "torchbench", True),
        ("tuning", "corpus", False),
        ("in_pairs", "torchbench", True),
        ("coverage", "torchbench", False),
    ],
)
def test_what_no_option_asks_for_is_repeated_as_a_whole(
    study: str, suite: str, *, is_whole: bool
) -> None:
    """Models are decided on, and calibrations measured, by a command that says nothing of cases."""
    experiments = registry.study(study).experiments(defaults(()))
    manifest = factories.manifest(factories.plan(suite=suite, experiments=experiments))
    command = single_case_command(manifest, manifest.plan.cases[0])
    assert (command == manifest.command) is is_whole
