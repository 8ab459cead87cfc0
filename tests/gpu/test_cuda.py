"""What differs on CUDA: waiting, memory, names, and running out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dynamometer.dynamo.device import Device

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.gpu


def run_script(directory: Path, *words: str) -> list[Any]:
    """Run the TorchBench script on CUDA and give its records."""
    return run_command(directory, sys.executable, str(ROOT / "torchbench.py"), *words)


def run_command(directory: Path, *command: str) -> list[Any]:
    """Run a command on CUDA, one replicate, and give the records of its run."""
    options = ("-d", "cuda", "-r", "1", "--output-dir", str(directory))
    paths = [str(ROOT / "tests/integration"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run((*command, *options), capture_output=True, text=True, check=False,
                          env=environment, timeout=600)  # fmt: skip
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    # The runs before it, which come to decisions, are below that of the command.
    (events,) = directory.glob("*/events.jsonl")
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
    taken_s = Stopwatch(device.synchronize).mean_s(multiply, 1)
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


def test_backends_pass(tmp_path: Path) -> None:
    """A small model is measured on the device with several backends, which all pass."""
    arms = ("aot_eager", "cudagraphs", "inductor", "inductor:reduce-overhead")
    named = [word for arm in arms for word in ("--backend", arm)]
    (record,) = run_script(tmp_path, "--only", "resnet18", "--scale", "tiny", *named)
    assert statuses(record) == dict.fromkeys(("baseline", *arms), "pass")
    found = {(each["arm"], each["metric"]) for each in record["measurements"]}
    metrics = ("latency", "compile_time", "calls_memory")
    assert found >= {(arm, metric) for arm in arms for metric in metrics}
    captures = [each["capture"] for each in record["arms"] if each["capture"]]
    assert not any(each["cudagraph_skips"] for each in captures)
    called = [each for each in record["measurements"] if each["metric"] == "calls_memory"]
    assert all(min(each["samples"]) > 0 for each in called)  # also what graphs keep
    assert record["device_name"]


def test_training_passes(tmp_path: Path) -> None:
    """What CUDA graphs replay of a backward pass and an optimizer is right as well."""
    arms = ("inductor", "inductor:reduce-overhead", "cudagraphs")
    named = [word for arm in arms for word in ("--backend", arm)]
    words = ("--only", "mobilenet_v2", "--scale", "tiny", "--training", "--accuracy", *named)
    (record,) = run_script(tmp_path, *words)
    assert statuses(record) == dict.fromkeys(("baseline", *arms), "pass")


def test_training_passes_in_tf32(tmp_path: Path) -> None:
    """What is timed convolves in TF32, two kernels of which differ by more than float32's."""
    words = ("--only", "mobilenet_v2", "--scale", "tiny", "--training", "--backend", "inductor")
    (record,) = run_script(tmp_path, *words)
    assert statuses(record) == {"baseline": "pass", "inductor": "pass"}


def statuses(record: Any) -> dict[str, object]:
    """Return how each arm ended."""
    return {each["arm"]: each["outcome"]["status"] for each in record["arms"]}


def test_wrong_results_are_found(tmp_path: Path) -> None:
    """Results are looked at when kernels have ended, and compared on the device."""
    wrong = ("perturbs_one_element", "returns_nan", "rounds_to_bfloat16", "mutates_an_input")
    arms = [f"wrong_backends:{name}" for name in (*wrong, "honest")]
    named = [word for arm in arms for word in ("--backend", arm)]
    words = ("--only", "lennard_jones", "--scale", "tiny", "--accuracy", *named)
    (record,) = run_script(tmp_path, *words)
    fails = dict.fromkeys(arms[:-1], "fail_accuracy")
    assert statuses(record) == {"baseline": "pass", **fails, arms[-1]: "pass"}


def test_the_ensemble_decides_once(tmp_path: Path) -> None:
    """What is measured to be the fastest is used, and is not measured again."""
    words = ("--only", "lennard_jones", "--scale", "tiny", "--backend", "ensemble")
    words = (*words, "--candidate", "inductor", "--candidate", "inductor:reduce-overhead")
    words = (*words, "--decisions", str(tmp_path / "decisions.sqlite"))
    chosen = []
    for directory in (tmp_path / "first", tmp_path / "second"):
        (record,) = run_script(directory, *words)
        assert statuses(record) == {"baseline": "pass", "ensemble": "pass"}
        (of_ensemble,) = (each for each in record["arms"] if each["arm"] == "ensemble")
        chosen.append(of_ensemble["choices"])
    assert all(each["is_decided"] for each in chosen[0])
    assert chosen[0] == chosen[1]


TOO_LARGE = """
import torch

class TooLarge(torch.nn.Module):
    def forward(self, x):
        return x + torch.empty(2**48, dtype=torch.uint8, device=x.device)[:1]

def too_large():
    return TooLarge(), (torch.ones(1),)
"""


def test_out_of_memory_is_an_outcome(tmp_path: Path) -> None:
    """More than any device has ends as `oom`, and the program in order."""
    model = tmp_path / "model.py"
    model.write_text(TOO_LARGE)
    command = (sys.executable, "-m", "dynamometer", "run", f"{model}::too_large")
    (record,) = run_command(tmp_path / "runs", *command, "--backend", "eager")
    assert record["outcome"]["status"] == "oom"


# Dynamo asks whether a tensor has a gradient, which torch 2.11 warns of once a process.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
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
