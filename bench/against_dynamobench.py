#!/usr/bin/env python3
"""Time the same models through PyTorch's `dynamobench` and through ours, in one run.

    python bench/against_dynamobench.py --checkout DIR --output docs/against-dynamobench.md

DIR is a checkout of pytorch/benchmark. Their harness needs an accuracy run and a performance run
of each model; ours gives both, and memory, in one. Both sides compile with Inductor from empty
graph caches, the C++ toolchain's own preparations done beforehand, and time each arm at least
`--repeat` times. Where their models download weights, random ones are left in place.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ("lennard_jones", "resnet18", "squeezenet1_1", "dcgan", "phlippe_resnet")
HARNESS = Path("userbenchmark/dynamo/dynamobench/torchbench.py")

# What their harness is missing here: operators torchvision wants declared, and a network.
STUB = """
import sys
if any(word.endswith("dynamobench/torchbench.py") for word in sys.orig_argv):
    sys.path.insert(0, {root!r}); import dynamometer; del sys.path[0]
    from dynamometer.models.builders.torchvision_schemas import define_missing_schemas
    define_missing_schemas()
    import torch
    class NoWeights(dict): pass
    torch.hub.load_state_dict_from_url = lambda *args, **kwargs: NoWeights()
    load = torch.nn.Module.load_state_dict
    torch.nn.Module.load_state_dict = lambda self, state, *args, **kwargs: (
        None if isinstance(state, NoWeights) else load(self, state, *args, **kwargs))
"""


@dataclass(frozen=True)
class Theirs:
    """One model through their harness: wall seconds of both runs, and what they printed."""

    accuracy_s: float
    performance_s: float
    accuracy: str
    speedup: str


def main() -> int:
    """Run both and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--model", action="append", dest="models")
    parser.add_argument("--batch-size", type=int, default=1, help="on both sides")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    models = tuple(options.models or MODELS)
    with tempfile.TemporaryDirectory() as scratch:
        _ours(("lennard_jones",), options, Path(scratch) / "warm")
        started = time.monotonic()
        records, printed = _ours(models, options, Path(scratch) / "runs")
        ours_s = time.monotonic() - started
        theirs = {name: _theirs(name, options, Path(scratch)) for name in models}
    text = _table(records, theirs, ours_s, printed, options.repeat)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _ours(
    models: tuple[str, ...], options: argparse.Namespace, runs: Path
) -> tuple[dict[str, dict], str]:
    command = [sys.executable, str(ROOT / "torchbench.py"), "--backend", "inductor", "-r", "1"]
    command += ["-n", str(options.repeat), "--batch-size", str(options.batch_size)]
    command += ["--output-dir", str(runs)]
    command += [word for name in models for word in ("--only", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    events = next(runs.iterdir()) / "events.jsonl"
    records = [json.loads(line) for line in events.read_text().splitlines()]
    return {record["case"]["model"]: record for record in records}, done.stdout


def _theirs(model: str, options: argparse.Namespace, scratch: Path) -> Theirs:
    stubs = scratch / "stubs"
    stubs.mkdir(exist_ok=True)
    (stubs / "sitecustomize.py").write_text(STUB.format(root=str(ROOT)))
    accuracy_s, accuracy = _their_run(model, options, stubs, "--accuracy")
    performance_s, speedup = _their_run(model, options, stubs, "--performance")
    return Theirs(accuracy_s, performance_s, accuracy, speedup)


def _their_run(
    model: str, options: argparse.Namespace, stubs: Path, kind: str
) -> tuple[float, str]:
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as output:
        command = [sys.executable, str(options.checkout / HARNESS), kind, "--inference", "-dcpu"]
        command += ["--backend", "inductor", "--only", model]
        command += ["--batch-size", str(options.batch_size), "--repeat", str(options.repeat)]
        command += ["--output-directory", output]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{stubs}:{options.checkout}",
            "TORCHINDUCTOR_CACHE_DIR": cache,
        }
        started = time.monotonic()
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            cwd=options.checkout,
            check=False,
        )
        wall_s = time.monotonic() - started
    if done.returncode:
        sys.exit(f"{model} {kind} ended with {done.returncode}: {done.stderr[-800:]}")
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    print(
        f"{model} {kind} {wall_s:.1f} s: {lines[-1] if lines else done.stderr[-800:]}", flush=True
    )
    return wall_s, lines[-1] if lines else "nothing"


def _table(
    records: dict[str, dict], theirs: dict[str, Theirs], ours_s: float, printed: str, repeat: int
) -> str:
    stages = ("load", "eager", "compile", "compare", "run", "measure", "memory", "harness")
    lines = [
        "# Against PyTorch's harness",
        "",
        _setting(len(records), repeat),
        "",
        "| model (batch) | accuracy | performance | their sum | ours | they print | we print |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, record in records.items():
        peer = theirs[name]
        own_s = sum(record["seconds"].values())
        line = next(line for line in printed.splitlines() if f" {name} " in line)
        lines.append(
            f"| {name} ({record['case']['batch_size']}) | {peer.accuracy_s:.1f}"
            f" | {peer.performance_s:.1f} | {peer.accuracy_s + peer.performance_s:.1f}"
            f" | {own_s:.1f} | {peer.speedup}, {peer.accuracy}"
            f" | {line.partition('frames, ')[2]}, {record['outcome']['status']} |"
        )
    total_s = sum(peer.accuracy_s + peer.performance_s for peer in theirs.values())
    accuracy_s = sum(peer.accuracy_s for peer in theirs.values())
    lines.append(
        f"| all, start included | {accuracy_s:.1f} | {total_s - accuracy_s:.1f} | {total_s:.1f}"
        f" | {ours_s:.1f} | | **{ours_s / total_s:.0%}** |"
    )
    lines += [
        "",
        "Where our seconds go:",
        "",
        "| model | " + " | ".join(stages) + " |",
        "|---|" + "---|" * len(stages),
    ]
    for name, record in records.items():
        spent = [record["seconds"].get(stage, 0.0) for stage in stages]
        lines.append(f"| {name} | " + " | ".join(f"{seconds:.1f}" for seconds in spent) + " |")
    start_s = ours_s - sum(sum(record["seconds"].values()) for record in records.values())
    lines += ["", f"Before and after the cases (imports, fork servers, reports): {start_s:.1f} s."]
    return "\n".join(lines) + "\n"


def _setting(models: int, repeat: int) -> str:
    return (
        f"Seconds of wall time for {models} models at full scale, float32 inference on"
        f" {os.cpu_count()} cores ({_cpu()}), Inductor, empty graph caches, at least {repeat}"
        " timed calls of each arm, one replicate. Theirs is the sum of the accuracy run and the"
        " performance run each model needs. Made by `bench/against_dynamobench.py`."
    )


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    raise SystemExit(main())
