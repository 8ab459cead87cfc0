"""The arms that a calibration measures, whose speedups over each other are known. No torch."""

from __future__ import annotations

from dynamometer.results.values.cases import BASELINE

_KNOWN = "dynamometer.dynamo.known"
_EAGER_AGAIN = f"{_KNOWN}:eager_again"
_THIRD, _FOURTH = f"{_KNOWN}:eager_third", f"{_KNOWN}:eager_fourth"
_FIFTH, _SIXTH = f"{_KNOWN}:eager_fifth", f"{_KNOWN}:eager_sixth"
_FIRST, _AGAIN = f"{_KNOWN}:inductor_first", f"{_KNOWN}:inductor_again"
SLOWED = {share: f"{_KNOWN}:slower_by_{share}_percent" for share in (1, 2, 5)}
"""Arms that are slower than eager by these percents."""

PAIRS = {
    (BASELINE, _EAGER_AGAIN): 1.0,
    (_THIRD, _FOURTH): 1.0,
    (_FIFTH, _SIXTH): 1.0,
    (_FIRST, _AGAIN): 1.0,
    **{(BASELINE, arm): 1 / (1 + share / 100) for share, arm in SLOWED.items()},
}
"""Pairs of arms, with the speedup of the second over the first, which is known."""

OF_EAGER = (BASELINE, _EAGER_AGAIN)
OF_INDUCTOR = (_FIRST, _AGAIN)
"""The pair that tells later runs how far processes of Inductor differ."""

TAUGHT = (BASELINE, "inductor")
"""The arms that these stand for."""

IN_ISOLATION = ((BASELINE, _EAGER_AGAIN, SLOWED[5]), (_THIRD, _FOURTH))
"""Groups of arms that may have isolated runs besides (`calibrate --isolated`)."""

ARMS = tuple(dict.fromkeys(arm for pair in PAIRS for arm in pair))
