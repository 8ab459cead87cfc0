"""What a backend says of itself before it is loaded."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from dynamometer.dynamo.backends.declared import Declared

BACKENDS = [
    "exported:aot_inductor",
    "exported:export",
    "torchscript:ofi",
    "runtimes.onnx_runtime:onnx",
    "runtimes.onnx_runtime:onnxrt",
    "runtimes.openvino_runtime:openvino",
    "runtimes.openvino_runtime:ov",
    "runtimes.tensorrt:tensorrt",
    "runtimes.tensorrt:trt",
    "runtimes.tvm:tvm",
]


def test_a_missing_package_says_which_extra_installs_it() -> None:
    """The reason names the package and the command."""
    backend = Declared(name="fast", summary="", packages=("no_such_package",), extra="fast")
    assert backend.available("cpu") == (
        "fast needs the package no_such_package: pip install 'dynamometer[fast]'"
    )


def test_other_devices_are_named() -> None:
    """The reason says where it does run."""
    reason = Declared(name="fast", summary="", devices=("cuda",)).available("cpu")
    assert reason == "fast runs on cuda only"


@pytest.mark.parametrize("name", BACKENDS)
def test_it_says_what_it_is(name: str) -> None:
    """Every declaration has a short line, and an extra wherever it needs packages."""
    module, attribute = name.split(":")
    backend = getattr(importlib.import_module(f"dynamometer.dynamo.backends.{module}"), attribute)
    assert backend.name == attribute
    assert 10 < len(backend.summary) < 90
    assert bool(backend.packages) is bool(backend.extra)
    assert backend.trains is False


def test_declarations_import_neither_torch_nor_a_runtime() -> None:
    """The process that only lists backends reads them all."""
    modules = sorted({name.split(":")[0] for name in BACKENDS})
    lines = [f"import dynamometer.dynamo.backends.{module}" for module in modules]
    heavy = "{'torch', 'onnx', 'onnxruntime', 'openvino', 'tvm', 'torch_tensorrt'}"
    code = "\n".join([*lines, "import sys", f"print(sorted({heavy} & set(sys.modules)))"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
