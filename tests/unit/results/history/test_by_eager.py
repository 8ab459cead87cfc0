"""A faster eager is not called a slower compiler."""

from __future__ import annotations

import msgspec
import pytest
from simulated_histories import indexed
from test_changes import series

from dynamometer.results.history.by_eager import LATENCIES, explained, models
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


def test_without_latencies() -> None:
    """Nothing is known of eager, and a status has none."""
    found = history(
        indexed(18), [series([1.5] * 10 + [1.2] * 8), series(["pass", "crash"], "status")]
    )
    assert explained(found, history(indexed(18), []), TIMES) == found
