"""What `--fail-on` asks for, and whether a comparison meets it. Pure functions; no torch."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.comparison.findings import OF_VERDICT, told_drift
from dynamometer.results.comparison.quantities import EAGER_LATENCY
from dynamometer.results.values.comparison import REGRESSIONS, Change, Gate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dynamometer.results.values.comparison import Column, Comparison

REGRESSION = "regression"

_CHANGES = {
    REGRESSION: REGRESSIONS,
    **{each.value.replace(" ", "-"): frozenset({each}) for each in Change},
}
_METRICS = {change: metric for (metric, _), change in OF_VERDICT.items()}
"""The metric whose verdicts lead to each kind of finding that is measured."""
_OPERATORS = {"<": operator.lt, ">": operator.gt}
_FIGURE = re.compile(
    r"(?P<name>[a-z]+)\s*(?P<sign>[<>])\s*(?P<limit>\d+(?:\.\d+)?)\s*(?P<unit>[%xs]?)"
)


def _passrate(column: Column) -> float | None:
    share = column.passrate[1]
    return 100 * share.passed / share.counted if share.counted else None


_FIGURES: dict[str, Callable[[Column], float | None]] = {
    "passrate": _passrate,
    "speedup": lambda column: column.speedup.after,
    "comptime": lambda column: column.compile_time.after,
    "memory": lambda column: column.memory_ratio.after,
}
"""Those of the table, on the side after, over its own models."""
_UNITS = {"passrate": "%", "speedup": "x", "comptime": "s", "memory": "x"}
"""Of each, which may be left out."""


@dataclass(frozen=True)
class Condition:
    """One condition that fails a comparison.

    Attributes:
        text: as it was typed.
        changes: kinds of findings of which there must be none.
        figure: of the table, which must not be beyond a limit; `None` where it is about findings.
        sign: `<` or `>`.
        limit: a number.
    """

    text: str
    changes: frozenset[Change] = frozenset()
    figure: str | None = None
    sign: str = "<"
    limit: float = 0.0

    def is_met(self, figure: float) -> bool:
        """Return whether a figure is beyond the limit."""
        return bool(_OPERATORS[self.sign](figure, self.limit))


def parse(text: str) -> list[Condition]:
    """Read conditions, separated by commas.

    Raises:
        ValueError: one is none; says which there are, or which unit it has.
    """
    return [_parse(each.strip()) for each in text.split(",") if each.strip()]


def _parse(text: str) -> Condition:
    if text in _CHANGES:
        return Condition(text, changes=_CHANGES[text])
    found = _FIGURE.fullmatch(text)
    if found is None or found["name"] not in _FIGURES:
        figures = ", ".join(f"{name}{sign}N" for name in _FIGURES for sign in "<>")
        msg = f"{text!r} is no condition: there are {', '.join(_CHANGES)}, and {figures}"
        raise ValueError(msg)
    name, limit, unit = found["name"], float(found["limit"]), found["unit"]
    if unit not in {"", _UNITS[name]}:
        msg = f"{text!r} is no condition: the unit of {name} is {_UNITS[name]}"
        raise ValueError(msg)
    if name == "passrate" and not unit and 0 < limit <= 1:
        msg = f"{text!r} is no condition: passrate is in per cent, as passrate<95 or passrate<0.5%"
        raise ValueError(msg)
    return Condition(text, figure=name, sign=found["sign"], limit=limit)


def evaluated(condition: Condition, comparison: Comparison) -> Gate:
    """Return what of a comparison meets a condition.

    A figure that is not known meets it as well: who asks for a speedup wants one to be there.
    """
    hits = _columns(condition, comparison) if condition.figure else _changes(condition, comparison)
    unjudged = tuple(_unjudged(condition, comparison))
    return Gate(condition=condition.text, hits=tuple(hits), unjudged=unjudged)


def _unjudged(condition: Condition, comparison: Comparison) -> list[str]:
    """Return the metrics a condition asks about of which no model tells anything.

    Only what is judged by its verdicts is asked after: not how models end, nor what is captured.
    """
    judged = {each.metric for each in comparison.counts}
    judged |= {EAGER_LATENCY.name} if told_drift(comparison.drift) else set()
    return sorted({_METRICS[each] for each in condition.changes if each in _METRICS} - judged)


def _changes(condition: Condition, comparison: Comparison) -> Iterator[str]:
    for each in comparison.findings:
        if each.change in condition.changes:
            yield f"{each.subject}: {each.change}, {each.text}"


def _columns(condition: Condition, comparison: Comparison) -> Iterator[str]:
    figure = _FIGURES[str(condition.figure)]
    for table in comparison.tables:
        for column in table.columns:
            found = figure(column)
            if found is None:
                yield f"{table.title}, {column.name}: not known"
            elif condition.is_met(found):
                yield f"{table.title}, {column.name}: {_told(found, condition)}"


def _told(figure: float, condition: Condition) -> str:
    """Write a figure and its unit, with three digits or as many as show it beyond the limit."""
    texts = (f"{figure:.{digits}g}" for digits in range(3, 18))
    told = next(each for each in texts if condition.is_met(float(each)))
    return f"{told}{_UNITS[str(condition.figure)]}"
