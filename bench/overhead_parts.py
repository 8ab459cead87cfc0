#!/usr/bin/env python3
"""Take apart what Dynamo adds to a step: checking guards, what is around them, and its graphs.

    python bench/overhead_parts.py drq hf_Reformer --output docs/overhead-parts.md

Four ways to run each model of TorchBench at small scale, in turns and in random order: in eager;
compiled without a backend; that with torch's stance that skips what guards it can; and the graphs
alone, one after the other, each with the inputs it had. Differences are of neighbours in this row.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
import torch

from dynamometer.common import registry
from dynamometer.common.interfaces.workload import Workload
from dynamometer.common.machine import allocator
from dynamometer.common.planning.cases import build_cases
from dynamometer.common.planning.selection import Selection, select
from dynamometer.dynamo import state
from dynamometer.dynamo.capture import internals
from dynamometer.dynamo.processor import processor_name
from dynamometer.results.statistics.significance import half_width_log
from dynamometer.results.values.cases import Mode, Scale
from dynamometer.results.values.workers import Allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dynamometer.common.interfaces.suite import LoadedModel

ROUNDS = 60
WARM_UP_S = 1.0
RUN_S = 0.02
"""Calls of one way, one after the other, before it is the next one's turn."""


@dataclass(frozen=True)
class Difference:
    """Microseconds by which one way is slower than another, with a 95 % interval over rounds."""

    mean_us: float
    margin_us: float

    def __str__(self) -> str:
        """Write it with its interval."""
        return f"{self.mean_us:+,.1f} ± {self.margin_us:,.1f}"


def main() -> int:
    """Time the models that are named, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    allocator.apply(Allocator.KEEP)
    lines = [
        "| model | eager us | guards | around them | graphs against eager | overhead | graphs |",
        "|---|---|---|---|---|---|---|",
    ]
    for model in options.models:
        lines.append(_row(model))
        print(lines[-1], flush=True)
    text = _page(lines)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


def _row(model: str) -> str:
    with state.running(Mode.INFERENCE, None):
        ways, graphs = _ways(model)
        found = _time(ways)
    eager_us = statistics.median(found["eager"])
    parts = (
        _difference(found["dynamo"], found["unguarded"]),
        _difference(found["unguarded"], found["graphs"]),
        _difference(found["graphs"], found["eager"]),
        _difference(found["dynamo"], found["eager"]),
    )
    return f"| {model} | {eager_us:,.1f} | {' | '.join(map(str, parts))} | {graphs} |"


def _ways(model: str) -> tuple[dict[str, Callable[[], object]], int]:
    """Return what is timed, and how many calls of graphs a step has."""
    suite = registry.suite("torchbench").open({})
    (spec,) = select(suite.specs(), Selection(only=(model,)))
    (case,) = build_cases([spec], Workload(arms=(), scale=Scale.SMALL))
    state.seed_everything(0)
    loaded = suite.load(spec, case)
    loaded.module.eval()
    args, kwargs = loaded.args, dict(loaded.kwargs)
    calls = _graph_calls(loaded)
    state.forget_compiled()
    compiled = internals.optimize("eager")(loaded.module)

    def graphs_alone() -> None:
        for forward, inputs in calls:
            forward(*inputs)

    return {
        "eager": lambda: loaded.module(*args, **kwargs),
        "dynamo": lambda: compiled(*args, **kwargs),
        "unguarded": lambda: compiled(*args, **kwargs),
        "graphs": graphs_alone,
    }, len(calls)


def _graph_calls(loaded: LoadedModel) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return the graphs one step runs, in order, each with its inputs."""
    seen: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def backend(graph: torch.fx.GraphModule, example_inputs: object) -> Callable[..., Any]:
        del example_inputs

        def run(*inputs: Any) -> Any:
            seen.append((graph.forward, inputs))
            return graph.forward(*inputs)

        return run

    compiled = internals.optimize(backend)(loaded.module)
    compiled(*loaded.args, **dict(loaded.kwargs))
    seen.clear()
    compiled(*loaded.args, **dict(loaded.kwargs))
    return list(seen)


def _time(ways: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Return microseconds a call of each way, one figure for each round."""
    calls = {name: _calls(way) for name, way in ways.items()}
    found: dict[str, list[float]] = {name: [] for name in ways}
    draw = random.Random(0)
    gc.collect()
    gc.disable()
    for _ in range(ROUNDS):
        for name in draw.sample(list(ways), len(ways)):
            with torch.compiler.set_stance(skip_guard_eval_unsafe=name == "unguarded"):
                ways[name]()
                started_s = time.perf_counter()
                for _ in range(calls[name]):
                    ways[name]()
                spent_s = time.perf_counter() - started_s
            found[name].append(1e6 * spent_s / calls[name])
    gc.enable()
    return found


def _calls(way: Callable[[], object]) -> int:
    """Warm up, and give how many calls fill a run."""
    started_s, calls = time.perf_counter(), 0
    while time.perf_counter() - started_s < WARM_UP_S:
        way()
        calls += 1
    return max(2, round(calls * RUN_S / WARM_UP_S))


def _difference(more: list[float], less: list[float]) -> Difference:
    """Compare two ways round by round, without the rounds that differ most.

    Sources:
        J. W. Tukey, D. H. McLaughlin, Sankhya A 25 (1963) 331, and K. K. Yuen, Biometrika 61
        (1974) 165: the error of a trimmed mean is that of all rounds, with the least and the most
        that is kept in the place of what is left out, over the share that is kept.
    """
    each = sorted(one - other for one, other in zip(more, less, strict=True))
    cut = len(each) // 10
    kept = each[cut : len(each) - cut]
    winsorized = [*[kept[0]] * cut, *kept, *[kept[-1]] * cut]
    error_us = statistics.stdev(winsorized) * len(each) ** 0.5 / len(kept)
    return Difference(statistics.fmean(kept), half_width_log(error_us, len(kept) - 1))


_PAGE = """\
# What Dynamo adds to a step, in parts

torch {torch}, {processor}, TorchBench at small scale, inference, {rounds} rounds;
microseconds: means without the tenth of the rounds at either end, with 95 % intervals. Made by
`bench/overhead_parts.py`.

{table}

*Guards* is what torch's stance that skips guards saves; *around them* what it leaves beside the
graphs: looking compiled code up, entering it, and fetching the parameters that are inputs of its
graphs (of several graphs also all that runs between them); *graphs against eager* what running the
graphs alone takes more than the whole model in eager, or less, as the code of modules is not run.
The three add up to about the *overhead*: each mean leaves out rounds of its own.
"""


def _page(lines: list[str]) -> str:
    return _PAGE.format(
        torch=torch.__version__,
        processor=processor_name(),
        rounds=ROUNDS,
        table="\n".join(lines),
    )


if __name__ == "__main__":
    raise SystemExit(main())
