"""What must hold of any selection, order, size and run."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
import factories
import pytest
from fakes import FakeExecutor, RecordingObserver, RecordingSink
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynamometer.common.errors import NothingSelectedError
from dynamometer.common.execution.runner import Interrupt, Remaining, RunInProgress, run
from dynamometer.common.interfaces.option import ByteSize
from dynamometer.common.measuring.timing import burst_orders
from dynamometer.common.planning.selection import Selection, select
from dynamometer.results.store import store
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from dynamometer.results.values.cases import ModelSpec

names = st.from_regex(r"[a-z]{1,4}[0-9]?", fullmatch=True)
suites = st.lists(names, min_size=1, max_size=30, unique=True).map(
    lambda chosen: [factories.model_spec(name) for name in chosen]
)
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@given(st.lists(names, min_size=1, max_size=8, unique=True), st.integers(0, 2**32))
def test_a_block_visits_every_arm_once(arms: list[str], seed: int) -> None:
    """Every arm comes once in a block, whose order the next reverses."""
    first, second = burst_orders(arms, random.Random(seed))
    assert sorted(first) == sorted(arms)
    assert second == first[::-1]


@given(st.lists(names, min_size=1, max_size=5, unique=True), st.integers(0, 2**32))
def test_the_order_is_drawn_from_the_seed(arms: list[str], seed: int) -> None:
    """The same seed repeats a run's order, and the arms given are left as they are."""
    given_arms = list(arms)
    orders = [burst_orders(given_arms, random.Random(seed)) for _ in range(2)]
    assert orders[0] == orders[1]
    assert given_arms == arms


@given(suites, st.integers(1, 12))
def test_parts_are_disjoint_and_cover_the_selection(specs: list[ModelSpec], parts: int) -> None:
    """Machines that run one part each run every model exactly once, in balance."""
    sizes = []
    together: list[ModelSpec] = []
    for index in range(parts):
        try:
            part = select(specs, Selection(partition=(index, parts)))
        except NothingSelectedError:
            part = ()
        sizes.append(len(part))
        together += part
    assert together == list(select(specs, Selection()))
    assert max(sizes) - min(sizes) <= 1


@given(suites, names)
def test_filter_and_exclude_are_complements(specs: list[ModelSpec], pattern: str) -> None:
    """What `-k` takes and what `-x` leaves are together everything, and have nothing in common."""

    def chosen(selection: Selection) -> set[str]:
        try:
            return {spec.name for spec in select(specs, selection)}
        except NothingSelectedError:
            return set()

    taken, left = chosen(Selection(include=(pattern,))), chosen(Selection(exclude=(pattern,)))
    assert taken | left == {spec.name for spec in specs}
    assert not taken & left
    assert taken == {spec.name for spec in specs if pattern in spec.name}


@given(st.integers(1, 10**6), st.sampled_from(list(UNITS)), st.sampled_from(["", "B", "iB"]))
def test_sizes_are_read(number: int, unit: str, suffix: str) -> None:
    """A number with a unit is that many times a power of 1024, in either case."""
    size = ByteSize()
    assert size.convert(f"{number}{unit}{suffix}", None, None) == number * UNITS[unit]
    assert size.convert(f"{number} {unit}{suffix}".lower(), None, None) == number * UNITS[unit]


@given(st.integers(1, 1000), st.integers(0, 3), st.sampled_from(["K", "M", "G"]))
def test_fractions_of_sizes_are_read(whole: int, quarters: int, unit: str) -> None:
    """Half a gigabyte is a size."""
    text = f"{whole + quarters / 4}{unit}"
    assert ByteSize().convert(text, None, None) == (4 * whole + quarters) * UNITS[unit] // 4


@pytest.mark.parametrize("size", ["0", "0.0G", "0.5", "8388608T", "1" * 400 + "G"])
def test_sizes_that_can_not_be_are_refused(size: str) -> None:
    """Nothing is not no limit, and the kernel counts no further than to 2^63."""
    with pytest.raises(click.BadParameter, match="is not from 1 byte to less than 8388608T"):
        ByteSize().convert(size, None, None)


@given(st.text(max_size=8))
def test_what_is_no_size_is_refused(text: str) -> None:
    """Text that doesn't start with a number, or has a sign or an unknown unit, is no size."""
    assume(not text[:1].isdigit())
    with pytest.raises(click.BadParameter, match="is not a size such as"):
        ByteSize().convert(text, None, None)
    with pytest.raises(click.BadParameter, match="is not a size such as"):
        ByteSize().convert(f"12X{text}", None, None)


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2)), st.sampled_from(Status), max_size=6
    ),
    st.lists(st.integers(1, 4), max_size=4),
)
def test_planned_cases_are_recorded_whatever_happens(
    outcomes: dict[tuple[str, int], Status], sittings: list[int]
) -> None:
    """However often a run is interrupted and however its cases end, each is recorded once.

    Only what says nothing of its model is attempted again, once in each sitting.
    """
    manifest = factories.manifest(factories.plan(*(factories.model_spec(name) for name in "abc")))
    executed: list[tuple[str, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        store.create(directory, manifest)
        sink = RecordingSink()
        for patience in [*sittings, 1000]:
            interrupt = Interrupt()
            executor = FakeExecutor(outcomes, executed)

            def count(
                case: object,
                replicate: int,
                *,
                stop_at: int = len(executed) + patience,
                asked: Interrupt = interrupt,
            ) -> None:
                asked.requested = len(executed) + 1 >= stop_at

            executor.before = count
            sink = RecordingSink()
            with store.RunStore(directory) as events:
                rest = Remaining(manifest, store.read_records(directory))
                done = run(
                    RunInProgress(rest, events, [sink], RecordingObserver()), executor, interrupt
                )
        records = store.read_records(directory)
    assert done
    keys = [(record.case.model, record.replicate) for record in records]
    assert keys == list(dict.fromkeys(executed))
    for key, record in zip(keys, records, strict=True):
        assert executed.count(key) == 1 + len(record.earlier)
        assert not record.earlier or outcomes[key] is Status.INFRA
    assert {record.case.id for record in records} == {case.id for case in manifest.plan.cases}
    assert {written[0].case.model: len(written) for written in sink.written} == {
        name: sum(record.case.model == name for record in records) for name in "abc"
    }
    for name in "abc":
        ended = [record.outcome.status for record in records if record.case.model == name]
        assert set(ended[:-1]) <= {Status.PASS}
        assert ended[-1] is not Status.PASS or len(ended) == 3
