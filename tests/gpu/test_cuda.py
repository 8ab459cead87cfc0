"""What differs on CUDA: waiting, memory, names, and running out."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dynamometer.dynamo.device import Device

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.gpu


def run_script(directory: Path, *words: str) -> list[dict[str, object]]:
    """Run the TorchBench script on CUDA and give its records."""
    command = [sys.executable, str(ROOT / "torchbench.py"), "-d", "cuda", "-r", "1"]
    command += ["--output-dir", str(directory), *words]
    subprocess.run(command, check=True, timeout=600)
    events = next(directory.iterdir()) / "events.jsonl"
    return [json.loads(line) for line in events.read_text().splitlines()]


def test_time_includes_the_wait() -> None:
    """A stopwatch on CUDA waits for kernels, not only for their launch."""
    import torch

    from dynamometer.common.measuring.timing import Stopwatch
    from dynamometer.dynamo.device import Cuda

    device = Cuda()
    matrix = torch.randn(8192, 8192, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    device.synchronize()

    def multiply() -> None:
        begin.record()
        torch.mm(matrix, matrix)
        end.record()

    multiply()
    taken_s = Stopwatch(time.perf_counter, device.synchronize).mean_s(multiply, 1)
    assert taken_s >= begin.elapsed_time(end) / 1e3


def test_peak_is_the_allocators() -> None:
    """The peak counts memory that has been freed again since it was reset."""
    import torch

    from dynamometer.dynamo.device import Cuda

    device = Cuda()
    device.release_cached()
    before_bytes = device.used_bytes()
    device.reset_peak()
    torch.empty(2**28, dtype=torch.uint8, device="cuda")
    assert device.peak_bytes() - before_bytes >= 2**28
    assert device.used_bytes() == before_bytes


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_case_passes(backend: str, tmp_path: Path) -> None:
    """A small model is measured on the device whole: latency, compile time, memory, its name."""
    words = ("--only", "resnet18", "--scale", "tiny", "--backend", backend)
    (record,) = run_script(tmp_path, *words)
    assert record["outcome"] == {"status": "pass", "stage": None, "reason": None, "detail": None}
    metrics = {each["metric"] for each in record["measurements"]}
    assert metrics >= {"latency", "compile_time", "calls_memory"}
    assert record["device_name"]


def test_out_of_memory_is_an_outcome(tmp_path: Path) -> None:
    """A batch that can't fit ends as `oom`, and the program in order."""
    words = ("--only", "resnet18", "--backend", "eager", "--batch-size", "4000000")
    (record,) = run_script(tmp_path, *words)
    assert dict(record["outcome"])["status"] == "oom"


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_as_much_is_captured_as_on_a_cpu(*, training: bool) -> None:
    """A graph break loses what it loses there; the backward has a thread of its own here."""
    from dynamometer.dynamo.device import Cpu, Cuda

    assert counts_on(Cuda(), training=training) == counts_on(Cpu(), training=training)


def counts_on(device: Device, *, training: bool) -> tuple[int, int, int, list[int]]:
    """Count operators of a model with known breaks: inside, in all, unexplained, lost by line."""
    import hand_built
    import torch

    from dynamometer.dynamo.capture import coverage

    x = torch.ones(2, 4, device=device.torch_device, requires_grad=training)
    model = hand_built.Breaks().to(device.torch_device)
    capture = coverage.Capture.of(model, device.synchronize)

    def step() -> None:
        output = capture.compiled(x)
        if training:
            output.sum().backward()

    found = coverage.measure(capture, step)
    by_line = sorted(found.breaks, key=lambda each: each.line)
    lost = [each.not_captured_ops for each in by_line]
    return found.captured_ops, found.total_ops, found.unexplained_ops, lost
