"""What timed parts say of a graph, and how that is shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from cut_page import CUT_ARM, Measured, folder_of, is_done, measured, page, predicted
from cut_plans import (
    Crossing,
    CutGraph,
    CutPart,
    CutPoint,
    Decided,
    Gain,
    PlannedPart,
    Timed,
    decided,
    plans,
    read,
    write,
)

from dynamometer.results.store.decisions import Decisions
from dynamometer.results.values.cases import BASELINE, NO_BACKEND
from dynamometer.results.values.decisions import Evidence
from dynamometer.results.values.records import PASSED, ArmResult, Ratio

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.values.decisions import Decision

LIVE = (Crossing((1, 8), "float32", 32),)
GRAPH = CutGraph(
    key="w" * 64,
    name="mine/net",
    operations=10,
    seconds=0.01,
    points=(CutPoint(3, 0.3, LIVE), CutPoint(7, 0.6, LIVE)),
    parts=tuple(
        CutPart(first, end, f"{first}{end}")
        for first, end in [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    ),
)


RATIO = Ratio(value=2.0, low=1.6, high=2.5, n=3, p_value=0.01)


def timed(eager_s: float, half: float = 0.01, **speedups: float) -> Timed:
    """Make what was timed."""
    gains = {arm: Gain(math.log(each), half) for arm, each in speedups.items()}
    return Timed(eager_s, {NO_BACKEND: Gain(0.0, 0.0), **gains})


KNOWN = {
    GRAPH.key: timed(0.010, 0.02, inductor=2.0, onnxrt=1.5),
    "01": timed(0.003, inductor=1.5, onnxrt=3.0),
    "02": timed(0.006, inductor=2.0),
    "12": timed(0.003, inductor=1.5),
    "13": timed(0.007, inductor=2.0),
    "23": timed(0.004, inductor=2.5),
}


def test_the_bound_is_of_shares_of_eager_each_by_its_own_speedup() -> None:
    """Neighbours with one backend are one part, as it was timed."""
    (plan,) = plans(GRAPH, KNOWN)
    assert plan.parts == ((0, 1, "onnxrt"), (1, 3, "inductor"))
    seconds = 0.003 / 3.0 + 0.007 / 2.0
    assert plan.bound.value == pytest.approx(0.010 / seconds / 2.0)
    assert plan.over_one == pytest.approx((0.003 / 1.5 + 0.007 / 2.0) / seconds)
    assert plan.eager_sum == pytest.approx(1.0)
    shares = (0.001 / seconds, 0.0035 / seconds)
    assert plan.bound.half == pytest.approx(
        math.sqrt((0.01 * shares[0]) ** 2 + (0.01 * shares[1]) ** 2 + 0.02**2)
    )
    assert plan.planned(GRAPH) == [PlannedPart(0, 3, "onnxrt"), PlannedPart(3, 10, "inductor")]


def test_what_was_not_timed_as_one_part_is_added_up() -> None:
    """So pieces alone say what there is to gain."""
    (plan,) = plans(GRAPH, {key: each for key, each in KNOWN.items() if key != "13"})
    assert plan.parts == ((0, 1, "onnxrt"), (1, 3, "inductor"))
    seconds = 0.003 / 3.0 + 0.003 / 1.5 + 0.004 / 2.5
    assert plan.bound.value == pytest.approx(0.010 / seconds / 2.0)


def test_the_best_plan_comes_first() -> None:
    """Of all whose parts were timed."""
    found = plans(GRAPH, {**KNOWN, "12": timed(0.003, openvino=9.0)})
    assert [[arm for *_, arm in each.parts] for each in found] == [
        ["onnxrt", "openvino", "inductor"],
        ["onnxrt", "inductor"],
    ]
    assert found[0].bound.log > found[1].bound.log
    assert found[0].over_one is None  # a part can't be computed with the best of the whole


@pytest.mark.parametrize("missing", [{GRAPH.key}, {"01", "02"}])
def test_without_times_there_is_no_plan(missing: set[str]) -> None:
    """Of the whole graph, or of any of its parts in front."""
    assert plans(GRAPH, {key: each for key, each in KNOWN.items() if key not in missing}) == []


def test_where_one_backend_is_best_there_is_no_plan() -> None:
    """It would be the graph as a whole."""
    assert plans(GRAPH, {**KNOWN, "01": timed(0.003, inductor=1.5)}) == []


def test_a_gain_is_shown_with_its_interval() -> None:
    """It is that of the logarithm."""
    assert str(Gain.of(RATIO)) == "2.000x [1.600, 2.500]"


def test_what_became_of_graphs_is_kept(tmp_path: Path) -> None:
    """Each in a file of its own, read in the order of their names."""
    other = CutGraph(key="a" * 64, name="mine/another", operations=3, why_not="it is short")
    for each in (GRAPH, other):
        write(tmp_path / "cuts", each)
    assert read(tmp_path / "cuts") == [other, GRAPH]
    assert len(list((tmp_path / "cuts").iterdir())) == 2
    assert read(tmp_path / "nothing") == []


def decision(key: str, **fields: object) -> Decision:
    """Make a decision on one of the graphs."""
    return factories.decision(key=key, **fields)


def test_decisions_are_those_of_one_setting(tmp_path: Path) -> None:
    """Of graphs that were cut, and of their parts; what was wrong doesn't count."""
    file = Decisions(tmp_path / "decisions.sqlite")
    wrong = Evidence(arm="onnxrt", outcome=factories.failure(), speedup=RATIO)
    file.put(
        decision(GRAPH.key),
        decision("01", arm=NO_BACKEND, evidence=(wrong,)),
        decision("02", eager_s=None),
        decision("elsewhere", setting=factories.setting(threads=1)),
    )
    known = decided(file, [GRAPH])
    assert known.setting == factories.setting()
    assert {key: each.arm for key, each in known.timed.items()} == {
        GRAPH.key: "inductor",
        "01": NO_BACKEND,
    }
    assert known.timed[GRAPH.key].seconds() == pytest.approx(0.005)
    assert known.timed[GRAPH.key].seconds(NO_BACKEND) == known.timed["01"].seconds() == 0.01
    file.put(decision("12", setting=factories.setting(threads=1)))
    with pytest.raises(ValueError, match="decisions of 2 settings"):
        decided(file, [GRAPH])


def test_what_was_measured_is_over_the_best_single_backend() -> None:
    """In the same blocks; of a graph that stays eager it is eager."""
    arms = (BASELINE, "inductor", CUT_ARM)
    seconds = {BASELINE: 0.010, "inductor": 0.006, CUT_ARM: 0.005}
    records = [factories.measured_record(factories.case(arms=arms), replicate=each, seconds=seconds)
               for each in range(3)]  # fmt: skip
    got = measured(records, KNOWN[GRAPH.key])
    assert got.gain is not None
    assert got.gain.value == pytest.approx(1.2, rel=1e-3)
    got = measured(records, timed(0.01))
    assert got.gain is not None
    assert got.gain.value == pytest.approx(2.0, rel=1e-3)
    wrong = factories.failure(reason="differs")
    results = (*(ArmResult(arm=arm, outcome=PASSED) for arm in arms[:2]),
               ArmResult(arm=CUT_ARM, outcome=wrong))  # fmt: skip
    failed = [msgspec.structs.replace(each, arms=results) for each in records]
    assert [is_done(each, 3) for each in ([], records[:2], records, failed[:1])] == [
        *(False, False, True, True)
    ]
    assert measured(failed, KNOWN[GRAPH.key]) == Measured(None, wrong.line)


def test_the_page_says_what_came_of_each_graph(tmp_path: Path) -> None:
    """Bounds, cuts, pieces, and what was not cut; runs are looked for by their plans."""
    short = CutGraph(
        key="a" * 64, name="mine/short", operations=3, why_not="it takes less than 1 ms"
    )
    known = Decided(factories.setting(), KNOWN)
    text = page([GRAPH, short], known, tmp_path)
    assert (
        "| mine/net `wwwwwwww` | 10 | 3 | `inductor` | 5.00 | 1 `onnxrt`, 2-3 `inductor` | 1.111x"
        " [1.087, 1.135] | 1.222x | 1.000 |  |"
    ) in text
    assert "| mine/net `wwwwwwww` | 3 | 30% | float32 [1, 8] | 0.00 |" in text
    assert (
        "| mine/net `wwwwwwww` | 1 | `onnxrt` | 3.00 | `onnxrt` 3.000x [2.970, 3.030], `induct"
        in text
    )
    assert "| 1 | it takes less than 1 ms |" in text
    assert "Of 1 graphs that were cut and tuned, 1 have a bound of\n3% or more. 0 were" in text
    by = "1.111x [1.087, 1.135] by 1 `onnxrt`, 2-3 `inductor`, beside inductor"
    assert predicted([GRAPH, short], known) == [
        f"mine/net {GRAPH.key[:12]}: {by}",
        "mine/short aaaaaaaaaaaa: not cut: it takes less than 1 ms",
    ]
    few = Decided(known.setting, {each: KNOWN[each] for each in (GRAPH.key, "12")})
    untimed = "it, or parts of it, were not tuned"
    assert f"| 1 | {untimed} |" in page([GRAPH], few, None)
    assert predicted([GRAPH], few) == [
        f"mine/net {GRAPH.key[:12]}: {untimed} (4 of 5 parts have no decision)"
    ]
    one = Decided(known.setting, {**KNOWN, "01": timed(0.003, inductor=1.5)})
    assert "`inductor` | 5.00 | one backend is best at all |" in page([GRAPH], one, None)
    assert predicted([GRAPH], one) == [f"mine/net {GRAPH.key[:12]}: one backend is best at all"]
    (plan, *_) = plans(GRAPH, KNOWN)
    one, two = (folder_of(tmp_path, GRAPH, plan, each) for each in (KNOWN["01"], KNOWN["02"]))
    assert one != two
