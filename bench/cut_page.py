"""The page of `bench/cut_graphs.py`: what was cut, what that promised, and what it gained."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from cut_plans import Gain, divisions, plans

from dynamometer.results.statistics.replicates import doubt, speedup_over
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.cases import BASELINE, NO_BACKEND
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from cut_plans import CutGraph, CutPoint, Decided, Plan, Timed

    from dynamometer.results.values.records import Record

CUT_ARM = "cut_arm:in_parts"
"""What computes a graph as its plan says."""

PLAN_FILE = "plan.json"
LEAST = 0.03
"""The bound of a gain from which on it is measured."""


def folder_of(runs: Path, graph: CutGraph, plan: Plan, whole: Timed) -> Path:
    """Return where runs of a plan are kept; another plan's are elsewhere."""
    what = msgspec.json.encode([graph.key, plan.planned(graph), whole.arm])
    return runs / f"{graph.key[:12]}-{hashlib.sha256(what).hexdigest()[:6]}"


def records_in(folder: Path) -> list[Record]:
    """Return the records of the run with most of them, of those in a folder."""
    found: list[list[Record]] = []
    for each in sorted(folder.glob("*/manifest.json")):
        try:
            found.append(store.read_records(each.parent))
        except StoreError:  # it was killed before there were any
            continue
    return max(found, key=len, default=[])


def is_done(records: Sequence[Record], replicates: int) -> bool:
    """Return whether there is nothing left to measure: all replicates, or a plan that fails."""
    failed = any(
        each.arm == CUT_ARM and each.outcome.status is not Status.PASS
        for record in records
        for each in record.arms
    )
    return failed or len(records) >= replicates


@dataclass(frozen=True)
class Measured:
    """What timing a plan came to.

    Attributes:
        gain: over the best single backend, where it passed.
        note: what is to be said of it, or why there is none.
    """

    gain: Gain | None
    note: str = ""


def measured(records: Sequence[Record], whole: Timed) -> Measured:
    """Return what a plan gained over the best single backend, in the same blocks."""
    summary = summarize_case(records)
    (arm,) = (each for each in summary.arms if each.name == CUT_ARM)
    if not arm.passed:
        return Measured(None, arm.outcome.line)
    base = BASELINE if whole.arm == NO_BACKEND else whole.arm
    ratio = speedup_over(base, CUT_ARM, records)
    if ratio is None:
        return Measured(None, f"{base} was not timed")
    return Measured(Gain.of(ratio), doubt(records) or "")


_UNTIMED = "it, or parts of it, were not tuned"


def predicted(graphs: Sequence[CutGraph], known: Decided) -> list[str]:
    """Return a line for each graph: the bound of what cutting it gains, and by which plan."""
    lines = []
    for graph in graphs:
        missing = sum(part.key not in known.timed for part in graph.parts)
        found = plans(graph, known.timed)
        if graph.why_not:
            said = f"not cut: {graph.why_not}"
        elif not divisions(graph, known.timed):
            said = _UNTIMED
        elif not found:
            said = "one backend is best at all"
        else:
            said = f"{found[0].bound} by {_parts(found[0])}, beside {known.timed[graph.key].arm}"
        more = f" ({missing} of {len(graph.parts)} parts have no decision)" if missing else ""
        lines.append(f"{graph.name} {graph.key[:12]}: {said}{more}")
    return lines


def page(graphs: Sequence[CutGraph], known: Decided, runs: Path | None) -> str:
    """Return what came of all graphs as Markdown."""
    cut = [each for each in graphs if divisions(each, known.timed)]
    rows = [_row(each, known, runs) for each in cut]
    lines = [
        *_head(graphs, known),
        "",
        *_summary(rows),
        "",
        "## What it gains",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'---|' * len(_COLUMNS)}",
        *(row.text for row in rows),
        "",
        "## Where they were cut",
        "",
        "| graph | cut after | of the time | live tensors | MiB |",
        f"|{'---|' * 5}",
        *(_cut_row(each, point) for each in cut for point in each.points),
        "",
        "## Pieces",
        "",
        "| graph | piece | best | ms in eager | over eager |",
        f"|{'---|' * 5}",
        *(line for each in cut for line in _piece_rows(each, known)),
        "",
        *_not_cut(graphs, known),
    ]
    return "\n".join(lines)


_COLUMNS = (
    *("graph", "operations", "pieces", "best of the whole", "ms", "parts", "bound"),
    *("over one backend", "eager, parts over whole", "measured"),
)


def _head(graphs: Sequence[CutGraph], known: Decided) -> list[str]:
    setting = known.setting
    where = "" if setting is None else (
        f" {setting.threads} threads of {setting.processor}, torch {setting.versions['torch']}."
    )  # fmt: skip
    return [
        "# Graphs in parts",
        "",
        f"Made by `bench/cut_graphs.py` of {len(graphs)} captured graphs.{where}",
        "",
        "Each graph is cut where few tensors are live, near equal shares of eager's time. A",
        "*piece* is what lies between two cuts, a *part* some pieces that follow each other. Every",
        "part was tuned as a graph of its own. *Bound*: how much faster the parts' best candidates",
        "are than the best single candidate for the whole graph if boundaries cost nothing, of the",
        "division for which that is most; being the best of many it is rather too high. *Over one",
        "backend*: over that candidate in each of these parts, so that all times are of parts.",
        "*Measured*: the parts one after the other beside that candidate, in the same blocks, held",
        "to eager. Intervals are 95 %.",
    ]


@dataclass(frozen=True)
class _Row:
    text: str
    bound: Gain | None
    measured: Gain | None


def _row(graph: CutGraph, known: Decided, runs: Path | None) -> _Row:
    whole, found = known.timed[graph.key], plans(graph, known.timed)
    before = (
        f"| {graph.name} `{graph.key[:8]}` | {graph.operations} | {graph.pieces} | `{whole.arm}`"
        f" | {whole.seconds() * 1e3:.2f} |"
    )
    if not found:
        return _Row(f"{before} one backend is best at all | | | | |", None, None)
    best = found[0]
    records = records_in(folder_of(runs, graph, best, whole)) if runs else []
    got = measured(records, whole) if records else Measured(None)
    said = " ".join(filter(None, (str(got.gain) if got.gain else "", got.note.replace("|", "\\|"))))
    over_one = "" if best.over_one is None else f"{best.over_one:.3f}x"
    cells = (_parts(best), best.bound, over_one, f"{best.eager_sum:.3f}", said)
    return _Row(f"{before} {' | '.join(map(str, cells))} |", best.bound, got.gain)


def _parts(plan: Plan) -> str:
    """Return which backend computes which pieces."""
    return ", ".join(f"{_pieces(first, end)} `{arm}`" for first, end, arm in plan.parts)


def _pieces(first: int, end: int) -> str:
    return str(end) if end - first == 1 else f"{first + 1}-{end}"


def _summary(rows: Iterable[_Row]) -> list[str]:
    found = list(rows)
    promising = [each for each in found if each.bound and each.bound.value >= 1 + LEAST]
    timed = [each.measured for each in found if each.measured]
    faster = [each for each in timed if each.log > each.half]
    slower = [each for each in timed if each.log < -each.half]
    most = f"; the most is {max(timed, key=lambda each: each.log)}" if timed else ""
    return [
        f"Of {len(found)} graphs that were cut and tuned, {len(promising)} have a bound of",
        f"{LEAST:.0%} or more. {len(timed)} were measured: {len(faster)} are faster in parts by",
        f"more than the interval, {len(slower)} slower{most}.",
    ]


def _cut_row(graph: CutGraph, point: CutPoint) -> str:
    live = ", ".join(f"{each.dtype} {list(each.shape)}" for each in point.live)
    mib = sum(each.bytes for each in point.live) / 2**20
    cells = (f"{graph.name} `{graph.key[:8]}`", point.place, f"{point.share:.0%}", live or "none")
    return f"| {' | '.join(map(str, cells))} | {mib:.2f} |"


def _piece_rows(graph: CutGraph, known: Decided) -> list[str]:
    rows = []
    for part in graph.parts:
        if part.end - part.first == 1:
            timed = known.timed.get(part.key)
            said = _timed(timed) if timed else f"{part.why_not or 'no decision'} | |"
            rows.append(f"| {graph.name} `{graph.key[:8]}` | {part.end} | {said} |")
    return rows


def _timed(timed: Timed) -> str:
    """Return what eager takes, and what each candidate does over it, the fastest first."""
    ordered = sorted(timed.speedups.items(), key=lambda each: -each[1].log)
    said = ", ".join(f"`{arm}` {gain}" for arm, gain in ordered if arm != NO_BACKEND)
    return f"`{timed.arm}` | {timed.eager_s * 1e3:.2f} | {said}"


def _not_cut(graphs: Sequence[CutGraph], known: Decided) -> list[str]:
    reasons = Counter(
        each.why_not or _UNTIMED for each in graphs if not divisions(each, known.timed)
    )
    if not reasons:
        return []
    rows = [f"| {count} | {reason} |" for reason, count in reasons.most_common()]
    return ["## Not cut", "", "| graphs | why |", "|---|---|", *rows, ""]
