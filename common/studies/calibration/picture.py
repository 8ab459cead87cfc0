"""A picture of a calibration's results, where matplotlib is there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dynamometer.common.studies.calibration.arms import PAIRS
from dynamometer.results.store.atomic_file import replacing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dynamometer.common.studies.calibration.evaluation import NaiveTest, Series


def draw(path: Path, found: Sequence[Series], naive: Sequence[NaiveTest]) -> bool:
    """Draw every result of identical arms, ours and the usual; tell whether that was possible."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    same = sorted(
        (each for each in found if each.truth == 1.0 and each.is_conclusive),
        key=lambda each: each.ratio.value,
    )
    other = sorted((each for each in naive if PAIRS[each.pair] == 1.0), key=lambda each: each.value)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    right.tick_params(labelleft=False)
    for index, each in enumerate(same):
        color = "C3" if each.is_significant else "C0"
        left.plot([index] * 2, [_percent(each.ratio.low), _percent(each.ratio.high)], color=color,
                  linewidth=0.7)  # fmt: skip
        left.plot(index, _percent(each.ratio.value), ".", color=color, markersize=3)
    for index, test in enumerate(other):
        color = "C3" if test.is_significant else "C0"
        right.plot(index, _percent(test.value), ".", color=color, markersize=3)
    false = sum(each.is_significant for each in same)
    wrong = sum(each.is_significant for each in other)
    left.set_title(f"ours: {false} of {len(same)} called different")
    right.set_title(f"usual: {wrong} of {len(other)} called different")
    left.set_ylabel("identical arms: difference found, %")
    for axes in (left, right):
        axes.axhline(0, color="0.6", linewidth=0.8, zorder=0)
        axes.set_xlabel("results, sorted")
    left.set_yscale("symlog", linthresh=_LINEAR, linscale=2)  # the usual way can be far off
    left.set_yticks(_TICKS, [f"{tick:+d}" if tick else "0" for tick in _TICKS])
    left.set_ylim(_TICKS[0], _TICKS[-1])
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=150, format="png")
    return True


_LINEAR = 3.0
_TICKS = (-100, -30, -10, -3, -2, -1, 0, 1, 2, 3, 10, 30, 100)
"""Of the picture, in percent."""


def _percent(ratio: float) -> float:
    return 100 * math.log(ratio)
