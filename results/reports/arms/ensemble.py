"""What arms that are made of decisions used, as text: how often, for how long, and what it cost."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tabulate import tabulate

from dynamometer.results.reports.texts import number_text, share
from dynamometer.results.statistics.breakeven import breakeven
from dynamometer.results.values.choices import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dynamometer.results.statistics.summary import ArmSummary, CaseSummary
    from dynamometer.results.values.choices import Choice


@dataclass(frozen=True)
class Use:
    """What one arm of a case was made of.

    Attributes:
        case: whose.
        arm: made of decisions.
        choices: what it used, from its first replicate.
    """

    case: CaseSummary
    arm: ArmSummary
    choices: tuple[Choice, ...]

    @property
    def whole(self) -> Choice | None:
        """What was decided for the model as a whole."""
        return next((each for each in self.choices if each.subject is Subject.MODEL), None)

    @property
    def parts(self) -> tuple[Choice, ...]:
        """What computes: graphs, or else the model as a whole."""
        graphs = tuple(each for each in self.choices if each.subject is Subject.GRAPH)
        return graphs or self.choices

    @property
    def tuning_s(self) -> float:
        """Seconds that the decisions it used took."""
        return math.fsum(each.tuning_s for each in self.choices)

    @property
    def predicted(self) -> float | None:
        """The speedup that was measured when it was decided."""
        known = [self.whole] if self.whole else list(self.parts)
        pairs = [(each.eager_s, each.chosen_s, each.count) for each in known]
        eager_s = [eager * count for eager, _, count in pairs if eager is not None]
        chosen_s = [chosen * count for _, chosen, count in pairs if chosen is not None]
        whole = len(eager_s) == len(chosen_s) == len(pairs) and pairs
        return sum(eager_s) / sum(chosen_s) if whole and sum(chosen_s) else None

    @property
    def achieved(self) -> float | None:
        """The speedup that this run measured; `None` where it can't be counted on."""
        if self.arm.speedup is None or not self.case.is_conclusive:
            return None
        return self.arm.speedup.value

    @property
    def pays_after_calls(self) -> float | None:
        """Calls that save what deciding took; `None` where none saves anything, or it is unsure."""
        eager_s, speedup = self.case.baseline.latency_s, self.arm.speedup
        if eager_s is None or speedup is None or not self.case.is_conclusive:
            return None
        found = breakeven(self.tuning_s, eager_s, speedup)
        return None if found.high is None else found.calls

    @property
    def made_of(self) -> Counter[str]:
        """How many graphs each backend computes."""
        count: Counter[str] = Counter()
        for each in self.parts:
            count[each.arm] += each.count
        return count


def uses(cases: Sequence[CaseSummary]) -> list[Use]:
    """Return what arms that are made of decisions used."""
    return [
        Use(case, arm, found)
        for case in cases
        for arm in case.arms
        if (found := next(_choices(case, arm.name), ()))
    ]


def _choices(case: CaseSummary, name: str) -> Iterator[tuple[Choice, ...]]:
    for record in case.records:
        for result in record.arms:
            if result.arm == name and result.choices:
                yield result.choices


def lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Render how often each backend was chosen, its share of time, and what tuning cost.

    Shares are of the models of whose graphs all times are known.
    """
    found = uses(cases)
    if not found:
        return []
    count: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    undecided = 0
    for use in found:
        count += use.made_of
        undecided += sum(each.count for each in use.parts if not each.is_decided)
    known = [use for use in found if all(each.chosen_s is not None for each in use.parts)]
    for each in (each for use in known for each in use.parts):
        seconds[each.arm] += (each.chosen_s or 0.0) * each.count
    total_s = math.fsum(seconds.values())
    rows = [
        [arm, str(times), share(seconds[arm], total_s) if arm in seconds and total_s else "-"]
        for arm, times in count.most_common()
    ]
    chosen = _table(rows, ["chosen", "times", "share of time"])
    models = [
        [
            use.case.case.label,
            use.arm.name,
            ", ".join(f"{times} {arm}" for arm, times in use.made_of.most_common()),
            number_text(use.predicted, "{:.2f}x"),
            number_text(use.achieved, "{:.2f}x"),
            f"{use.tuning_s:.0f} s",
            number_text(use.pays_after_calls, "{:,.0f}"),
        ]
        for use in found
    ]
    headers = ["model", "arm", "made of", "predicted", "achieved", "tuning", "pays after calls"]
    one, several = (
        "1 graph has no decision: it is",
        f"{undecided} graphs have no decision: they are",
    )
    notes = [f"{one if undecided == 1 else several} eager"] * bool(undecided)
    if 0 < len(known) < len(found):
        some = f"{len(known)} of the {len(found)} rows"
        notes.append(f"shares of time are of {some} of which all graphs' times are known")
    return ["", *chosen, "", *_table(models, headers), *notes]


def _table(rows: list[list[str]], headers: list[str]) -> list[str]:
    return tabulate(rows, headers=headers, disable_numparse=True).splitlines()
