"""The page for who comes from PyTorch's harness: each of its options, and ours. Pure; no torch."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynamometer.common.command_line.dynamobench.translation import TheirOption

_HEAD = """# Coming from `benchmarks/dynamo`

Command lines of PyTorch's harness can be typed as they are, but for what is refused below:
`./torchbench.py --performance --inductor --bfloat16 --inference -dcuda --output results.csv`. These
are all options of its `common.py`, with what comes of each here:

- *the same*: an option of ours, typed alike;
- *becomes*: another option of ours is taken in its place;
- *not needed*: what it asks for is done anyway. It is taken, and a line says so;
- *no*: it is refused, with what is done instead.

What differs without any option:

- Options are typed in full (`--accuracy`, not `--acc`), and each flag apart (`-v -q`, not `-vq`).
- Several processes measure each case (`-r 1` takes one), and speedups come with intervals. Theirs
  measures in one.
- Results are compared with eager's in every timed run, and an arm that is wrong has no speedup.
- `--inductor` runs with Inductor's own defaults; theirs turns CUDA graphs on unless
  `--disable-cudagraphs` is given. Here `-c cudagraphs` does.
- `--inference` and `--performance` are defaults. Theirs asks for both.
- `-d cpu` is the default. Theirs takes CUDA where there is one. Accelerators other than CUDA have
  its batch sizes and tolerances.
- On CUDA float32 matrices are multiplied in float32. Theirs takes TF32, as here
  `--matmul-precision high` does ([gpu.md](gpu.md)).
- Every model is in the suite's tables: nothing is downloaded, and weights are random.
  `--torchbench-root DIR` runs the models of a checkout of pytorch/benchmark.
- `unique_graph_breaks` counts reasons by their first lines. Theirs counts whole texts, so that two
  calls that Dynamo can't follow, of two functions, are two there and one here.
- Results are in a directory of the run, below `--output-dir`; columns are in
  [columns.md](columns.md), and statuses in [statuses.md](statuses.md).

| theirs | here | |
|---|---|---|
"""


def page(options: Mapping[str, TheirOption]) -> str:
    """Return the page.

    Args:
        options: all of theirs, by their first spelling.
    """
    return _HEAD + "".join(_row(name, option) for name, option in options.items())


def _row(name: str, option: TheirOption) -> str:
    spellings = ", ".join(f"`{each}`" for each in (name, *option.also))
    if option.same is not None:
        kind, text = "the same", option.same
    elif option.becomes:
        kind, text = "becomes", f"`{shlex.join(each.format('X') for each in option.becomes)}`"
    elif option.needless is not None:
        kind, text = "not needed", option.needless
    else:
        kind, text = "no", (option.refused or "").format("X")
    return f"| {spellings} | {kind} | {text} |\n"
