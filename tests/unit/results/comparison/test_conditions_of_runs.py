"""What of a run's plan, and of what it measures, a comparison names where it differs."""

from __future__ import annotations

from dataclasses import replace

import factories
import msgspec
import pytest

from dynamometer.results.comparison.compare import compare
from dynamometer.results.comparison.entries import OWN, of_arms
from dynamometer.results.comparison.sides import Side, of_run
from dynamometer.results.values.cases import RunPlan
from dynamometer.results.values.choices import Tuning
from dynamometer.results.values.records import Outcome, Status

NO_CONDITIONS = {
    "suite": "part of each case's identity",
    "models": "tables of Dynamometer, of whose commit it is",
    "cases": "each has an identity of its own",
    "corpus": "where graphs are put",
}
"""Parts of a plan that no condition is named after, and why."""

OTHERWISE: dict[str, object] = {
    "suite_options": {"target": "/models.py"},
    "experiments": ("speedup",),
    "protocol": msgspec.structs.replace(factories.plan().protocol, min_blocks=9),
    "timeout_s": 10.0,
    "memory_limit_bytes": 2**30,
    "seed": 1,
    "threads": 1,
    "executor": "another",
    "jobs": 2,
    "retries_for": ("timeout",),
    "no_skip": True,
    "raise_backend_errors": True,
    "tuning": Tuning(decisions="decisions.sqlite", candidates=("inductor",)),
    "busy": True,
}


def side(plan: RunPlan | None = None, sources: dict[str, str] | None = None) -> Side:
    """Make a run of a plan."""
    manifest = factories.manifest(plan, sources=sources or {})
    record = factories.measured_record()
    return of_run("run", manifest, [record], of_arms([record]))


def differing(before: Side, after: Side) -> dict[str, tuple[str, str]]:
    """Return what a comparison says differs."""
    found = compare(before, after, forced=True).conditions
    return {each.name: (each.before, each.after) for each in found}


def test_each_part_of_a_plan_is_a_condition_or_has_a_reason() -> None:
    """A new one is either."""
    fields = set(RunPlan.__struct_fields__)
    assert fields == NO_CONDITIONS.keys() | OTHERWISE.keys()
    assert not NO_CONDITIONS.keys() & OTHERWISE.keys()


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_plan_that_differs_is_named(name: str) -> None:
    """In one condition, by whatever part."""
    plan = msgspec.structs.replace(factories.plan(), **{name: OTHERWISE[name]})
    assert len(differing(side(), side(plan))) == 1


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ((2, 10), {}),
        ((8, 10), {"batch size": ("2", "8")}),
        ((10, 100), {"batch size": ("2, 10", "10, 100")}),
        ((10, None), {"batch size": ("2, 10", "10, own")}),
    ],
)
def test_batch_sizes_that_differ_are_named(
    after: tuple[int | None, ...], told: dict[str, tuple[str, str]]
) -> None:
    """Nobody says then that no difference is known."""
    sides = []
    for sizes in ((2, 10), after):
        cases = [
            factories.case(model, batch_size=size)
            for model, size in zip(("alexnet", "dcgan"), sizes, strict=True)
        ]
        records = [factories.measured_record(each) for each in cases]
        entries = [entry for each in records for entry in of_arms([each])]
        sides.append(of_run("run", factories.manifest(), records, entries))
    assert differing(*sides) == told


def test_a_batch_size_that_a_file_does_not_know_is_no_other_one() -> None:
    """It has 0 where a model failed."""
    records = [factories.measured_record(factories.case("dcgan", batch_size=4))]
    (entry,) = of_arms(records)
    failed = replace(
        entry,
        outcome=Outcome(status=Status.FAIL, reason="failed"),
        identity={**entry.identity, "batch_size": OWN},
    )
    run = of_run("run", factories.manifest(), records, [entry])
    assert differing(run, replace(run, entries=(entry, failed))) == {}


def test_how_limits_are_written() -> None:
    """With units."""
    plan = factories.plan(timeout_s=10.0, memory_limit_bytes=3 * 2**29)
    assert differing(side(), side(plan)) == {
        "timeout": ("1200 s", "10 s"),
        "memory limit": ("none", "1.5 GiB"),
    }


def test_a_measured_file_that_has_changed_is_named() -> None:
    """By its name, or from the folder that all are in, in another checkout likewise."""
    before = side(sources={"/a/models.py": "0" * 64, "/a/parts/layers.py": "1" * 64})
    after = side(sources={"/b/models.py": "0" * 64, "/b/parts/layers.py": "2" * 64})
    assert differing(before, after) == {"source layers.py": ("1" * 12, "2" * 12)}
    assert differing(before, side(sources={"/a/models.py": "0" * 64})) == {
        "source layers.py": ("1" * 12, "not there")
    }
    alone = side(sources={"/a/parts/layers.py": "1" * 64})
    assert differing(alone, before) == {"source models.py": ("not there", "0" * 12)}
    two = {"/a/__init__.py": "0" * 64, "/a/parts/__init__.py": "1" * 64}
    other = {"/b/__init__.py": "0" * 64, "/b/parts/__init__.py": "2" * 64}
    assert differing(side(sources=two), side(sources=other)) == {
        "source parts/__init__.py": ("1" * 12, "2" * 12)
    }


def test_many_measured_files_are_one_condition() -> None:
    """Of a corpus of test cases nobody reads thousands of lines."""
    many = {f"/corpus/test_{each}.py": str(each) * 64 for each in range(51)}
    (name,) = (found := differing(side(sources=many), side(sources={**many, "/corpus/x.py": "x"})))
    assert name == "sources"
    assert [each.partition(",")[0] for each in found[name]] == ["51 files", "52 files"]
    assert differing(side(sources=many), side(sources=dict(reversed(many.items())))) == {}
