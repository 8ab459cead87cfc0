from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest
from simulated_runs import Made, side

from dynamometer.results.comparison.compare import compare
from dynamometer.results.comparison.gates import parse
from dynamometer.results.reports.comparison.markdown import markdown
from dynamometer.results.reports.comparison.parts import gate_line
from dynamometer.results.values.comparison import Comparison, Gate

if TYPE_CHECKING:
    from dynamometer.results.comparison.sides import Side


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
    assert rate.hits == ("inference, inductor, Torchbench: 0%",)
    assert speedup.hits == ("inference, inductor, Torchbench: not known",)
    assert failing.hits[0].startswith(
        "torchbench/model_00 inference inductor: newly failing, was pass, is FAIL_ACCURACY"
    )


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("passrate<70", "66.7%"),
        ("passrate<66.7", "66.67%"),
        ("passrate<66.67", "66.667%"),
        ("speedup<9", "1.15x"),
        ("comptime>5", "9.84s"),
    ],
)
def test_a_figure_is_told_from_its_limit(condition: str, told: str) -> None:
    """Rounded to it, or beyond, it would not say why the condition is met."""
    before = side(Made(models=3), 0)
    after = side(Made(models=3, failing=frozenset({0})), 1)
    (gate,) = compare(before, after, parse(condition)).gates
    assert gate.hits == (f"inference, inductor, Torchbench: {told}",)


def without_figures(found: Side) -> Side:
    """Leave how cases ended, as `--accuracy` does."""
    return replace(found, entries=tuple(replace(each, quantities={}) for each in found.entries))


def test_where_nothing_could_be_judged_it_is_said() -> None:
    """That there is no regression says nothing then; of what ended otherwise all is known."""
    sides = [without_figures(side(Made(models=2), seed)) for seed in range(2)]
    regression, slower, failing, eager = compare(
        *sides, parse("regression,slower,newly-failing,eager-is-slower")
    ).gates
    assert gate_line(regression) == (
        "regression: no (nothing could be judged by compile time, memory ratio, speedup)"
    )
    assert gate_line(slower) == "slower: no (nothing could be judged by speedup)"
    assert gate_line(failing) == "newly-failing: no"
    assert gate_line(eager) == "eager-is-slower: no (nothing could be judged by eager latency)"
    whole = side(Made(models=2), 0), side(Made(models=2), 1)
    judged = compare(*whole, parse("regression,unclear,eager-is-slower")).gates
    assert [each.unjudged for each in judged] == [(), (), ("eager_latency",)]


def test_markdown_names_what_met_it() -> None:
    """As text does; what is too much for a comment is counted."""
    sides = side(Made(models=2), 0), side(Made(models=2, failing=frozenset({0, 1})), 1)
    text = markdown(compare(*sides, parse("newly-failing,speedup<1")))
    told = text.partition("#### --fail-on")[2]
    assert "**newly-failing: 2 found**\n  - torchbench/model\\_00 inference inductor" in told
    assert "  - inference, inductor, Torchbench: not known\n" in told
    long = Gate(condition="slower", hits=("x" * 100,) * 1000)
    text = markdown(with_gates(compare(*sides), long))
    told = text.partition("#### --fail-on")[2]
    assert 4_000 < len(told) < 6_000
    assert f"  - and {1000 - told.count('x' * 100)} more; --json has all" in told


def with_gates(found: Comparison, *gates: Gate) -> Comparison:
    """Return a comparison with conditions that were met by so much."""
    return msgspec.structs.replace(found, gates=gates)


@pytest.mark.parametrize("text", ["slow", "speedup=1", "latency<3", "passrate<", "regression;gone"])
def test_what_is_no_condition(text: str) -> None:
    """Is refused, with those that there are."""
    with pytest.raises(ValueError, match="is no condition: there are regression, newly-failing"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("speedup<130%", "the unit of speedup is x"),
        ("memory<90%", "the unit of memory is x"),
        ("comptime>60x", "the unit of comptime is s"),
        ("passrate<95x", "the unit of passrate is %"),
        ("passrate<0.95", "passrate is in per cent"),
        ("passrate<1", "passrate is in per cent"),
    ],
)
def test_a_limit_in_another_unit(text: str, says: str) -> None:
    """Is refused: such a gate never failed, or always."""
    with pytest.raises(ValueError, match=f"is no condition: {says}"):
        parse(text)


def test_a_limit_may_be_small() -> None:
    """Where nobody can take it for a share."""
    assert [each.limit for each in parse("passrate<0.5%,passrate>0")] == [0.5, 0.0]
