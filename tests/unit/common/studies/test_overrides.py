"""Telling Dynamo how to treat functions: what is asked for, and what it changes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

from dynamometer.common.command_line import cli
from dynamometer.common.execution.repro import single_case_command
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.planning.cases import build_cases
from dynamometer.dynamo import state
from dynamometer.dynamo.capture.overrides import apply_overrides
from dynamometer.dynamo.explain import explain
from dynamometer.results.reports import overrides_report
from dynamometer.results.statistics.summary import summarize_cases
from dynamometer.results.store import store
from dynamometer.results.values.cases import BASELINE, NO_OVERRIDES, Overrides
from dynamometer.results.values.records import CaptureStats, Status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = """
import torch

def noisy(x):
    print(end="")
    return x.sin()

def quiet(x):
    return x.sin()

class Layer:
    @staticmethod
    def norm(x):
        return x / 2

LAYER = Layer()

def step(x):
    return LAYER.norm(noisy(x).cos()).tanh()

def model():
    return step, torch.ones(3)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of the user's, whose step ends a graph by printing."""
    name = f"mine_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)
    state.forget_compiled()


def graphs(module: str) -> tuple[int, int]:
    """Count graphs and breaks of the step."""
    import importlib

    import torch

    found = explain("step", importlib.import_module(module).step, [((torch.ones(3),), {})])
    return found.graphs, len(found.breaks)


def test_a_substitute_is_captured_in_place(module: str) -> None:
    """And the break is gone."""
    before = graphs(module)
    apply_overrides(Overrides(substitute=((f"{module}:noisy", f"{module}:quiet"),)))
    assert before[1] == 1
    assert graphs(module) == (1, 0)


def test_a_function_that_is_allowed_is_one_operator(module: str) -> None:
    """Dynamo doesn't look inside."""
    apply_overrides(Overrides(allow_in_graph=(f"{module}:noisy",)))
    assert graphs(module) == (1, 0)


def test_a_disabled_method_ends_a_graph(module: str) -> None:
    """It is left to Python."""
    before = graphs(module)
    apply_overrides(Overrides(disable=(f"{module}:Layer.norm",)))
    assert graphs(module)[1] == before[1] + 1


@pytest.mark.parametrize("name", ["{}:nothing", "{}:Layer.nothing", "no_such_module:f"])
def test_a_name_that_is_none_is_named(module: str, name: str) -> None:
    """Before anything is compiled."""
    name = name.format(module)
    with pytest.raises(LookupError, match=f"there is no function {name}"):
        apply_overrides(Overrides(disable=(name,)))


def test_each_model_is_run_with_and_without() -> None:
    """With what its table says where that is asked for, and with what the command line says."""
    own = Overrides(disable=("a:b",))
    specs = [factories.model_spec("plain"), factories.model_spec("told", overrides=own)]
    asked = Overrides(allow_in_graph=("c:d",))
    plain = build_cases(specs, Workload(arms=("eager",)))
    assert [case.overrides for case in plain] == [NO_OVERRIDES] * 2
    told = build_cases(specs, Workload(arms=("eager",), model_overrides=True))
    assert [(case.label, case.overrides) for case in told] == [
        ("plain", NO_OVERRIDES), ("told", NO_OVERRIDES), ("told +overrides", own),
    ]  # fmt: skip
    both = build_cases(specs, Workload(arms=("eager",), overrides=asked, model_overrides=True))
    assert [case.overrides for case in both] == [NO_OVERRIDES, asked, NO_OVERRIDES, own.and_(asked)]
    assert len({case.id for case in both}) == len(both)


def test_the_command_of_a_case_repeats_its_controls() -> None:
    """In full."""
    overrides = Overrides(allow_in_graph=("a:b",), disable=("c:D.e",), substitute=(("f:g", "h:i"),))
    manifest = factories.manifest(factories.plan(factories.model_spec("a")))
    (case,) = manifest.plan.cases
    command = single_case_command(manifest, msgspec.structs.replace(case, overrides=overrides))
    assert "--allow-in-graph a:b --disable-frame c:D.e --substitute f:g=h:i" in command


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--allow-in-graph", "torch.add"], "'torch.add' names no function"),
        (["--substitute", "a:b"], "--substitute a:b: give MODULE:FUNCTION=MODULE:FUNCTION"),
        (["--disable-frame", ":f"], "':f' names no function"),
        (["--overrides", "--find-batch-sizes"], "leave out --overrides"),
    ],
)
def test_what_names_no_function_is_refused(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything runs."""
    assert cli.main("torchbench", ["--only", "resnet18", *words]) == 2
    assert says in capsys.readouterr().err


def test_what_changed_is_said_beside_what_was() -> None:
    """For each arm; once where nothing did."""
    usual = factories.case("resnet18", (BASELINE, "inductor"))
    told = msgspec.structs.replace(usual, overrides=Overrides(disable=("a:b",)))
    records = []
    for case, seconds, breaks in ((usual, 0.005, 2), (told, 0.004, 0)):
        seen = CaptureStats(frames=1, frames_ok=1, graphs=1 + breaks, ops=9, breaks={"x": breaks})
        record = factories.measured_record(case, seconds={BASELINE: 0.01, "inductor": seconds})
        arms = tuple(msgspec.structs.replace(arm, capture=seen) for arm in record.arms)
        records.append(msgspec.structs.replace(record, arms=arms))
    cases = summarize_cases(records)
    assert overrides_report.without_overrides(cases) == cases[:1]
    _, title, _, _, row = overrides_report.lines(cases)
    assert title == "changed by --disable-frame a:b:"
    assert row.split()[:9] == ["resnet18", "inductor", "3", "->", "1", "2", "->", "0", "9"]
    assert "2.000x" in row
    assert "2.500x" in row
    assert overrides_report.lines(cases[:1]) == []


@pytest.mark.parametrize("status", [Status.PASS, Status.FAIL_ACCURACY])
def test_no_speedup_stands_beside_another_that_is_none(status: Status) -> None:
    """Neither of a case that was disturbed nor of an arm that did not pass; both are said."""
    usual = factories.case("resnet18", (BASELINE, "inductor"))
    told = msgspec.structs.replace(usual, overrides=Overrides(disable=("a:b",)))
    before, after = (factories.measured_record(each) for each in (usual, told))
    arms = tuple(
        msgspec.structs.replace(each, outcome=factories.failure(status))
        if each.arm != BASELINE
        else each
        for each in after.arms
    )
    after = msgspec.structs.replace(after, arms=arms, disturbed_blocks=(0, 1, 2))
    row = overrides_report.lines(summarize_cases([before, after]))[-1]
    assert row.count("x [") == 1
    if status is Status.PASS:
        assert "1.250x [1.218, 1.283] -> disturbed" in row
    else:
        assert "1.250x [1.218, 1.283] -> -  " in row
        assert row.endswith("pass -> fail_accuracy")


@pytest.mark.slow
def test_coverage_with_and_without(
    tmp_path: Path, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through real workers, of a user's own file."""
    target = f"{tmp_path / module}.py::model"
    words = ["run", target, "--coverage", "--substitute", f"{module}:noisy={module}:quiet"]
    assert cli.main(None, [*words, "--output-dir", str(tmp_path / "runs")]) == 0
    printed = capsys.readouterr().out
    assert "model +overrides" in printed
    (row,) = [line for line in printed.splitlines() if "->" in line]
    assert "2 -> 1" in row
    assert "3 -> 0" in row  # one of each frame the call is in
    (directory,) = (tmp_path / "runs").iterdir()
    assert len(list(store.read_records(directory))) == 2
