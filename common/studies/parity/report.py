"""What models come to, as PyTorch's posts have it: what works, graphs, breaks, bugs. Pure."""

from __future__ import annotations

import statistics
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tabulate import tabulate

from dynamometer.common.studies.not_captured import reasons
from dynamometer.common.studies.parity.bugs import distinct, normalised
from dynamometer.results.reports.texts import count_text, name_columns, share, share_text
from dynamometer.results.values.parity import (
    NO_FORWARD,
    NOT_A_MODULE,
    NOT_BUILT,
    NOT_IMPORTED,
    NOT_READ,
    NOT_RUN,
)
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dynamometer.common.studies.not_captured import Reason
    from dynamometer.common.studies.parity.summary import ParitySummary

_SHOWN = 10
_ENDS = (NOT_IMPORTED, NOT_BUILT, NOT_RUN)
_TEXT_WIDTH = 60
_GRAPHS = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, None))
"""Numbers of graphs that the distribution counts together, from and to."""


def line(found: ParitySummary) -> str:
    """Render one arm: how it ended in either mode, and in how many graphs."""
    name = name_columns(found.case)
    if not found.works:
        return f"{name} {found.outcome.line}"
    graphs = "" if found.graphs is None else f"{found.graphs:2} graphs {found.ops:4} ops, "
    full = "PASS" if found.works_as_one else found.full_graph.line
    return f"{name} PASS {graphs}full graph {full}"


def closing_lines(found: Sequence[ParitySummary]) -> list[str]:
    """Render what all models come to, for each backend."""
    return [text for arm, own in by_arm(found).items() for text in _lines_of(arm, own)]


def by_arm(found: Iterable[ParitySummary]) -> dict[str, list[ParitySummary]]:
    """Group what was found by the backend's name."""
    arms: defaultdict[str, list[ParitySummary]] = defaultdict(list)
    for each in found:
        arms[each.result.arm].append(each)
    return arms


def _lines_of(arm: str, found: Sequence[ParitySummary]) -> list[str]:
    judged = [each for each in found if each.is_judged]
    return [
        *_how_far(found),
        *_scores(arm, found, judged),
        *_graphs(judged),
        *_most_graphs(judged),
        *_why_graphs_end(judged),
        *_failures(judged),
        *_left_out(found),
    ]


def _how_far(found: Sequence[ParitySummary]) -> list[str]:
    """Render how many classes of a project were imported, built, called and captured."""
    reasons_ = [each.outcome.reason or "" for each in found]
    ends = [sum(text.startswith(how) for text in reasons_) for how in _ENDS]
    if not any(ends) and not any(each.is_given_arguments for each in found):
        return []
    left = sum(not text.startswith((NO_FORWARD, NOT_A_MODULE, NOT_READ)) for text in reasons_)
    rows = [["classes of nn.Module with a forward", left]]
    for what, number in zip(("imported", "built"), ends[:2], strict=True):
        left -= number
        rows.append([what, left])
    rows += [
        ["run in eager", sum(each.is_judged for each in found)],
        ["work compiled", sum(each.works for each in found)],
        ["are one graph", sum(each.works and each.works_as_one for each in found)],
    ]
    return ["", "modules of projects:", *tabulate(rows).splitlines()]


def _scores(arm: str, found: Sequence[ParitySummary], judged: Sequence[ParitySummary]) -> list[str]:
    """Render projects and tests that work, in either mode side by side."""
    left_out = Counter(each.outcome.status for each in found if not each.is_judged)
    without = ", ".join(f"{number} {status}" for status, number in sorted(left_out.items()))
    apart = sum(not each.is_judged_as_one for each in judged)
    rows = [[what, f"{total:,}", f"{passing:,}", _share(passing, total)]
            for what, total, passing in scores(judged)]  # fmt: skip
    table = tabulate(rows, headers=["", "total", "passing", "score"], disable_numparse=True)
    notes = [f"{without} of {len(found)} left out"] if without else []
    notes += [f"{apart} as full graph"] if apart else []
    note = f" ({', '.join(notes)})" if notes else ""
    return ["", f"what works with {arm}{note}:", *table.splitlines()]


def scores(judged: Sequence[ParitySummary]) -> list[tuple[str, int, int]]:
    """Count projects and tests, and those that work, in either mode that was asked for."""
    found = []
    if not all(each.case.nopython for each in judged):
        found += _scores_of("default", judged, lambda each: each.works)
    as_one = [each for each in judged if each.is_judged_as_one]
    return [*found, *_scores_of("full graph", as_one, lambda each: each.works_as_one)]


def _scores_of(
    mode: str, judged: Sequence[ParitySummary], passes: Callable[[ParitySummary], bool]
) -> list[tuple[str, int, int]]:
    projects: defaultdict[str, list[ParitySummary]] = defaultdict(list)
    for each in judged:
        projects[each.project].append(each)
    whole = sum(all(map(passes, own)) for own in projects.values())
    return [
        (f"projects, {mode}", len(projects), whole),
        (f"tests, {mode}", len(judged), sum(map(passes, judged))),
    ]


def _share(passing: int, total: int) -> str:
    return share(passing, total, decimals=1) if total else "-"


def _graphs(judged: Sequence[ParitySummary]) -> list[str]:
    """Render graphs per model, and what they hold."""
    working = [each for each in judged if each.works]
    graphs = [each.graphs for each in working if each.graphs is not None]
    if not graphs:
        return []
    counted = [
        f"{_range(low, high)}: {sum(number in _within(low, high) for number in graphs)}"
        for low, high in _GRAPHS
    ]
    shares = [each.share_of_ops for each in working if each.share_of_ops is not None]
    largest = max(working, key=lambda each: each.largest_graph or 0)
    lines = [
        "",
        f"graphs per model: {statistics.fmean(graphs):.2f} on average; {', '.join(counted)}",
        f"operators in graphs: {sum(each.ops or 0 for each in working):,}",
    ]
    if shares:
        lines.append(
            f"share of operators in graphs: {share_text(statistics.fmean(shares), 1)} on average of"
            f" {count_text(len(shares), 'model')}"
        )
    if largest.largest_graph:
        lines.append(f"largest graph: {largest.largest_graph:,} operators, {largest.case.model}")
    return lines


def _within(low: int, high: int | None) -> range:
    return range(low, sys.maxsize if high is None else high + 1)


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} and more"
    return str(low) if low == high else f"{low} to {high}"


def _most_graphs(judged: Sequence[ParitySummary]) -> list[str]:
    several = [each for each in judged if (each.graphs or 0) > 1]
    several.sort(key=lambda each: (-(each.graphs or 0), each.case.model))
    rows = [[each.case.model, str(each.graphs), str(each.ops)] for each in several[:_SHOWN]]
    return _table("most graphs", rows, ["model", "graphs", "operators"])


def _why_graphs_end(judged: Sequence[ParitySummary]) -> list[str]:
    rows = [
        [
            each.text,
            *map(str, (each.models, each.times, each.not_captured_ops)),
            share_text(alone, 1),
        ]
        for each, alone in ranked_reasons(judged)
    ]
    headers = ["reason", "tests", "breaks", "ops not captured", "one graph without it"]
    return _table("why graphs end", rows, headers)


def ranked_reasons(judged: Sequence[ParitySummary]) -> list[tuple[Reason, float]]:
    """Rank why graphs end, each with the share of tests that would be one graph without it."""
    counted = [each.coverage for each in judged if each.coverage is not None]
    alone: Counter[str] = Counter()
    for coverage in counted:
        causes = {each.reason for each in coverage.not_captured}
        if len(causes) == 1:
            alone.update(causes)
    ranked = sorted(reasons(counted), key=lambda each: (-each.models, each.text))
    return [(each, alone[each.text] / len(judged)) for each in ranked]


def _failures(judged: Sequence[ParitySummary]) -> list[str]:
    failed = [each for each in judged if not each.works]
    bugs = distinct(failed)
    rows = [
        [f"{each.smallest.outcome.status}: {each.message}", each.place, str(each.projects),
         str(len(each.tests)), each.smallest.case.model]
        for each in bugs
    ]  # fmt: skip
    headers = ["bug", "in", "projects", "tests", "smallest test"]
    return _table(f"what fails: {len(bugs)} distinct, of {len(failed)} tests", rows, headers)


def _left_out(found: Sequence[ParitySummary]) -> list[str]:
    """Rank why tests are left out, by what their reasons have in common."""
    skipped = Counter(
        normalised(each.outcome.reason or "")
        for each in found
        if each.outcome.status is Status.SKIP
    )
    rows = [[text, str(number)] for text, number in skipped.most_common()]
    return _table("why tests are left out", rows, ["reason", "tests"])


def _table(title: str, rows: Iterable[Sequence[str]], headers: list[str]) -> list[str]:
    """Render the first rows below a title, if there are any, and say how many more there are.

    Text that is too long goes on below.
    """
    cells = list(rows)
    if not cells:
        return []
    widths = [_TEXT_WIDTH] * len(headers)
    table = tabulate(cells[:_SHOWN], headers=headers, disable_numparse=True, maxcolwidths=widths)
    more = [f"and {len(cells) - _SHOWN:,} more"] if len(cells) > _SHOWN else []
    return ["", f"{title}:", *table.splitlines(), *more]
