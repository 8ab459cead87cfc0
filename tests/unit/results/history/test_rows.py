"""From a run to rows of the index."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import factories
import pytest
from simulated_runs import Made, side

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
