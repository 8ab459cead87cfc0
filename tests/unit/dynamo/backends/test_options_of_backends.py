"""Backends that are set in several ways do as they are told, and don't disturb each other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch._inductor.config
from torch import nn
from torch._inductor.utils import run_and_get_code

from dynamometer.common.measuring.arm_backends import load_backend
from dynamometer.dynamo import state

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("known_onnx_functions"),
]
needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()


def generated(name: str, module: nn.Module, x: torch.Tensor) -> str:
    """Return the code that an arm generates for a module, which computes what eager does."""
    compiled = load_backend(name).compile(module, (x,), {})
    found, codes = run_and_get_code(compiled, x)
    torch.testing.assert_close(found, module(x))
    return "\n".join(codes)


@needs_compiler
@torch.no_grad()
def test_each_arm_of_a_process_generates_what_it_should() -> None:
    """Frozen weights are no inputs of the code, a C++ wrapper is C++, and plain code is neither."""
    module, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.ones(2, 8)
    names = ["inductor", "inductor:freezing", "inductor:cpp-wrapper", "inductor"]
    codes = [generated(name, module, x) for name in names]
    assert ["_frozen_param" in code for code in codes] == [False, True, False, False]
    assert ["cpp_wrapper_src" in code for code in codes] == [False, False, True, False]
    assert not torch._inductor.config.freezing
    assert not torch._inductor.config.cpp_wrapper


def test_freezing_lasts_for_a_call() -> None:
    """The setting is made while what is compiled runs, and put back when it raises."""
    seen = []

    def compiled(value: float) -> float:
        seen.append(torch._inductor.config.freezing)
        return 1 / value

    call = state.freezing(compiled)
    assert call(2.0) == 0.5
    with pytest.raises(ZeroDivisionError):
        call(0.0)
    assert seen == [True, True]
    assert not torch._inductor.config.freezing


def runtime(name: str, module: nn.Module, x: torch.Tensor) -> Any:
    """Compile a module; skip where the runtime is not installed."""
    backend = load_backend(name)
    for package in getattr(backend, "packages", ()):
        pytest.importorskip(package)
    with torch.no_grad():
        return backend.compile(module, (x,), {})


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("name", "spins"), [("onnx", "1"), ("onnx:spin", "1"), ("onnx:no-spin", "0")]
)
def test_onnx_runtime_is_set_as_told(
    name: str, spins: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has as many threads as torch, which spin unless told otherwise."""
    onnxruntime = pytest.importorskip("onnxruntime")
    made = []
    session = onnxruntime.InferenceSession

    def keep(model: bytes, options: Any, **kwargs: Any) -> Any:
        made.append(options)
        return session(model, options, **kwargs)

    monkeypatch.setattr(onnxruntime, "InferenceSession", keep)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    runtime(name, nn.Linear(3, 2).eval(), torch.ones(1, 3))
    (options,) = made
    assert options.intra_op_num_threads == threads
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == spins


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("name", "precision"),
    [("ov", "float"), ("ov:precision=bf16", "bfloat16"), ("ov:hint=throughput", "float")],
)
def test_openvino_is_set_as_told(
    name: str, precision: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has as many threads as torch, and computes in float32 unless told otherwise."""
    openvino = pytest.importorskip("openvino")
    made = []
    compile_model = openvino.Core.compile_model

    def keep(core: Any, *args: Any) -> Any:
        made.append(args[2])
        return compile_model(core, *args)

    monkeypatch.setattr(openvino.Core, "compile_model", keep)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    runtime(name, nn.Linear(3, 2).eval(), torch.ones(1, 3))
    (settings,) = made
    assert settings["INFERENCE_NUM_THREADS"] == threads
    assert settings["INFERENCE_PRECISION_HINT"] == {"float": "f32", "bfloat16": "bf16"}[precision]
    assert settings["PERFORMANCE_HINT"] == ("THROUGHPUT" if "hint" in name else "LATENCY")


def test_tvm_has_as_many_threads_as_torch() -> None:
    """Whatever it would take by itself; in a process of its own, as it makes them once."""
    pytest.importorskip("tvm")
    code = """
import torch, tvm
from dynamometer.common.measuring.arm_backends import load_backend
torch.set_num_threads(3)
module, x = torch.nn.Linear(3, 2).eval(), torch.ones(1, 3)
with torch.no_grad():
    load_backend("tvm").compile(module, (x,), {})(x)
print(tvm.get_global_func("runtime.NumThreads")())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"


@pytest.mark.parametrize("name", ["onnx", "onnxrt", "openvino", "ov", "tvm"])
def test_no_runtime_computes_in_less_than_float32(name: str) -> None:
    """Also where the processor is faster in bfloat16: the error is one of float32's rounding."""
    torch.manual_seed(0)
    module, x = nn.Linear(512, 64).eval(), torch.randn(4, 512)
    call = runtime(name, module, x)
    with torch.no_grad():
        exact = nn.functional.linear(x.double(), module.weight.double(), module.bias.double())
        error = (call(x).double() - exact).abs().max().item()
    assert error < 1e-5  # in bfloat16 about 5e-3


@needs_compiler
@pytest.mark.skipif(torch.__version__ < "2.13", reason="its loader doesn't ask for TMPDIR")
@torch.no_grad()
def test_libraries_of_aot_inductor_lie_beside_the_caches(tmp_path: Path) -> None:
    """Whoever removes these, of a worker that was killed, removes them too."""
    module, x = nn.Linear(3, 2).eval(), torch.ones(1, 3)
    before = os.environ.get("TMPDIR")
    call = runtime("aot_inductor", module, x)
    torch.testing.assert_close(call(x), module(x))
    assert list(tmp_path.glob("temporary/dynamometer-aoti-*/model.pt2"))
    assert list(tmp_path.glob("temporary/dynamometer-aoti-*/*/**/*.so"))
    assert os.environ.get("TMPDIR") == before
