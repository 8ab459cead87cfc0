"""Two sides: what is paired, judged, refused, and told."""

from __future__ import annotations

import math
import random
import re
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from simulated_runs import KNOWN, Made, side

from dynamometer.results.comparison.compare import compare
from dynamometer.results.comparison.entries import Entry, of_arms
from dynamometer.results.comparison.judging import judge
from dynamometer.results.comparison.pairing import IncomparableError, paired
from dynamometer.results.comparison.quantities import SPEEDUP, difference
from dynamometer.results.comparison.sides import Side, of_arm, of_run
from dynamometer.results.statistics.significance import Mean, ratio
from dynamometer.results.values.cases import BASELINE, MatmulPrecision, Mode, Scale
from dynamometer.results.values.comparison import Change
from dynamometer.results.values.records import BetweenProcessSd, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

THREE = (BASELINE, "inductor", "aot_eager")


def run(
    name: str = "run", *, models: int = 3, arms: tuple[str, ...] = THREE, **fields: object
) -> Side:
    """Make a run of some models, each with two arms."""
    cases = [factories.case(f"m{each}", arms, **fields) for each in range(models)]
    records = [
        factories.measured_record(case, replicate=replicate)
        for case in cases
        for replicate in range(2)
    ]
    entries = [
        entry
        for start in range(0, len(records), 2)
        for entry in of_arms(records[start : start + 2])
    ]
    plan = factories.plan(cases=tuple(cases), replicates=2)
    return of_run(name, factories.manifest(plan, run_id=name), records, entries)


def with_conditions(found: Side, **changed: str) -> Side:
    """Change some of what is known of how a run came to be."""
    return replace(found, conditions={**found.conditions, **changed})


def changed(found: Side, index: int, **fields: object) -> Side:
    """Change one entry."""
    entries = list(found.entries)
    entries[index] = replace(entries[index], **fields)  # type: ignore[arg-type]  # untyped
    return replace(found, entries=tuple(entries))


def identified(entry: Entry, **fields: str) -> Entry:
    """Change what a case is known by."""
    return replace(entry, identity={**entry.identity, **fields})


def test_a_difference_has_the_variance_of_both() -> None:
    """And the degrees of freedom of Satterthwaite; as many replicates as both would need."""
    found = difference(Mean(0.1, 0.003, 10.0, 3), Mean(0.3, 0.004, 20.0, 3))
    assert found.value == pytest.approx(0.2)
    assert found.error == pytest.approx(0.005)
    assert found.df == pytest.approx(5**4 / (3**4 / 10 + 4**4 / 20))
    assert found.n == 3
    assert difference(Mean(0.0, 0.01, 5.0, 1), Mean(0.0, 0.001, 5.0, 100)).n == 2


def test_differences_of_the_environment_come_first() -> None:
    """Versions and variables may differ; each is told."""
    after = with_conditions(run("b"), torch="2.14.0", **{"$OMP_PROC_BIND": "true"})
    found = compare(run("a"), after)
    told = {each.name: (each.before, each.after) for each in found.conditions}
    assert told == {"torch": ("2.13.0", "2.14.0"), "$OMP_PROC_BIND": ("not there", "true")}
    assert not found.is_forced


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("threads", "threads was torch's choice, is 7"),
        ("$OMP_NUM_THREADS", "was not there, is 7: the number of threads"),
        ("allocator", "the allocator changes every speedup"),
        ("cpu", "what differs between machines"),
        ("burst_s", "measured in the same way"),
        ("study", "different questions"),
    ],
)
def test_what_cannot_be_compared_is_refused(name: str, says: str) -> None:
    """With the reason; forced, it is marked and comes first."""
    after = with_conditions(run("b"), **{name: "7"}, torch="2.14.0")
    with pytest.raises(IncomparableError, match=says):
        compare(run("a"), after)
    found = compare(run("a"), after, forced=True)
    assert found.is_forced
    assert [each.name for each in found.conditions] == [name, "torch"]


def test_models_of_different_scales_are_paired_only_by_force() -> None:
    """A tiny model is another model."""
    sides = run("a", scale=Scale.TINY), run("b", scale=Scale.SMALL)
    with pytest.raises(IncomparableError, match="scale was tiny, is small: models of different"):
        compare(*sides)
    found = compare(*sides, forced=True)
    assert not found.of(Change.GONE)
    assert found.tables[0].columns[0].common_speedup.n_after == 3


def test_more_replicates_are_no_obstacle() -> None:
    """Intervals tell."""
    found = compare(run("a"), with_conditions(run("b"), replicates="9"))
    assert [(each.name, each.why_not) for each in found.conditions] == [("replicates", None)]


def test_an_unfinished_run_says_so() -> None:
    """What it lacks is not gone for good; a case with one of its two replicates has not ended."""
    cases = [factories.case(f"m{each}", THREE) for each in range(3)]
    whole = [factories.measured_record(cases[0], replicate=each) for each in range(2)]
    begun = [factories.measured_record(cases[1])]
    plan = factories.plan(cases=tuple(cases), replicates=2)
    entries = [*of_arms(whole), *of_arms(begun)]
    after = of_run("b", factories.manifest(plan), [*whole, *begun], entries)
    found = compare(run("a"), after)
    assert "b (after) is unfinished: 2 of its cases have not ended" in found.notes[0]
    assert [each.model for each in found.of(Change.GONE)] == ["m2", "m2"]


def test_nothing_in_common() -> None:
    """Says what each side has."""
    with pytest.raises(IncomparableError, match=r"before has m0 inductor, .* after has m0 ts"):
        compare(run("a", arms=(BASELINE, "inductor")), run("b", arms=(BASELINE, "ts")))


@pytest.mark.parametrize(
    ("models", "has"),
    [(1, "m0 ts"), (3, "m0 ts, m1 ts, m2 ts"), (4, "m0 ts, m1 ts, m2 ts, and 1 more")],
)
def test_nothing_in_common_says_whether_there_is_more(models: int, has: str) -> None:
    """Three arms of cases are named."""
    sides = run("a", models=1), run("b", models=models, arms=(BASELINE, "ts"))
    says = re.escape(f"before has m0 inductor, m0 aot_eager, after has {has} (")
    with pytest.raises(IncomparableError, match=says):
        compare(*sides)


def test_nothing_in_common_says_in_what_the_cases_differ() -> None:
    """Neither --arm nor --force would help."""
    sides = run("a"), run("b", mode=Mode.TRAINING, channels_last=True)
    with pytest.raises(IncomparableError) as caught:
        compare(*sides)
    assert "mode was inference, is training; settings was none, is channels_last" in str(
        caught.value
    )
    assert "--arm" not in str(caught.value)
    assert not caught.value.may_be_forced


def test_another_matmul_precision_is_compared_by_force() -> None:
    """What else is set must be the same all the same."""
    high = MatmulPrecision.HIGH
    sides = run("a", nopython=True), run("b", nopython=True, matmul_precision=high)
    with pytest.raises(IncomparableError, match="matmul precision was") as caught:
        compare(*sides)
    assert caught.value.may_be_forced
    found = compare(*sides, forced=True)
    assert not found.of(Change.GONE)
    assert found.tables[0].columns[0].common_speedup.n_after == 3
    with pytest.raises(IncomparableError, match="no arm of a case is on both sides"):
        compare(run("a"), sides[1], forced=True)


def test_identical_sides_have_no_findings() -> None:
    """All speedups are equivalent, and nothing else is said of them."""
    found = compare(run("a"), run("b"))
    assert {each.change for each in found.findings} <= {Change.UNCLEAR}
    cell = found.tables[0].columns[0].common_speedup
    assert cell.ratio is not None
    assert cell.ratio.value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (Status.PASS, Status.FAIL, Change.NEWLY_FAILING),
        (Status.PASS, Status.TIMEOUT, Change.NEWLY_FAILING),
        (Status.FAIL_ACCURACY, Status.PASS, Change.NEWLY_PASSING),
        (Status.FAIL, Status.OOM, Change.FAILS_OTHERWISE),
        (Status.PASS, Status.SKIP, Change.GONE),
        (Status.SKIP, Status.PASS, Change.NEW),
        (Status.SKIP, Status.SKIP, None),
        (Status.PASS, Status.INFRA, Change.GONE),
        (Status.INFRA, Status.CRASH, Change.NEW),
        (Status.OOM, Status.OOM, None),
    ],
)
def test_how_an_arm_ends(before: Status, after: Status, change: Change | None) -> None:
    """What became of it, by status."""
    sides = (
        changed(run(name), 0, outcome=factories.failure(status, reason="why"))
        for name, status in (("a", before), ("b", after))
    )
    found = [each for each in compare(*sides).findings if each.change is not Change.UNCLEAR]
    assert [(each.change, each.model, each.arm) for each in found] == (
        [] if change is None else [(change, "m0", "inductor")]
    )


def test_a_fault_of_the_harness_is_in_no_pass_rate() -> None:
    """Neither of its side, nor of what both sides have."""
    before, after = run("a"), run("b")
    lost = replace(after.entries[0], outcome=factories.failure(Status.INFRA), quantities={})
    found = compare(before, replace(after, entries=(lost, *after.entries[1:])))
    rates = [
        [[(each.passed, each.counted) for each in shares] for shares in
         (column.passrate, column.common_passrate)]
        for table in found.tables for column in table.columns if lost.arm in table.title
    ]  # fmt: skip
    assert rates == [[[(3, 3), (2, 2)], [(2, 2), (2, 2)]]]


def test_an_arm_that_one_side_lacks() -> None:
    """Is gone or new, and counts in that side's own figures alone."""
    after = run("b", models=4)
    found = compare(run("a"), replace(after, entries=after.entries[2:]))
    assert [each.model for each in found.of(Change.GONE)] == ["m0", "m0"]
    assert [each.model for each in found.of(Change.NEW)] == ["m3", "m3"]
    column = found.tables[0].columns[0]
    assert (column.speedup.n_before, column.speedup.n_after) == (3, 3)
    assert (column.common_speedup.n_before, column.common_speedup.n_after) == (2, 2)
    assert column.common_passrate[0].counted == 2


def test_what_is_doubted_is_not_judged() -> None:
    """It is in no mean, and the list says why."""
    found = compare(run("a"), changed(run("b"), 0, doubt="disturbed"))
    (finding,) = found.of(Change.NOT_COMPARED)
    assert finding.text == "something else kept the machine busy, after"
    arms = {table.title: table.columns[0].common_speedup.n_after for table in found.tables}
    assert arms == {"inference, aot_eager": 3, "inference, inductor": 2}


def test_another_batch_size_is_not_compared() -> None:
    """The model is neither gone nor new."""
    after = run("b")
    other = identified(after.entries[0], batch_size="8")
    found = compare(run("a"), replace(after, entries=(other, *after.entries[1:])))
    (finding,) = found.of(Change.NOT_COMPARED)
    assert finding.text == "batch size was 4, is 8"
    assert not found.of(Change.GONE)


def test_several_batch_sizes_of_a_model_are_told_apart() -> None:
    """There the size is a part of what the case is known by."""
    two = run("a", models=1)
    two = replace(
        two, entries=(*two.entries, *(identified(e, batch_size="8") for e in two.entries))
    )
    assert len(paired(two, two).common) == 4


def test_several_batch_sizes_of_a_model_are_nothing_to_others() -> None:
    """Of these the size may differ, which is told."""
    before = run("a", models=2)
    entries = before.entries
    before = replace(
        before, entries=(*entries, *(identified(each, batch_size="8") for each in entries[:2]))
    )
    after = replace(
        before,
        entries=tuple(
            identified(each, batch_size="2") if each.identity["model"] == "m1" else each
            for each in before.entries
        ),
    )
    found = paired(before, after)
    assert not found.gone
    assert not found.new
    why = {each.before.identity["model"]: each.why_incomparable for each in found.common}
    assert why == {"m0": None, "m1": "batch size was 4, is 2"}


def test_cases_that_the_other_side_does_not_tell_apart_are_refused() -> None:
    """Of two that would be one the other would be lost, and with it what became of it."""
    both = run("a")
    both = replace(
        both, entries=(*both.entries, *(identified(each, mode="training") for each in both.entries))
    )
    less = replace(
        both,
        source="less",
        entries=tuple(
            replace(each, identity={k: v for k, v in each.identity.items() if k != "mode"})
            for each in run("b").entries
        ),
    )
    says = r"a has m0 inductor more than once \(mode inference and training\)"
    for sides in ((both, less), (less, both)):
        with pytest.raises(IncomparableError, match=says):
            compare(*sides)


def test_a_side_that_knows_less_of_its_cases() -> None:
    """As a CSV file knows no scale: cases are paired by what both know."""
    after = run("b")
    fewer = [
        replace(
            each,
            identity={k: v for k, v in each.identity.items() if k not in {"scale", "settings"}},
        )
        for each in after.entries
    ]
    assert len(paired(run("a"), replace(after, entries=tuple(fewer))).common) == 6


def test_operators_that_are_captured_no_more() -> None:
    """Are told beside what was measured; more graph breaks alone are not."""
    after = run("b")
    fewer = msgspec.structs.replace(after.entries[0].expectation, captured_ops=38)
    breaks = msgspec.structs.replace(after.entries[1].expectation, graph_breaks=9)
    changed_twice = changed(changed(after, 0, expectation=fewer), 1, expectation=breaks)
    found = compare(run("a"), changed_twice)
    (finding,) = found.of(Change.CAPTURES_LESS)
    assert finding.text == "40 captured ops became 38"
    assert not found.of(Change.CAPTURES_MORE)


def test_arms_of_one_run_are_compared_in_the_same_blocks() -> None:
    """Their difference is that of the run's own table, not of two independent runs."""
    whole = run()
    found = compare(of_arm(whole, "inductor"), of_arm(whole, "aot_eager"))
    assert found.tables[0].title == "inference, inductor -> aot_eager"
    assert found.conditions == ()
    assert found.drift is None
    assert found.counts[0].judged == 3
    with pytest.raises(LookupError, match="run has no arm 'ts'; it has inductor, aot_eager"):
        of_arm(whole, "ts")


def test_arms_of_one_run_are_judged_by_the_one_that_differs_further() -> None:
    """Whichever of the two comes first."""
    known = BetweenProcessSd(sd_log=0.001, df=20.0), BetweenProcessSd(sd_log=0.03, df=9.0)
    sds = dict(zip(("inductor", "aot_eager"), known, strict=True))
    whole = run()
    entries = tuple(
        replace(
            each,
            quantities={
                **each.quantities,
                "speedup": replace(each.quantities["speedup"], between_sd=sds[each.arm]),
            },
        )
        for each in whole.entries
    )
    sides = [of_arm(replace(whole, entries=entries), arm) for arm in sds]
    means = [
        [each.mean for each in judge(SPEEDUP, paired(*of_two).common)]
        for of_two in (sides, sides[::-1])
    ]
    assert len(means[0]) == 3
    for there, back in zip(*means, strict=True):
        assert there.error == pytest.approx(back.error)
        assert there.error > 0.01
        assert there.df == pytest.approx(9.0 + 1.0)


def scattered_run(rng: random.Random, sds: Mapping[str, float]) -> Side:
    """Make a run of some models whose arms differ from process to process, each by its own."""
    cases = [factories.case(f"m{model}", (BASELINE, *sds)) for model in range(8)]
    replicated = [
        [
            factories.measured_record(
                case,
                replicate=replicate,
                seconds={
                    arm: 0.01 * math.exp(rng.gauss(0.0, sd))
                    for arm, sd in {BASELINE: 0.006, **sds}.items()
                },
            )
            for replicate in range(3)
        ]
        for case in cases
    ]
    manifest = factories.manifest(factories.plan(cases=tuple(cases), replicates=3))
    records = [each for own in replicated for each in own]
    return of_run("run", manifest, records, [each for own in replicated for each in of_arms(own)])


@pytest.mark.slow
def test_an_arm_that_differs_further_changes_no_more_often() -> None:
    """Of identical runs; told by all arms together it was 20 %, and 0 % of the calmest."""
    rng, sds = random.Random(0), {"calm": 0.002, "usual": 0.006, "wild": 0.03}
    found: dict[str, list[bool]] = {arm: [] for arm in sds}
    for _ in range(40):
        pairs = paired(scattered_run(rng, sds), scattered_run(rng, sds)).common
        for each in judge(SPEEDUP, pairs):
            found[each.pair.before.arm].append(ratio(each.mean).p_value <= 0.05)
    shares = {arm: statistics.fmean(each) for arm, each in found.items()}
    assert all(0.01 < share < 0.12 for share in shares.values()), shares


def test_a_run_in_which_every_worker_died_is_of_the_same_machine() -> None:
    """Only workers tell the name of a device: that none did is what is to be told."""
    before = with_conditions(run(), **{"device name": "Made-up CPU"})
    dead = run()
    for index in range(len(dead.entries)):
        dead = changed(dead, index, outcome=factories.failure(Status.CRASH), quantities={})
    found = compare(before, dead)
    assert len(found.of(Change.NEWLY_FAILING)) == 6
    with pytest.raises(IncomparableError, match="device name was Made-up CPU, is another"):
        compare(before, with_conditions(run(), **{"device name": "another"}))


def test_a_run_and_itself() -> None:
    """There is nothing to find, which is said; its arms are compared in the same blocks."""
    found = compare(run(), run())
    assert "both sides are the same run: there is nothing to find" in found.notes
    partial = compare(run(), run(models=2))
    assert "both sides are copies of one run, with different records" in partial.notes
    once, twice = run(), run()
    together = compare(of_arm(once, "inductor"), of_arm(once, "aot_eager"))
    apart = compare(of_arm(once, "inductor"), of_arm(twice, "aot_eager"))
    assert not any("same run" in each for each in (*together.notes, *apart.notes))
    assert together.tables == apart.tables
    assert together.findings == apart.findings


def test_models_that_one_of_two_arms_lacks_count_with_them() -> None:
    """In one table, so that a gate on it is not of a side that is empty."""
    found = compare(of_arm(run(), "inductor"), of_arm(run("other", models=2), "aot_eager"))
    (table,) = found.tables
    assert table.title == "inference, inductor -> aot_eager"
    (column,) = table.columns
    assert [(each.passed, each.counted) for each in column.passrate] == [(3, 3), (2, 2)]
    assert [each.model for each in found.of(Change.GONE)] == ["m2"]


def test_eager_is_known_of_whichever_arm_passed() -> None:
    """An arm that failed has no figures, which says nothing of eager."""
    before, after = run(models=6), run("other", models=6)
    for index in range(1, 12, 2):
        after = changed(after, index, outcome=factories.failure(), quantities={})
    drift = compare(before, after).drift
    assert drift is not None
    assert drift.n == 6


def test_eager_that_scatters_in_all_cases_is_told_of_none() -> None:
    """On a machine whose speed varies from case to case: of one it says nothing."""
    moved = {each: math.exp(0.1 * (each % 7 - 3)) for each in range(30)}
    found = compare(side(Made(), 0), side(Made(eager=moved, slower=moved), 1))
    assert not found.of(Change.EAGER_FASTER)
    assert not found.of(Change.EAGER_SLOWER)
    assert any("only what lies far outside is told" in each for each in found.notes)


def test_a_machine_that_has_become_faster_changes_nothing() -> None:
    """Neither speedup nor verdict; the drift of eager says so."""
    found = compare(side(Made(), 0), side(Made(speed=0.9), 1))
    assert {each.change for each in found.findings} <= {Change.UNCLEAR}
    assert found.drift is not None
    assert found.drift.ratio == pytest.approx(0.9, rel=0.02)
    assert found.drift.n == 30


@pytest.mark.parametrize("speed", [1.0, 0.9, 1.1])
def test_a_faster_eager_is_no_slower_compiler(speed: float) -> None:
    """Whatever the machine does: what moved is eager of that model, apart from all others."""
    found = compare(side(Made(), 0), side(Made(eager={7: 0.8}, speed=speed), 1))
    assert not found.of(Change.SLOWER)
    (finding,) = found.of(Change.EAGER_FASTER)
    assert (finding.model, finding.arm) == ("model_07", "eager")
    assert "the speedup of inductor is" in finding.text
    assert "as eager moved" in finding.text


def test_a_slower_compiler_on_a_faster_machine() -> None:
    """Is one: that its latency is what it was is the machine's doing."""
    found = compare(side(Made(), 0), side(Made(slower={7: 1.1}, speed=0.9), 1))
    assert [each.model for each in found.of(Change.SLOWER)] == ["model_07"]
    assert not found.of(Change.EAGER_FASTER)


def test_of_few_cases_eager_leaves_it_unclear() -> None:
    """With one model nobody can tell its eager from the machine: nothing is called slower."""
    found = compare(side(Made(models=1), 0), side(Made(models=1, eager={0: 0.8}), 1))
    (finding,) = found.findings
    assert finding.change is Change.UNCLEAR
    assert finding.text.endswith("with so few cases that may be the machine")
    slower = compare(side(Made(models=1), 0), side(Made(models=1, slower={0: 1.2}), 1))
    assert [each.change for each in slower.findings] == [Change.SLOWER]


def test_doubts_about_the_machine() -> None:
    """Eager that moved everywhere, and speedups that moved by more than processes explain."""
    same = compare(side(Made(), 0), side(Made(), 1)).notes
    slow = compare(side(Made(), 0), side(Made(speed=0.7), 1)).notes
    sides = side(Made(), 0), side(Made(run_sd=0.05), 1)
    other = compare(*sides).notes
    assert same == ()
    assert ["eager itself takes 0.70 times as long" in each for each in slow] == [True]
    assert ["most models have changed, or the machine" in each for each in other] == [True]
    found = re.search(r"--run-sd ([\d.]+) allows for it", other[0])
    assert found is not None
    assert float(found[1]) == pytest.approx(0.05, rel=0.4)


def test_arms_of_few_cases_are_not_many_models() -> None:
    """They share eager: what one model's did shows in all of its arms."""
    before, after = side(Made(models=4), 0), side(Made(models=4, run_sd=0.2), 1)
    sides = [
        replace(
            each,
            entries=tuple(
                replace(entry, arm=f"{entry.arm}_{copy}")
                for entry in each.entries
                for copy in range(5)
            ),
        )
        for each in (before, after)
    ]
    assert len(compare(*sides).of(Change.SLOWER)) > 4
    assert not any("most models have changed" in each for each in compare(*sides).notes)


def test_beside_csv_files_each_arm_of_a_run_is_told_by_an_eager_of_its_own() -> None:
    """What eager did in the file of one arm says nothing of another."""
    before, a, b = side(Made(), 0), side(Made(), 1), side(Made(eager={0: 0.75}), 1)
    entries = tuple(replace(each, arm=arm) for arm in "ab" for each in before.entries)
    of_files = {"a": a.entries, "b": b.entries}
    others = tuple(
        replace(each, arm=arm, records=()) for arm, own in of_files.items() for each in own
    )
    found = compare(replace(before, entries=entries), replace(a, entries=others))
    assert not found.of(Change.SLOWER)
    assert [each.model for each in found.of(Change.EAGER_FASTER)] == [
        before.entries[0].identity["model"]
    ]


def test_of_two_arms_of_one_run_nothing_is_said_of_machines() -> None:
    """Two backends differ by model; what runs differ by besides is nothing to them."""
    before, after = side(Made(), 0), side(Made(run_sd=0.2), 1)
    after = replace(after, run_id=before.run_id)
    plain = compare(before, after)
    assert not any("machine" in each for each in plain.notes)
    allowed = compare(before, after, run_sd=0.3)
    assert any("nothing is allowed for between runs (--run-sd)" in each for each in allowed.notes)
    assert allowed.findings == plain.findings


def test_what_is_known_of_how_runs_differ() -> None:
    """Widens intervals of speedups, so that nothing is named where nothing was changed."""
    sides = side(Made(), 0), side(Made(run_sd=0.05), 1)
    assert compare(*sides).of(Change.SLOWER)
    allowed = compare(*sides, run_sd=0.05)
    assert not allowed.of(Change.SLOWER)
    assert not allowed.of(Change.FASTER)
    assert allowed.notes == ("intervals allow for runs whose speedups differ by a further 5.0%",)


def test_compile_time_and_memory_have_floors_of_their_own() -> None:
    """A quarter more of a time that differs by 5 % is nothing; twice as much is something."""
    before = side(Made(models=8, compile_sd=0.0), 0)
    entries = list(side(Made(models=8, compile_sd=0.0), 1).entries)
    planted = [("compile_time", each) for each in (2.0, 1.08, 0.5)]
    planted += [("memory_ratio", each) for each in (0.8, 1.25, 0.97)]
    for index, (name, factor) in enumerate(planted):
        quantity = entries[index].quantities[name]
        off = tuple(
            each._replace(value=each.value + math.log(factor)) for each in quantity.replicates
        )
        quantities = {**entries[index].quantities, name: replace(quantity, replicates=off)}
        entries[index] = replace(entries[index], quantities=quantities)
    found = compare(before, replace(before, source="b", entries=tuple(entries)))
    told = [(each.change, each.model) for each in found.findings if each.change != Change.UNCLEAR]
    assert told == [
        (Change.COMPILES_LONGER, "model_00"),
        (Change.NEEDS_MORE_MEMORY, "model_03"),
        (Change.COMPILES_SOONER, "model_02"),
        (Change.NEEDS_LESS_MEMORY, "model_04"),
    ]


def test_columns_of_the_table() -> None:
    """Suites in the order of PyTorch's table, and what has dynamic sizes last."""
    entries = [
        entry
        for suite, dynamic in (
            ("mine", False), ("timm_models", False), ("huggingface", True), ("torchbench", False),
        )
        for entry in of_arms(
            [factories.measured_record(factories.case("m", suite=suite, dynamic=dynamic))]
        )
    ]  # fmt: skip
    found = compare(Side("a", tuple(entries)), Side("b", tuple(entries)))
    (table,) = found.tables
    assert [each.name for each in table.columns] == ["Torchbench", "TIMM models", "mine", "Dynamic"]


def test_it_is_known_how_far_processes_differ() -> None:
    """What records carry is what intervals are made of."""
    assert {each.quantities["speedup"].between_sd for each in side(Made(models=1), 0).entries} == {
        KNOWN
    }
