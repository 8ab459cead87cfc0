"""A faster eager is not called a slower compiler."""

from __future__ import annotations

import msgspec
import pytest
from simulated_histories import indexed
from test_changes import series

from dynamometer.results.history.by_eager import LATENCIES, apart, explained, key, models
from dynamometer.results.history.changes import history, regressed
from dynamometer.results.values.cases import BASELINE

TIMES = {each.run_id: each.created_at for each in indexed(18).values()}


@pytest.mark.parametrize(
    ("eager", "own", "by_eager"),
    [
        ([10.0] * 10 + [8.0] * 8, [7.0] * 18, True),
        ([10.0] * 10 + [8.0] * 8, [7.0] * 10 + [6.0] * 8, True),  # faster, too, but by less
        ([10.0] * 10 + [8.0] * 8, [7.0] * 10 + [9.0] * 8, False),  # both had a part
        ([10.0] * 18, [7.0] * 10 + [9.0] * 8, False),
        ([8.0] * 10 + [10.0] * 8, [7.0] * 18, False),  # which would have made it better
        ([10.0] * 4 + [8.0] * 14, [7.0] * 18, False),  # at another time
    ],
)
def test_a_speedup_that_fell(eager: list[float], own: list[float], *, by_eager: bool) -> None:
    """It is eager's where that moved there, and the compiled code did not become slower."""
    found = history(indexed(18), [series([1.5] * 10 + [1.2] * 8)])
    assert models(found) == ["alexnet"]
    of_eager = msgspec.structs.replace(series(eager, LATENCIES[0]), arm=BASELINE)
    latencies = history(indexed(18), [of_eager, series(own, LATENCIES[1])], floor=0.02)
    marked = explained(found, latencies, TIMES)
    assert [each.by_eager for each in marked.series[0].changes] == [by_eager]
    assert bool(regressed(marked).series) is not by_eager


@pytest.mark.parametrize(
    ("alike", "peers", "by_eager"), [(0, 9, True), (4, 9, True), (6, 9, False), (3, 3, True)]
)
def test_a_faster_machine_is_not_eager_of_one_model(
    alike: int, peers: int, *, by_eager: bool
) -> None:
    """Where eager of most models became faster, compiled code that did not has become slower."""
    found = history(indexed(18), [series([1.5] * 10 + [1.35] * 8)])
    faster, steady = [10.0] * 10 + [9.0] * 8, [10.0] * 18
    of_eager = msgspec.structs.replace(series(faster, LATENCIES[0]), arm=BASELINE)
    latencies = history(indexed(18), [of_eager, series([7.0] * 18, LATENCIES[1])], floor=0.02)
    marked = explained(found, latencies, TIMES)
    assert marked.series[0].changes[0].by_eager
    eagers = [
        msgspec.structs.replace(
            series(faster if each < alike else steady, LATENCIES[0]),
            arm=BASELINE, identity={"suite": "torchbench", "model": f"m{each}"},
        )
        for each in range(peers)
    ]  # fmt: skip
    of_all = history(indexed(18), [of_eager, *eagers], floor=0.02)
    told = apart(marked, of_all, TIMES, {key(each): TIMES["run-0"] for each in of_all.series})
    assert [each.by_eager for each in told.series[0].changes] == [by_eager]
    assert bool(regressed(told).series) is not by_eager
    later = {key(each): TIMES["run-12"] for each in of_all.series}  # none was there before
    assert apart(marked, of_all, TIMES, later) == marked


def test_what_was_made_good_in_steps_is_undone() -> None:
    """Levels need not join up: a step that is too small to tell lies between them."""
    found = history(indexed(27), [series([1.5] * 9 + [1.35] * 9 + [1.5] * 9)])
    (one,) = found.series
    worse, better = one.changes
    better = msgspec.structs.replace(better, before=1.38)
    stepped = msgspec.structs.replace(one, changes=(worse, better))
    assert not regressed(msgspec.structs.replace(found, series=(stepped,))).series


def test_a_slower_eager_does_not_undo_a_slower_compiler() -> None:
    """The speedup is what it was, and the compiled code is not."""
    found = history(indexed(27), [series([1.5] * 9 + [1.35] * 9 + [1.5] * 9)])
    (one,) = found.series
    worse, better = one.changes
    assert not regressed(found).series
    by_eager = msgspec.structs.replace(better, by_eager=True)
    found = msgspec.structs.replace(
        found, series=(msgspec.structs.replace(one, changes=(worse, by_eager)),)
    )
    assert [each.changes for each in regressed(found).series] == [(worse,)]


def test_without_latencies() -> None:
    """Nothing is known of eager, and a status has none."""
    found = history(
        indexed(18), [series([1.5] * 10 + [1.2] * 8), series(["pass", "crash"], "status")]
    )
    assert explained(found, history(indexed(18), []), TIMES) == found
