"""From a run to rows of the index."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import factories
import pytest
from simulated_runs import Made, side

from dynamometer.results.comparison.sides import of_run
from dynamometer.results.history.rows import indexed_run, rows
from dynamometer.results.values.cases import BASELINE


def test_a_row_for_each_metric_of_an_arm() -> None:
    """One that failed has the row that says how, and no other."""
    run = side(Made(models=3, failing=frozenset({1})), 0)
    found = rows(run)
    failed, passed = run.entries[1], run.entries[0]
    of_failed = [each for each in found if each.identity == failed.identity]
    assert [(each.metric, each.status, each.value) for each in of_failed] == [
        ("status", str(failed.outcome.status), None)
    ]
    of_passed = {each.metric: each for each in found if each.identity == passed.identity}
    assert of_passed.keys() == {"status", *passed.quantities}
    for name, quantity in passed.quantities.items():
        row = of_passed[name]
        assert row.value == pytest.approx(quantity.value)
        assert row.low is not None
        assert row.high is not None
        assert row.low < row.value < row.high
        assert (row.error, row.n) == (quantity.mean.error, len(quantity.replicates))


def test_eager_is_there_once() -> None:
    """Whichever arms it was measured beside; it is the baseline's."""
    run = side(Made(models=2), 0)
    twice = replace(run, entries=(*run.entries, *(replace(each, arm="ts") for each in run.entries)))
    found = Counter((each.metric, each.arm) for each in rows(twice))
    assert found["eager_latency", BASELINE] == 2
    assert found["latency", "ts"] == found["latency", "inductor"] == 2
    assert ("eager_latency", "ts") not in found


def test_what_parts_series_and_what_does_not() -> None:
    """Hardware and protocol do; versions and the name of the host are what may change."""
    manifest = factories.manifest()
    conditions = {"cpu": "x", "burst_s": "1", "machine": "host", "torch": "2.11", "scale": "full"}
    found = indexed_run(manifest, replace(side(Made(models=1), 0), conditions=conditions))
    assert found.setting == {"cpu": "x", "burst_s": "1"}
    assert found.conditions == {"machine": "host", "torch": "2.11"}
    assert (found.run_id, found.study) == (manifest.run_id, manifest.plan.study)


def test_where_all_crash_the_series_goes_on() -> None:
    """Only workers name the processor; where none could, the series is the same."""
    run = side(Made(models=1), 0)
    known = {"device": "cpu", "device name": "Made-up CPU", "cpu": "x"}
    unknown = {name: value for name, value in known.items() if name != "device name"}
    manifest = factories.manifest()
    settings = [
        indexed_run(manifest, replace(run, conditions=each)).setting for each in (known, unknown)
    ]
    assert settings[0] == settings[1]
    other = indexed_run(manifest, replace(run, conditions={**known, "device": "cuda"})).setting
    assert other["device name"] == "Made-up CPU"


def test_models_of_two_files_have_two_series() -> None:
    """Though functions in them have the same name."""
    run = side(Made(models=1), 0)
    settings = [
        indexed_run(
            factories.manifest(), replace(run, conditions={"suite option target": file})
        ).setting
        for file in ("small.py", "other.py")
    ]
    assert settings[0] != settings[1]


def test_a_model_of_a_file_has_one_series() -> None:
    """Whether the file was named or the model in it."""
    settings = []
    for target in ("small.py", "small.py::model", "other.py::model"):
        manifest = factories.manifest(factories.plan(suite_options={"target": target, "x": "a::b"}))
        settings.append(indexed_run(manifest, of_run("run", manifest, [], [])).setting)
    of_file, of_model, of_other = settings
    assert of_file == of_model != of_other
    assert of_file["suite option x"] == "a::b"
