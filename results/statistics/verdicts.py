"""What a run's speedups come to when they are judged together. Pure functions; no torch."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.results.statistics.replicates import between_sd_of, log_speedups, speedup_over
from dynamometer.results.statistics.significance import (
    LATENCY_FLOOR,
    MOST_REPLICATES,
    Verdict,
    adjusted,
    moderated,
    replicates_to_settle,
    verdict,
)
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.results.statistics.significance import Mean
    from dynamometer.results.statistics.summary import CaseSummary
    from dynamometer.results.values.records import Ratio


@dataclass(frozen=True)
class Judgement:
    """One arm of a case against another.

    Attributes:
        case: whose.
        base: what the arm is compared with, the baseline or another backend.
        arm: which is judged.
        ratio: its speedup over `base`.
        adjusted_p: the p-value among all judged with it; `None` where nothing is concluded.
        verdict: on the arm.
    """

    case: CaseSummary
    base: str
    arm: str
    ratio: Ratio
    adjusted_p: float | None
    verdict: Verdict

    @property
    def reason(self) -> str:
        """Why the verdict is what it is; where it is UNCLEAR also what would settle it."""
        if self.case.is_disturbed:
            return "something else kept the machine busy: measure again when nothing does"
        if self.adjusted_p is None:
            return (
                "its arms disturb each other, and not every replicate has isolated runs:"
                " measure again with one backend, or fewer threads (-t)"
            )
        low, high = self.ratio.low, self.ratio.high
        interval, floor = f"interval [{low:.3f}, {high:.3f}]", f"{LATENCY_FLOOR:.0%}"
        match self.verdict:
            case Verdict.EQUIVALENT:
                return f"{interval} lies within {floor}"
            case Verdict.FASTER | Verdict.SLOWER:
                return f"{interval} lies beyond {floor}, adjusted p={self.adjusted_p:.2g}"
            case Verdict.UNCLEAR:
                return self._why_unclear(interval, floor, self.adjusted_p)

    def _why_unclear(self, interval: str, floor: str, adjusted_p: float) -> str:
        half_width = math.log(self.ratio.high / self.ratio.low) / 2
        if self.ratio.low > 1 + LATENCY_FLOOR or self.ratio.high < 1 / (1 + LATENCY_FLOOR):
            text = f"{interval} lies beyond {floor}, but adjusted p={adjusted_p:.2g}"
        elif half_width >= math.log1p(LATENCY_FLOOR):
            text = f"{interval} is wider than {floor} on either side"
        else:
            text = f"{interval} is partly within {floor} and partly beyond"
        return f"{text}: {self._what_settles_it(floor, adjusted_p)}"

    def _what_settles_it(self, floor: str, adjusted_p: float) -> str:
        """Say how many replicates would do, if further ones vary as those there are."""
        needed = replicates_to_settle(self._mean, adjusted_p)
        if needed is not None:
            return f"-r {needed}"
        least = math.log1p(LATENCY_FLOOR)
        if abs(abs(math.log(self.ratio.value)) - least) < _NEAR * least:
            return f"it is so near {floor} that replicates hardly settle it"
        return f"it would take more than {MOST_REPLICATES} replicates"

    @property
    def _mean(self) -> Mean:
        records, pair = self.case.records, (self.base, self.arm)
        return moderated(log_speedups(*pair, records), between_sd_of(records, *pair))


_NEAR = 0.25
"""A speedup is near the floor if it is off by less than this share of the floor."""


def judge(cases: Sequence[CaseSummary]) -> list[Judgement]:
    """Judge every pair of arms of every case, the baseline's first, all of them as one family.

    A case that was disturbed, or whose arms disturbed each other, is left out of the family, and
    nothing is concluded from it.
    """
    pairs = [
        (case, base, arm, ratio)
        for case in cases
        for base, arm in _pairs(case)
        if (ratio := speedup_over(base, arm, case.records)) is not None
    ]
    p_values = iter(adjusted([ratio.p_value for case, *_, ratio in pairs if case.is_conclusive]))
    judged = []
    for case, base, arm, ratio in pairs:
        p_value = next(p_values) if case.is_conclusive else None
        found = Verdict.UNCLEAR if p_value is None else verdict(ratio, p_value)
        judged.append(Judgement(case, base, arm, ratio, p_value, found))
    return judged


def _pairs(case: CaseSummary) -> list[tuple[str, str]]:
    passed = [arm.name for arm in case.arms if arm.outcome.status is Status.PASS]
    return [*((BASELINE, arm) for arm in passed), *itertools.combinations(passed, 2)]
