#!/usr/bin/env python3
"""Show how far short calls differ from process to process, with all threads and with one.

    python bench/short_calls.py --processes 20

Each process calls the network of lennard_jones (batch of 1,000, eager, less than a millisecond) and
prints its median latency. With one thread the processes agree within some percent. With several,
the latency depends on how far the threads sit from each other, which whoever places them decides,
the kernel or the host of a virtual machine. docs/measuring.md, "Short calls", says what follows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

_WARM_UP_S = 1.0
_CALLS = 2000
_LEAST = 2


def main() -> int:
    """Run the processes in turn, and print what each says and how far they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=20, help="for each number of threads")
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.threads:
        print(_latency_s(options.threads))
        return 0
    if options.processes < _LEAST:
        parser.error(f"--processes must be at least {_LEAST}: one does not differ from itself")
    everything = len(os.sched_getaffinity(0))
    found: dict[int, list[float]] = {1: [], everything: []}
    for _ in range(options.processes):
        for threads, latencies in found.items():
            command = [sys.executable, __file__, "--threads", str(threads)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            latencies.append(float(done.stdout))
    for threads, latencies in found.items():
        shown = " ".join(f"{latency_s * 1e6:.0f}" for latency_s in latencies)
        off = statistics.stdev(latencies)
        print(f"{threads} thread(s): {shown} us; standard deviation {off * 1e6:.1f} us")
    return 0


def _latency_s(threads: int) -> float:
    import torch

    from dynamometer.models.builders.lennard_jones import build_lennard_jones

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    loaded = build_lennard_jones(batch_size=1000, hidden=[16, 16, 16, 16])
    latencies = []
    with torch.inference_mode():
        end = time.perf_counter() + _WARM_UP_S
        while time.perf_counter() < end:
            loaded.module(*loaded.args)
        for _ in range(_CALLS):
            started = time.perf_counter()
            loaded.module(*loaded.args)
            latencies.append(time.perf_counter() - started)
    return statistics.median(latencies)


if __name__ == "__main__":
    raise SystemExit(main())
