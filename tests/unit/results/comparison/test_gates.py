from __future__ import annotations

import pytest
from simulated_runs import Made, side

from dynamometer.results.comparison.compare import compare
from dynamometer.results.comparison.gates import parse


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("regression", [1]),
        ("slower", [1]),
        ("newly-failing", [1]),
        ("regression, newly-failing", [1, 1]),
        ("gone,faster", [0, 0]),
        ("passrate<95", [1]),
        ("passrate<80%", [0]),
        ("speedup<1.3x", [1]),
        ("speedup<1.0", [0]),
        ("comptime>60", [0]),
        ("comptime>5s", [1]),
        ("memory<0.5", [0]),
        ("", []),
    ],
)
def test_conditions(text: str, hits: list[int]) -> None:
    """Each is met by what it names, and by nothing else."""
    after = Made(models=6, slower={2: 1.2}, failing=frozenset({4}))
    gates = compare(side(Made(models=6), 0), side(after, 1), parse(text)).gates
    assert [len(each.hits) for each in gates] == hits


def test_what_met_it_is_named() -> None:
    """With the figure, and where."""
    sides = side(Made(models=2), 0), side(Made(models=2, failing=frozenset({0, 1})), 1)
    rate, speedup, failing = compare(*sides, parse("passrate<95,speedup<1,newly-failing")).gates
    assert rate.hits == ("inference, inductor, Torchbench: 0",)
    assert speedup.hits == ("inference, inductor, Torchbench: not known",)
    assert "model_00 inductor: newly failing, was pass, is FAIL_ACCURACY" in failing.hits[0]


@pytest.mark.parametrize("text", ["slow", "speedup=1", "latency<3", "passrate<", "regression;gone"])
def test_what_is_no_condition(text: str) -> None:
    """Is refused, with those that there are."""
    with pytest.raises(ValueError, match="is no condition: there are regression, newly-failing"):
        parse(text)
