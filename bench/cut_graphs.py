#!/usr/bin/env python3
r"""Find out what it gains to cut graphs in parts, each computed by its best backend.

    dynamometer corpus record torchbench --only resnet18 -o corpus
    python bench/cut_graphs.py cut corpus parts
    dynamometer corpus tune corpus --decisions cuts.sqlite
    dynamometer corpus tune parts --decisions cuts.sqlite
    python bench/cut_graphs.py predict parts --decisions cuts.sqlite
    python bench/cut_graphs.py measure corpus parts --decisions cuts.sqlite --runs runs
    python bench/cut_graphs.py page parts --decisions cuts.sqlite --runs runs \
        --output /tmp/cut-graphs.md

`cut` puts the parts of each graph into a corpus of their own. `predict` adds up the parts' times,
as if boundaries cost nothing: a bound of the gain. `measure` times what the bound leaves open
beside the best single backend, in the same blocks, held to eager. What is done is not done again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
import msgspec
from cut_page import CUT_ARM, LEAST, PLAN_FILE, folder_of, is_done, page, predicted, records_in
from cut_plans import (
    FOLDER,
    Crossing,
    CutGraph,
    CutPart,
    CutPoint,
    decided,
    plans,
    read,
    write,
)
from exit_codes import worst

from dynamometer.results.store.decisions import Decisions
from dynamometer.results.store.graphs.corpus import Corpus
from dynamometer.results.values.cases import NO_BACKEND, Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cut_plans import Plan, Timed
    from cut_points import Point
    from torch import fx

    from dynamometer.results.values.decisions import Setting
    from dynamometer.results.values.graphs import Origin

ROOT = Path(__file__).resolve().parent.parent
_SEED = 0


def main() -> int:
    """Do what is asked for."""
    options = _parser().parse_args()
    return options.do(options) or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("cut", help="put the parts of graphs into a corpus")
    one.add_argument("corpus", type=Path)
    one.add_argument("parts", type=Path)
    one.add_argument("--most-cuts", type=int, default=3, help="of a graph")
    one.add_argument("--most-live", type=int, default=3, help="tensors that cross a cut")
    one.add_argument("--least-ms", type=float, default=1.0, help="of a graph that is cut")
    one.set_defaults(do=_cut)
    one = commands.add_parser("predict", help="print bounds of the gain")
    _add_common(one)
    one.set_defaults(do=_predict)
    one = commands.add_parser("measure", help="time graphs in parts beside the best backend")
    one.add_argument("corpus", type=Path)
    _add_common(one)
    one.add_argument("--runs", type=Path, required=True, help="where runs are kept")
    one.add_argument(
        "--least", type=float, default=LEAST, help="bound of the gain that is measured"
    )
    one.add_argument("-r", "--replicates", type=int, default=5)
    one.set_defaults(do=_measure)
    one = commands.add_parser("page", help="write what came of it")
    _add_common(one)
    one.add_argument("--runs", type=Path, help="of `measure`")
    one.add_argument("--output", type=Path)
    one.set_defaults(do=_page)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("parts", type=Path)
    parser.add_argument("--decisions", type=Path, required=True)


def _cut(options: argparse.Namespace) -> None:
    """Cut each graph that was not looked at."""
    corpus, parts = Corpus(options.corpus), Corpus.made(options.parts)
    for path in map(corpus.path, corpus.keys()):
        if not (parts.folder / FOLDER / f"{path.stem}.json").exists():
            found = cut_graph(path, parts, options)
            write(parts.folder / FOLDER, found)
            shares = ", ".join(f"{each.share:.0%}" for each in found.points)
            print(
                f"{found.name} {path.stem[:12]}: {found.why_not or f'cut at {shares}'}", flush=True
            )


def cut_graph(path: Path, parts: Corpus, options: argparse.Namespace) -> CutGraph:
    """Cut a graph, and put its parts into a corpus.

    Args:
        path: of its file.
        parts: the corpus.
        options: most cuts and live tensors, least milliseconds.
    """
    from cut_points import choose, observe, points
    from cutting import operations

    from dynamometer.dynamo.graphs.inputs import draw
    from dynamometer.dynamo.graphs.saved import load

    graph, description = load(path)
    found = CutGraph(description.key, description.origin.name, len(operations(graph)))
    refuse = partial(msgspec.structs.replace, found)
    if description.is_dynamic or description.origin.mode is not Mode.INFERENCE:
        return refuse(why_not="it is for sizes that vary, or for training")
    given = draw(description.inputs, _SEED)
    try:
        seen = observe(graph, given)
    except Exception as error:  # noqa: BLE001  inputs are drawn one by one, and may not fit
        return refuse(why_not=f"it fails on inputs that are drawn: {type(error).__name__}")
    found = msgspec.structs.replace(found, seconds=sum(seen.seconds))
    refuse = partial(msgspec.structs.replace, found)
    if found.seconds < options.least_ms / 1e3:
        return refuse(why_not=f"it takes less than {options.least_ms:g} ms")
    chosen = choose(points(graph, seen, options.most_live), options.most_cuts)
    if not chosen:
        return refuse(why_not=f"nowhere do at most {options.most_live} tensors cross alone")
    return msgspec.structs.replace(
        found,
        points=tuple(map(_point, chosen)),
        parts=tuple(
            _save(graph, given, description.origin, [each.place for each in chosen], parts)
        ),
    )


def _point(point: Point) -> CutPoint:
    live = (Crossing(each.shape, each.dtype, each.bytes) for each in point.live)
    return CutPoint(point.place, point.share, tuple(live))


def _save(
    graph: fx.GraphModule,
    given: Sequence[Any],
    origin: Origin,
    places: Sequence[int],
    corpus: Corpus,
) -> list[CutPart]:
    """Save all parts but the whole, with inputs as they are when the graph is run."""
    from cutting import cut, operations, part

    from dynamometer.dynamo import state
    from dynamometer.dynamo.placeholders import placeholders

    edges, pieces = (0, *places, len(operations(graph))), cut(graph, places)
    values: dict[fx.Node, Any] = dict(zip(placeholders(graph), given, strict=True))
    found = []
    with state.without_gradients():
        for first, piece in enumerate(pieces):
            for end in range(first + 1, len(edges)):
                if end - first == len(pieces):
                    continue
                one = part(graph, edges[first], edges[end])
                name = f"{origin.model}-{first + 1}to{end}of{len(pieces)}"
                own = msgspec.structs.replace(origin, model=name)
                key, why_not = _save_part(
                    one.graph, [values[node] for node in one.inputs], own, corpus
                )
                found.append(CutPart(first, end, key, why_not))
            made = piece.graph(*[values[node] for node in piece.inputs])
            values |= zip(piece.outputs, made, strict=True)
    return found


def _save_part(
    graph: fx.GraphModule, inputs: Sequence[Any], origin: Origin, corpus: Corpus
) -> tuple[str, str | None]:
    """Save a part unless it is there; return its key, and why it can't be saved."""
    from dynamometer.dynamo.graphs.saved import Captured
    from dynamometer.dynamo.graphs.targets import UnsaveableError

    captured = Captured.of(graph, inputs)
    try:
        if not corpus.path(captured.key).exists():
            captured.save(corpus.path(captured.key), inputs, origin)
    except UnsaveableError as error:
        return captured.key, str(error)
    return captured.key, None


def _predict(options: argparse.Namespace) -> None:
    """Print the bound of each graph, and how many parts have no decision."""
    graphs = _graphs(options.parts)
    known = decided(Decisions(options.decisions), graphs)
    print("\n".join(predicted(graphs, known)))


def _graphs(parts: Path) -> list[CutGraph]:
    """Return the graphs that `cut` looked at; ends the script if there are none."""
    found = read(parts / FOLDER)
    if not found:
        print(f"{parts} holds no parts of graphs: make it with `cut`", file=sys.stderr)
        raise SystemExit(2)
    return found


def _measure(options: argparse.Namespace) -> int:
    """Measure each graph whose bound leaves a gain open, unless its plan was measured."""
    graphs, codes = _graphs(options.parts), []
    known = decided(Decisions(options.decisions), graphs)
    for graph in graphs:
        found = plans(graph, known.timed)
        if not found or found[0].bound.value < 1 + options.least:
            continue
        whole = known.timed[graph.key]
        folder = folder_of(options.runs, graph, found[0], whole)
        if is_done(records_in(folder), options.replicates):
            continue
        print(f"{graph.name}: {_said(found[0])} beside {whole.arm}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PLAN_FILE).write_bytes(msgspec.json.encode(found[0].planned(graph)))
        path = Corpus(options.corpus).path(graph.key)
        codes.append(_run(path, folder, whole, known.setting, options))
    return worst(codes)


def _said(plan: Plan) -> str:
    return " | ".join(arm for *_, arm in plan.parts)


def _run(
    path: Path, folder: Path, best: Timed, setting: Setting | None, options: argparse.Namespace
) -> int:
    """Time a graph in parts beside the best single backend, and return the exit code."""
    assert setting is not None, "there are decisions"
    single = [] if best.arm == NO_BACKEND else ["--backend", best.arm]
    command = [
        *(sys.executable, "-m", "dynamometer", "run", str(path.resolve())),
        *(*single, "--backend", CUT_ARM, "-r", str(options.replicates)),
        *("--output-dir", str(folder), "-t", str(setting.threads)),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'bench'}:{ROOT}",
        "CUT_GRAPHS_PLAN": str((folder / PLAN_FILE).resolve()),
    }
    return subprocess.run(command, check=False, env=environment).returncode


def _page(options: argparse.Namespace) -> None:
    """Write the page."""
    graphs = _graphs(options.parts)
    text = page(graphs, decided(Decisions(options.decisions), graphs), options.runs)
    print(text)
    if options.output:
        options.output.write_text(text)


if __name__ == "__main__":
    raise SystemExit(main())
