#!/usr/bin/env python3
"""Which models of a pytorch/benchmark checkout load here and run one eager forward pass.

Each model runs in a process of its own, under a time limit and a memory limit, with random
weights in place of downloads. Writes one JSON line per model and prints the table of
docs/torchbench-checkout.md; with `--output FILE`, models that FILE already has are not run again.

    bench/checkout_models.py DIR --output models.jsonl --markdown docs/torchbench-checkout.md
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import dynamometer  # noqa: F401  found while its folder is on the path, for the imports below

sys.path.pop(0)
sys.path.pop(0)  # and this folder: a model's own imports must not find ours

from dynamometer.models.suites.torchbench_checkout import TorchBenchCheckout
from dynamometer.results.values.cases import BASELINE, Case

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.results.values.cases import ModelSpec

Row = dict[str, Any]
"""Keys: model, outcome, reason, batch_size, seconds, load_s, forward_s, peak_bytes, notes."""

RUNS = {"as is", "offline weights"}
MARK = "<!-- Below: written by bench/checkout_models.py --markdown. -->"


def main() -> None:
    """Run what is missing, then print the table."""
    options = _parse()
    checkout = TorchBenchCheckout(options.root, offline_weights=True)
    if options.worker:
        _work(checkout, options)
        return
    done = _read(options.output)
    for spec in checkout.specs():
        if spec.name in done or (options.only and spec.name not in options.only):
            continue
        row = _examine(spec, options)
        done[spec.name] = row
        _append(options.output, row)
        print(f"{row['model']:36} {row['seconds']:6.1f} s  {row['outcome']}: {row['reason']}")
    rows = sorted(done.values(), key=lambda row: row["model"].lower())
    table = markdown(rows)
    print(table)
    if options.markdown:
        page = options.markdown.read_text(encoding="utf-8") if options.markdown.exists() else ""
        options.markdown.write_text(f"{page.partition(MARK)[0]}{MARK}\n\n{table}", encoding="utf-8")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", type=Path, help="the checkout")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="these models alone")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=0, help="0 for each model's own")
    parser.add_argument("--timeout", type=float, default=240.0, metavar="SECONDS")
    parser.add_argument("--memory", type=float, default=8.0, metavar="GIB")
    parser.add_argument("--output", type=Path, help="JSON lines; resumed from if it exists")
    parser.add_argument("--markdown", type=Path, help="put the table at the end of this page")
    parser.add_argument("--worker", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _read(path: Path | None) -> dict[str, Row]:
    """Read what is there; a last line that was cut off is dropped, also from the file."""
    if path is None or not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    rows = [json.loads(line) for line in whole.splitlines()]
    return {row["model"]: row for row in rows}


def _append(path: Path | None, row: Row) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _examine(spec: ModelSpec, options: argparse.Namespace) -> Row:
    """Run one model in a process of its own, unless the table says that it can't."""
    skip = spec.skip_reason(options.device)
    if skip is not None:
        return _row(spec.name, outcome="skip", reason=skip)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        command = [sys.executable, __file__, *sys.argv[1:]]
        command += ["--worker", spec.name, "--result", str(result)]
        reason, log = _run(command, options.timeout)
        written = json.loads(result.read_text()) if result.exists() else {}
    row = _row(spec.name, reason=reason, log=log) | written
    return row | {"seconds": round(time.monotonic() - started, 1)}


def _row(model: str, **values: Any) -> Row:
    return {"model": model, "outcome": "fails", "reason": "", "notes": [], "seconds": 0.0} | values


def _run(command: list[str], timeout_s: float) -> tuple[str, str]:
    """Run a command; say how it ended, and give the end of what it printed."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        output = process.communicate(timeout=timeout_s)[0]
        reason = f"ended with {process.returncode} and said nothing"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
        reason = f"not done after {timeout_s:.0f} s"
    return reason, output.decode(errors="replace")[-3000:]


def _work(checkout: TorchBenchCheckout, options: argparse.Namespace) -> None:
    """Load one model, run it once, and write what came of it."""
    limit = int(options.memory * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    spec = next(spec for spec in checkout.specs() if spec.name == options.worker)
    try:
        row = _load_and_run(checkout, spec, options)
    except Exception as error:  # noqa: BLE001  whatever a model raises is the finding
        first_line = next(iter(str(error).splitlines()), "")
        row = {"reason": f"{type(error).__name__}: {first_line}"}
        import traceback

        traceback.print_exc()
    row["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    options.result.write_text(json.dumps(row))


def _load_and_run(
    checkout: TorchBenchCheckout, spec: ModelSpec, options: argparse.Namespace
) -> Row:
    import torch

    case = Case(
        suite=spec.suite,
        model=spec.name,
        arms=(BASELINE,),
        device=options.device,
        batch_size=options.batch_size or None,
    )
    started = time.monotonic()
    loaded = checkout.load(spec, case)
    loaded_at = time.monotonic()
    with torch.no_grad():
        loaded.module(*loaded.args, **loaded.kwargs)
    return {
        "outcome": "offline weights" if loaded.notes else "as is",
        "reason": "",
        "notes": loaded.notes,
        "batch_size": options.batch_size or "own",
        "load_s": round(loaded_at - started, 1),
        "forward_s": round(time.monotonic() - loaded_at, 1),
    }


def markdown(rows: Iterable[Row]) -> str:
    """Write the table that the documentation holds."""
    rows = list(rows)
    counts = Counter(row["outcome"] for row in rows)
    running = sum(counts[outcome] for outcome in RUNS)
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    lines = [
        f"{running} of {len(rows)} run ({summary}).",
        "",
        "| model | runs | why, or what for |",
    ]
    lines.append("|---|---|---|")
    for row in rows:
        runs = row["outcome"] if row["outcome"] in RUNS else row["outcome"].replace("fails", "no")
        size = row.get("batch_size")
        remark = [f"Batch size {size}."] if size not in {None, "own"} else []
        text = " ".join((*remark, *row["notes"])) or row["reason"]
        lines.append(f"| {row['model']} | {runs} | {text.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
