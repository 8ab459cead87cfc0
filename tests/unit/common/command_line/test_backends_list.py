"""What `dynamometer ls backends --long` tells."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

from dynamometer.common import registry
from dynamometer.common.command_line import backends_list, cli
from dynamometer.common.machine import environment


@pytest.fixture(autouse=True)
def no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without CUDA."""
    monkeypatch.setattr(environment, "cuda_device_count", lambda: 0)


def test_ours_come_first_and_torchs_follow() -> None:
    """Each once, and none that `torch.compile` knows under the same name."""
    names = [each.name for each in backends_list.entries()]
    ours = registry.choices("backends")
    assert names[: len(ours)] == ours
    assert len(names) == len(set(names))
    assert {"aot_ts", "eager_noexcept", "openxla"} <= set(names[len(ours) :])


def test_each_is_described() -> None:
    """How it gets at models, where it works, of which version, and why not."""
    found = {each.name: each for each in backends_list.entries()}
    inductor = found["inductor"]
    assert (inductor.kind, inductor.works, inductor.reason) == ("through Dynamo", ("cpu",), None)
    assert inductor.version == metadata.version("torch")
    assert found["export"].kind == "whole model"
    assert found["cudagraphs"].works == ()
    assert found["cudagraphs"].reason == "cudagraphs runs on cuda only"
    assert "pip install torch_xla" in (found["openxla"].reason or "")
    assert found["openxla"].version is None
    for name in ("relu_compile_error_TESTING_ONLY", "dynamo_minifier_backend"):
        assert found[name].works == ()
        assert f"{name} is for tests of torch itself" in (found[name].reason or "")
    assert found["aot_ts"].works == ("cpu",)


def test_works_wherever_there_is_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CUDA, what runs on it works; what is for a CPU still does."""
    monkeypatch.setattr(environment, "cuda_device_count", lambda: 1)
    found = {each.name: each for each in backends_list.entries()}
    assert found["cudagraphs"].works == ("cuda",)
    assert found["inductor"].works == ("cpu", "cuda")


def test_a_plugin_that_cant_be_imported_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes nothing from the others."""
    known = registry.targets("backends")
    monkeypatch.setattr(registry, "targets", lambda kind: {**known, "broken": "no_such_module:x"})
    found = {each.name: each for each in backends_list.entries()}
    assert found["broken"].works == ()
    assert "no_such_module" in (found["broken"].reason or "")
    assert found["inductor"].works


def test_the_table_has_reasons_and_options() -> None:
    """Below it stands what doesn't work here, and what can be set."""
    text = backends_list.as_table(backends_list.entries())
    assert "don't work here:\n  cudagraphs runs on cuda only\n" in text
    assert "options of inductor:\n" in text
    assert "  config.KEY=VALUE " in text
    assert "not with spin" in text


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """For programs, one object a backend."""
    assert cli.main(None, ["ls", "backends", "--json"]) == 0
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert len(found) == len(backends_list.entries())
    precision = found["ov"]["options"][0]
    assert precision["option"] == "precision=f32|bf16|f16"
