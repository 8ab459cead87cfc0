"""What Dynamo costs where it runs graphs as they are, and what of it is guards. Pure; no torch."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tabulate import tabulate

from dynamometer.results.reports.texts import count_text, share_text
from dynamometer.results.statistics.significance import geometric_mean
from dynamometer.results.values.cases import NO_BACKEND
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.statistics.summary import CaseSummary
    from dynamometer.results.values.records import Estimate, Ratio

_SHOWN = 10


@dataclass(frozen=True)
class Overhead:
    """What Dynamo adds to a step of one model.

    Attributes:
        name: the model.
        speedup: of Dynamo over eager; below 1 where it costs something.
        eager_s: seconds of a step in eager.
        guards: how many are checked; `None` if that is not known.
        guards_s: seconds of a step in which Dynamo looks for compiled code, and so checks guards;
            `None` if that is not known.
    """

    name: str
    speedup: Ratio
    eager_s: float
    guards: int | None
    guards_s: float | None

    @property
    def added_s(self) -> float:
        """Seconds it adds to a step; less than 0 where it saves some."""
        return self.eager_s * (1 / self.speedup.value - 1)

    @property
    def share_of_guards(self) -> float | None:
        """Guards' share of what it adds; `None` unless it is certain to add something.

        Over 1 where the rest saves time, as graphs do without the code of modules.
        """
        if self.guards_s is None or self.speedup.high >= 1:
            return None
        return self.guards_s / self.added_s


def overheads(cases: Sequence[CaseSummary]) -> list[Overhead]:
    """Return what Dynamo adds to each model that was timed without a backend; the most first."""
    found = [
        Overhead(
            name=case.case.label,
            speedup=arm.speedup,
            eager_s=case.baseline.latency_s,
            guards=arm.capture.guards if arm.capture else None,
            guards_s=arm.capture.guards_s if arm.capture else None,
        )
        for case in cases
        for arm in case.arms
        if arm.name == NO_BACKEND and arm.outcome.status is Status.PASS
        and arm.speedup and case.baseline.latency_s and case.is_conclusive
    ]  # fmt: skip
    return sorted(found, key=lambda each: each.speedup.value)


def lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Return what Dynamo costs on average, and on the models where it costs most."""
    found = overheads(cases)
    asked = [
        arm
        for case in cases
        if case.is_timed and case.outcome.status is not Status.SKIP
        for arm in case.arms
        if arm.name == NO_BACKEND
    ]
    average = geometric_mean([each.speedup for each in found])
    if average is None:
        text = "what Dynamo costs without a backend is not known: nothing conclusive was timed"
        return ["", text] if any(arm.speedup for arm in asked) else []
    worst = found[0]
    text = f"Dynamo without a backend costs {_cost(average)} on average of"
    text += f" {count_text(len(found), 'model')}"
    text += f" ({len(asked) - len(found)} left out: failed or disturbed)" * (
        len(asked) > len(found)
    )
    rows = [
        [each.name, _cost(each.speedup), _microseconds(each.added_s), each.guards,
         _microseconds(each.guards_s), share_text(each.share_of_guards)]
        for each in found[:_SHOWN]
    ]  # fmt: skip
    headers = ["model", "overhead", "per step", "guards", "guard lookup", "lookup / overhead"]
    align = ("left", *("right" for _ in headers[1:]))
    table = tabulate(rows, headers=headers, disable_numparse=True, colalign=align).splitlines()
    return ["", f"{text}; worst {_cost(worst.speedup)} ({worst.name})", *_guards(found), "", *table]


def _guards(found: Sequence[Overhead]) -> list[str]:
    """Return what looking for compiled code takes of a step, whether or not Dynamo adds to it."""
    shares = [each.guards_s / each.eager_s for each in found if each.guards_s is not None]
    if not shares:
        return []
    text = f"to check guards takes {statistics.fmean(shares):.1%} of an eager step on average"
    return [f"{text}, {max(shares):.1%} at most"]


def _cost(speedup: Estimate) -> str:
    cost, low, high = (1 / each - 1 for each in (speedup.value, speedup.high, speedup.low))
    return f"{cost:+.1%} [{low:+.1%}, {high:+.1%}]"


def _microseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e6 * seconds:,.1f} us"
