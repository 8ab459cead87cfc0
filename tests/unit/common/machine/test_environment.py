from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch

from dynamometer.common.errors import UnfitEnvironmentError
from dynamometer.common.machine import environment
from dynamometer.common.machine.environment import memory_bytes, read_environment, require_device
from dynamometer.common.machine.variables import require_compiling

if TYPE_CHECKING:
    from pathlib import Path


def test_the_environment_is_that_of_this_process() -> None:
    """Processors, memory, versions and Python are what this process sees."""
    found = read_environment()
    assert found.cpus == len(os.sched_getaffinity(0))
    assert 2**28 < found.memory_bytes == memory_bytes()
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert {"torch", "dynamometer"} <= set(found.packages)
    assert found.os.startswith("Linux ")
    assert found.cpu
    assert len(found.id) == 12


def test_the_load_is_no_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs on one machine have one environment, however busy it was."""
    ids = set()
    for load in (0.0, 63.5):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        found = read_environment()
        assert found.load_1min == load
        ids.add(found.id)
    assert len(ids) == 1


def test_variables_that_change_timings_are_part_of_the_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread count set outside makes another environment; an unknown variable doesn't."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = read_environment()
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    assert read_environment().id == before.id
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    after = read_environment()
    assert after.variables["OMP_NUM_THREADS"] == "3"
    assert "OMP_NUM_THREADS" not in before.variables
    assert after.id != before.id


@pytest.mark.parametrize(
    "name",
    ["TORCHDYNAMO_SUPPRESS_ERRORS", "PYTORCH_JIT", "TORCHINDUCTOR_CPP_WRAPPER", "TORCH_BISECT_MAX",
     "OMP_PLACES", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "CXX", "AOT_PARTITIONER_DEBUG"],
)  # fmt: skip
def test_whatever_torch_is_told_by_is_recorded(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Compilers, kernels and threads; bytes that are no text are shown."""
    monkeypatch.setenv(name, "a\udcff")
    assert read_environment().variables[name] == "a\\udcff"


@pytest.mark.parametrize(
    "name", ["TORCH_HUB_TOKEN", "TORCHINDUCTOR_REDIS_URL", "TORCHINDUCTOR_CACHE_DIR", "TORCH_HOME"]
)
def test_secrets_and_places_are_not_recorded(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Neither says what is measured."""
    monkeypatch.setenv(name, "1")
    assert name not in read_environment().variables


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("TORCH_COMPILE_DISABLE", "1", "turns torch.compile off"),
        ("TORCHDYNAMO_DISABLE", "1", "turns torch.compile off"),
        ("TORCHDYNAMO_DEBUG_FUNCTION", "forward", "in eager"),
        ("TORCH_COMPILE_OVERRIDE_BACKENDS", ">=0:eager", "other backends"),
        ("TORCH_COMPILE_DISABLE", "0", None),
        ("TORCHDYNAMO_DEBUG_FUNCTION", "", None),
        ("TORCHDYNAMO_SUPPRESS_ERRORS", "1", None),
    ],
)
def test_figures_of_eager_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str | None
) -> None:
    """Where a variable has nothing compiled, or by others; the message names it."""
    monkeypatch.setenv(name, text)
    if said is None:
        require_compiling()
        return
    with pytest.raises(UnfitEnvironmentError, match=f"{name}={text} .*{said}.*: unset it"):
        require_compiling()


def test_the_commit_is_that_of_the_checkout() -> None:
    """Run from a checkout, the environment names its commit; otherwise none."""
    found = read_environment().git
    assert found is None or len(found.removesuffix("-dirty")) == 12


def test_an_installed_package_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a repository around the code there is no commit to name."""
    monkeypatch.setattr(
        environment, "__file__", str(tmp_path / "common" / "machine" / "environment.py")
    )
    assert read_environment().git is None


def test_the_commit_of_what_is_measured_is_that_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or of one above it; a run is resumed on another commit, as its files are looked at."""
    monkeypatch.chdir(tmp_path)
    before = read_environment()
    assert before.measured_git is None
    words = ["git", "-c", "user.name=A", "-c", "user.email=a@b"]
    for each in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "x"]):
        subprocess.run([*words, *each], check=True)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    now = read_environment()
    assert now.measured_git is not None
    assert len(now.measured_git) == 12
    assert environment.differences(before, now) == []


def test_a_cpu_is_always_there() -> None:
    """The host needs no driver."""
    require_device("cpu")


@pytest.mark.slow
@pytest.mark.parametrize("device", ["abacus", "xpu"])
def test_another_device_is_asked_of_torch(device: str) -> None:
    """A type that there is not, and one of which torch finds none here."""
    if device == "xpu" and torch.xpu.is_available():
        pytest.skip("there is one")
    with pytest.raises(UnfitEnvironmentError, match=f"no device of type '{device}' here: .*torch"):
        require_device(device)


def test_a_missing_gpu_is_named() -> None:
    """Without a CUDA device the message says what is missing and what to do instead."""
    code = (
        "from dynamometer.common.machine.environment import require_device as r\n"
        "try: r('cuda')\n"
        "except Exception as e: print(type(e).__name__, e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    for words in (UnfitEnvironmentError.__name__, "libcuda.so.1", "-d cpu", "nvidia-smi"):
        assert words in done.stdout


def test_versions_of_what_computes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime's update changes figures, and `compare` and `history` have to name it."""
    runtime = "openvino"
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "2031.7" if name == runtime else real(name)
    )
    assert read_environment().packages[runtime] == "2031.7"


def test_a_package_without_a_version_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that an uninstalled package left behind has metadata, but nothing in it."""
    real = importlib.metadata.version
    leftover = "timm"
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: None if name == leftover else real(name)
    )
    packages = read_environment().packages
    assert leftover not in packages
    assert packages["numpy"] == real("numpy")
