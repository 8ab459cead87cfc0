#!/usr/bin/env python3
"""Time the same models through PyTorch's `dynamobench` and through ours, in one run.

    python bench/against_dynamobench.py --checkout DIR --output docs/against-dynamobench.md

DIR is a checkout of pytorch/benchmark. The models are drawn by a seed from those that run here
from both sides' code; one that their harness can't run, or not within the limit, is named, and
the next one takes its place. What either side then doesn't pass is named and left out, with its
seconds, and nothing takes its place. Their harness needs an accuracy run and a performance run
of each model; ours gives both, and memory, in one. Both sides compile with Inductor from empty
graph caches, the C++ toolchain's own preparations done beforehand, and time each arm at least
`--repeat` times. Where their models download weights, random ones are left in place. Their harness
needs pandas, which may stand on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ROOT / "docs" / "torchbench-checkout.md"
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

    @property
    def total_s(self) -> float:
        """What both runs took."""
        return self.accuracy_s + self.performance_s


class NotRunError(Exception):
    """Their harness can't run a model here; why, in a line."""


def main() -> int:
    """Run both and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--model", action="append", dest="models", help="instead of drawing")
    parser.add_argument("--draw", type=int, default=10, help="how many models")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing")
    parser.add_argument("--batch-size", type=int, default=1, help="on both sides")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--limit-s", type=float, default=240, help="of one run of theirs")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    order = options.models or _drawn(options)
    left_out: dict[str, str] = {}
    theirs: dict[str, Theirs] = {}
    with tempfile.TemporaryDirectory() as scratch:
        _ours(("lennard_jones",), options, Path(scratch) / "warm")
        for name in order:
            if len(theirs) == options.draw:
                break
            try:
                theirs[name] = _theirs(name, options, Path(scratch))
            except NotRunError as error:
                left_out[name] = str(error)
                print(f"{name} left out: {error}", flush=True)
        if not theirs:
            sys.exit("their harness runs none of these models")
        started = time.monotonic()
        records, printed = _ours(tuple(theirs), options, Path(scratch) / "runs")
        ours_s = time.monotonic() - started
    for name, reason in _not_passed(records, theirs).items():
        left_out[name] = reason
        ours_s -= _seconds(records.pop(name))
        del theirs[name]
    if not theirs:
        sys.exit(f"no model passes on both sides: {left_out}")
    text = _page(records, theirs, left_out, (ours_s, printed), options)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _not_passed(records: dict[str, dict[str, Any]], theirs: dict[str, Theirs]) -> dict[str, str]:
    """Return the models that did not pass on both sides, and why."""
    found = {}
    for name, peer in theirs.items():
        outcome = records[name]["outcome"]
        if outcome["status"] != "pass":
            found[name] = f"{outcome['status']} here: {outcome['reason']}"
        elif peer.accuracy != "pass":
            found[name] = f"there: {peer.accuracy}"
    return found


def _seconds(record: dict[str, Any]) -> float:
    return float(sum(record["seconds"].values()))


def _drawn(options: argparse.Namespace) -> list[str]:
    """Shuffle the models that both sides have and that run here from the checkout's own code."""
    rows = [line.split("|") for line in CHECKED.read_text().splitlines() if line.startswith("| ")]
    run = {name.strip() for _, name, how, *_ in rows if how.strip() in {"as is", "offline weights"}}
    command = [sys.executable, str(ROOT / "torchbench.py"), "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ours = {line.split()[0] for line in listed.splitlines() if line.strip()}
    theirs = {each.name for each in (options.checkout / "torchbenchmark" / "models").iterdir()}
    both = sorted(run & ours & theirs)
    random.Random(options.seed).shuffle(both)
    return both


def _ours(
    models: tuple[str, ...], options: argparse.Namespace, runs: Path
) -> tuple[dict[str, dict[str, Any]], str]:
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
        kept = [folder for folder in (os.environ.get("PYTHONPATH"),) if folder]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(stubs), str(options.checkout), *kept]),
            "TORCHINDUCTOR_CACHE_DIR": cache,
        }
        started = time.monotonic()
        status, stdout, stderr = _within(options, command, environment)
        wall_s = time.monotonic() - started
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    result = lines[-1] if lines else ""
    if status or not (result.startswith("pass") or result[:1].isdigit()):
        last = (result or stderr.strip() or "nothing was printed").splitlines()[-1]
        reason = f"{kind[2:]}: {last[:160]}"
        raise NotRunError(reason)
    print(f"{model} {kind} {wall_s:.1f} s: {result}", flush=True)
    return wall_s, result


def _within(
    options: argparse.Namespace, command: list[str], environment: dict[str, str]
) -> tuple[int, str, str]:
    """Run a command of theirs, and end it with all its children when the limit is reached."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=options.checkout,
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=options.limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            reason = f"more than {options.limit_s:.0f} s"
            raise NotRunError(reason) from None
        return process.returncode, stdout, stderr


def _page(
    records: dict[str, dict[str, Any]],
    theirs: dict[str, Theirs],
    left_out: dict[str, str],
    ours: tuple[float, str],
    options: argparse.Namespace,
) -> str:
    ours_s, printed = ours
    lines = ["# Against PyTorch's harness", "", _setting(len(records), options), ""]
    lines += ["| model (batch) | accuracy | performance | their sum | ours | share"]
    lines[-1] += " | they print | we print |"
    lines += ["|---|---|---|---|---|---|---|---|"]
    for name, record in records.items():
        peer, own_s = theirs[name], _seconds(record)
        line = next(line for line in printed.splitlines() if f" {name} " in line)
        lines.append(
            f"| {name} ({record['case']['batch_size']}) | {peer.accuracy_s:.1f}"
            f" | {peer.performance_s:.1f} | {peer.total_s:.1f} | {own_s:.1f}"
            f" | {own_s / peer.total_s:.0%} | {peer.speedup}, {peer.accuracy}"
            f" | {line.partition('frames, ')[2]}, {record['outcome']['status']} |"
        )
    total_s = sum(peer.total_s for peer in theirs.values())
    accuracy_s = sum(peer.accuracy_s for peer in theirs.values())
    lines.append(
        f"| all, start included | {accuracy_s:.1f} | {total_s - accuracy_s:.1f} | {total_s:.1f}"
        f" | {ours_s:.1f} | **{ours_s / total_s:.0%}** | | |"
    )
    if left_out:
        lines += ["", "Drawn, and not passed by both:", ""]
        lines += [f"- {name}: {reason}" for name, reason in left_out.items()]
    return "\n".join(lines + _seconds_table(records, ours_s)) + "\n"


def _seconds_table(records: dict[str, dict[str, Any]], ours_s: float) -> list[str]:
    """Return where our seconds go: a column for every place that a record names."""
    places = list(dict.fromkeys(place for each in records.values() for place in each["seconds"]))
    head = "| model | " + " | ".join(place.replace("_", " ") for place in places) + " |"
    lines = ["", "Where our seconds go:", "", head, "|---|" + "---|" * len(places)]
    sums = dict.fromkeys(places, 0.0)
    for name, record in records.items():
        spent = {place: record["seconds"].get(place, 0.0) for place in places}
        sums = {place: sums[place] + spent[place] for place in places}
        lines.append(f"| {name} | " + " | ".join(f"{each:.1f}" for each in spent.values()) + " |")
    lines.append("| all | " + " | ".join(f"{each:.1f}" for each in sums.values()) + " |")
    start_s = ours_s - sum(sums.values())
    return [
        *lines,
        "",
        f"Before and after the cases (imports, fork servers, reports): {start_s:.1f} s.",
    ]


def _setting(models: int, options: argparse.Namespace) -> str:
    chosen = "" if options.models else f", drawn by seed {options.seed}"
    return (
        f"Seconds of wall time for {models} models{chosen}, at full scale, float32 inference on"
        f" {os.cpu_count()} cores ({_cpu()}), Inductor, empty graph caches, at least"
        f" {options.repeat} timed calls of each arm, one replicate. Theirs is the sum of the"
        " accuracy run and the performance run each model needs. Made by"
        " `bench/against_dynamobench.py`."
    )


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    raise SystemExit(main())
