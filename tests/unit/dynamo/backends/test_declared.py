"""What a backend says of itself before it is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dynamometer.common import registry
from dynamometer.dynamo.backends.declared import Declared

NAMES = sorted(registry.targets("backends"))
CHOSEN = {"assembled", "ensemble"}
TRAIN = {"aot_eager", "baseline", "cudagraphs", "eager", "inductor", *CHOSEN}
WHOLE = {"aot_inductor", "export", "ofi", "onnx", "ov", "trt", "ts"}


def test_a_missing_package_says_which_extra_installs_it() -> None:
    """The reason names the package and the command."""
    backend = Declared(name="fast", summary="", packages=("no_such_package",), extra="fast")
    assert backend.available("cpu") == (
        "fast needs the package no_such_package: pip install '.[fast]' in a clone"
    )


def test_other_devices_are_named() -> None:
    """The reason says where it does run."""
    reason = Declared(name="fast", summary="", devices=("cuda",)).available("cpu")
    assert reason == "fast runs on cuda only"


@pytest.mark.parametrize("name", ["ofi", "ts"])
def test_torchscript_that_is_off_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Its figures would be of eager; what doesn't use it is not touched."""
    monkeypatch.setenv("PYTORCH_JIT", "False")
    reason = registry.resolve("backends", name).available("cpu")
    assert reason == "PYTORCH_JIT=False turns TorchScript off: unset it"
    assert registry.resolve("backends", "inductor").available("cpu") is None
    monkeypatch.setenv("PYTORCH_JIT", "1")
    assert registry.resolve("backends", name).available("cpu") is None


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name: str) -> None:
    """Every declaration has a short line, and an extra wherever it needs packages."""
    backend = registry.resolve("backends", name)
    assert backend.name == name
    assert 10 < len(backend.summary) < 90
    assert bool(backend.packages) is bool(backend.extra)
    assert backend.trains is (name in TRAIN)
    assert backend.captures is (name not in {*WHOLE, *CHOSEN, "baseline"})
    assert backend.kind in {"baseline", "chosen", "through Dynamo", "whole model"}


@pytest.mark.parametrize("name", NAMES)
def test_its_options_can_be_set(name: str) -> None:
    """Each has a line, is named once, excludes what excludes it, and changes the backend."""
    backend = registry.resolve("backends", name)
    options = {option.name: option for option in backend.options}
    assert len(options) == len(backend.options)
    for option in backend.options:
        assert 10 < len(option.does) < 90
        for other in {*option.excludes} & options.keys():
            assert option.name in options[other].excludes
        if option.family or option.name in {"default", "spin"}:
            continue
        value = option.values[-1] if option.values else None
        assert backend.set_to(option.settings(option.name, value)) != backend


def test_declarations_import_neither_torch_nor_a_runtime() -> None:
    """The process that only lists backends reads them all."""
    modules = sorted({target.split(":")[0] for target in registry.targets("backends").values()})
    lines = [f"import {module}" for module in modules]
    heavy = "{'torch', 'onnx', 'onnxruntime', 'openvino', 'tvm', 'torch_tensorrt'}"
    code = "\n".join([*lines, "import sys", f"print(sorted({heavy} & set(sys.modules)))"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert len(modules) > 5
