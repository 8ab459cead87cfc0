"""What must hold of any comparison, whatever was measured."""

from __future__ import annotations

import math
from dataclasses import replace

import factories
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynamometer.results.comparison.compare import compare
from dynamometer.results.comparison.entries import Entry, identity_of
from dynamometer.results.comparison.quantities import SPEEDUP, Quantity, difference, of_values
from dynamometer.results.comparison.sides import Side
from dynamometer.results.statistics.significance import Mean, Replicate, ratio
from dynamometer.results.store.expected import Expectation
from dynamometer.results.values.comparison import Change
from dynamometer.results.values.records import BetweenProcessSd, Status

means = st.builds(
    Mean, st.floats(-3, 3), st.floats(1e-5, 0.5), st.floats(1, 100), st.integers(1, 20)
)
SWAPPED = {
    Change.SLOWER: Change.FASTER,
    Change.NEWLY_FAILING: Change.NEWLY_PASSING,
    Change.GONE: Change.NEW,
    Change.COMPILES_LONGER: Change.COMPILES_SOONER,
    Change.NEEDS_MORE_MEMORY: Change.NEEDS_LESS_MEMORY,
    Change.EAGER_FASTER: Change.EAGER_SLOWER,
}
SWAPPED |= {after: before for before, after in SWAPPED.items()}


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Draw an arm of one of six cases."""
    model = draw(st.integers(0, 5))
    status = draw(st.sampled_from([Status.PASS, Status.PASS, Status.FAIL, Status.OOM]))
    logs = draw(st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=4))
    sd = BetweenProcessSd(sd_log=0.006, df=20.0)
    quantities = {
        SPEEDUP.name: Quantity(SPEEDUP, tuple(Replicate(each, 0.002, 9.0) for each in logs), sd)
    }
    for kind, value in (
        (name, draw(st.floats(1, 2))) for name in ("compile_time", "memory_ratio", "eager_latency")
    ):
        quantities[kind] = _quantity(kind, value)
    passed = status is Status.PASS
    return Entry(
        identity=identity_of(factories.case(f"m{model}")),
        arm="inductor",
        outcome=factories.PASSED if passed else factories.failure(status),
        expectation=Expectation(status=status),
        quantities=quantities if passed else {},
        doubt=draw(st.sampled_from([None, None, None, "disturbed"])),
    )


def _quantity(name: str, value: float) -> Quantity:
    from dynamometer.results.comparison import quantities

    kinds = {
        each.name: each
        for each in (quantities.COMPILE_TIME, quantities.MEMORY_RATIO, quantities.EAGER_LATENCY)
    }
    found = of_values(kinds[name], [value, value * 1.001])
    assert found is not None
    return found


sides = st.lists(
    entries(), min_size=1, max_size=6, unique_by=lambda each: each.identity["model"]
).map(lambda found: Side("side", tuple(found)))


@given(means, means)
def test_a_difference_is_known_no_better_than_either(before: Mean, after: Mean) -> None:
    """And its interval is that of the other way round, turned over."""
    found, back = difference(before, after), difference(after, before)
    assert found.error >= max(before.error, after.error)
    assert min(before.df, after.df) * 0.999 <= found.df <= (before.df + after.df) * 1.001
    assert min(before.n, after.n) <= found.n <= max(before.n, after.n)
    assert ratio(found).low == pytest.approx(1 / ratio(back).high)
    assert ratio(found).p_value == pytest.approx(ratio(back).p_value)


@given(sides, sides)
def test_the_other_way_round_everything_is_its_opposite(before: Side, after: Side) -> None:
    """Whoever names the newer run first gets the same list, turned over."""
    assume(
        {e.identity["model"] for e in before.entries} & {e.identity["model"] for e in after.entries}
    )
    there, back = compare(before, after), compare(after, before)
    assert sorted(
        (SWAPPED.get(each.change, each.change), each.model) for each in there.findings
    ) == (sorted((each.change, each.model) for each in back.findings))
    for table, other in zip(there.tables, back.tables, strict=True):
        for one, two in zip(table.columns, other.columns, strict=True):
            assert one.passrate == two.passrate[::-1]
            assert one.speedup.before == two.speedup.after
            assert one.common_speedup.n_before == two.common_speedup.n_after


@given(sides)
def test_a_side_beside_itself(found: Side) -> None:
    """Nothing of it has changed."""
    told = compare(found, replace(found, source="again"))
    assert {each.change for each in told.findings} <= {Change.UNCLEAR, Change.NOT_COMPARED}
    for table in told.tables:
        for column in table.columns:
            assert column.passrate == column.common_passrate
            if column.common_speedup.ratio:
                assert math.isclose(column.common_speedup.ratio.value, 1.0)


@given(sides, sides)
def test_every_arm_of_a_case_is_counted_once(before: Side, after: Side) -> None:
    """In its side's own figures; those of both sides are no more than either."""
    assume(
        {e.identity["model"] for e in before.entries} & {e.identity["model"] for e in after.entries}
    )
    found = compare(before, after)
    columns = [column for table in found.tables for column in table.columns]
    for index, side in enumerate((before, after)):
        assert sum(each.passrate[index].counted for each in columns) == len(side.entries)
        for each in columns:
            assert each.common_passrate[index].counted <= each.passrate[index].counted
