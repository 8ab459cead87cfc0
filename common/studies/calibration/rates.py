"""How often a protocol is wrong and right, counted over results whose truth is known. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamometer.common.studies.calibration.arms import OF_INDUCTOR, PAIRS, SLOWED
from dynamometer.results.statistics.significance import wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.common.studies.calibration.evaluation import NaiveTest, Series
    from dynamometer.results.values.records import Estimate


@dataclass(frozen=True)
class Rates:
    """How often a protocol is wrong and right, each with its 95 % interval.

    `None` where there was nothing to count, or the protocol gives no intervals.

    Attributes:
        false_alarms: identical arms that were called different.
        of_eager: of these, eager beside eager.
        of_inductor: of these, Inductor beside Inductor.
        coverage: intervals that hold the truth, of identical arms; pairs of one case with an arm
            in common are not independent, so slowed arms are not counted with them.
        coverage_slowed: likewise, of arms that are slower by 2 %.
        detection: arms slower by so many percent that were called slower.
    """

    false_alarms: Estimate | None
    of_eager: Estimate | None
    of_inductor: Estimate | None
    coverage: Estimate | None
    coverage_slowed: Estimate | None
    detection: dict[int, Estimate | None]


def rates(found: Sequence[Series]) -> Rates:
    """Count how often ours is wrong and right, where it concludes anything."""
    counted = [each for each in found if each.is_conclusive]
    slowed = [each for each in counted if each.pair[1] == SLOWED[2]]
    return _rates(
        counted,
        coverage=_share([each.is_covered for each in counted if each.truth == 1.0]),
        coverage_slowed=_share([each.is_covered for each in slowed]),
    )


def naive_rates(found: Sequence[NaiveTest]) -> Rates:
    """Count how often the usual way is wrong and right."""
    return _rates(found)


def accused(found: Sequence[Series]) -> Estimate | None:
    """Return the share whose arms were said to disturb each other; none of them do."""
    return _share([not each.is_conclusive for each in found if not each.is_disturbed])


def _rates(
    found: Sequence[Series | NaiveTest],
    coverage: Estimate | None = None,
    coverage_slowed: Estimate | None = None,
) -> Rates:
    same = [each for each in found if PAIRS[each.pair] == 1.0]
    return Rates(
        false_alarms=_share([each.is_significant for each in same]),
        of_eager=_share([each.is_significant for each in same if each.pair != OF_INDUCTOR]),
        of_inductor=_share([each.is_significant for each in same if each.pair == OF_INDUCTOR]),
        coverage=coverage,
        coverage_slowed=coverage_slowed,
        detection={
            share: _share([each.is_detected for each in found if each.pair[1] == arm])
            for share, arm in SLOWED.items()
        },
    )


def _share(hits: Sequence[bool]) -> Estimate | None:
    return wilson(sum(hits), len(hits)) if hits else None
