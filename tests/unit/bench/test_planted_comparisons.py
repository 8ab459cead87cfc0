"""What a script of `bench` plants into a stored run, and whether exactly that is named."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from simulated_runs import KNOWN, Made, run

from dynamometer.results.statistics.between_processes import with_between_sd
from dynamometer.results.store import store
from dynamometer.results.values.records import ASSUMED_SD, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamometer.results.values.records import Record

PATH = Path(__file__).resolve().parents[3] / "bench" / "planted_comparisons.py"
MODELS = 30


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    """Import it."""
    spec = importlib.util.spec_from_file_location("planted_comparisons", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["planted_comparisons"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["planted_comparisons"]


@pytest.fixture(scope="module")
def stored(script: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Read two runs of thirty models, of which one fails in the second by itself."""
    folder = tmp_path_factory.mktemp("runs")
    found = []
    for seed, made in enumerate((Made(MODELS), Made(MODELS, failing=frozenset({7})))):
        manifest, cases = run(made, seed, 12)
        directory = folder / manifest.run_id
        store.create(directory, manifest)
        with store.RunStore(directory) as events:
            for records in cases:
                for each in records:
                    events.append(msgspec.structs.replace(each, run_id=manifest.run_id))
        found.append(script.read(directory))
    return found


@pytest.mark.slow
def test_what_is_planted_is_named(script: Any, stored: list[Any]) -> None:
    """By what the comparison itself says; beside it is what differs anyway."""
    text = script.page(*stored, 2)
    assert "| a run and itself | nothing |" in text
    assert "| both runs as they are | newly failing model_07 inductor |" in text
    for where in ("in place of", "on top of"):
        assert f"| noise {where} their own: a run and itself | nothing in 2 of 2 |" in text
        assert f"| noise {where} their own: planted | exactly what was planted in 0 of 2 |" in text
    assert text.count("named as well: newly failing model_07 inductor") == 4
    assert "not named: " not in text
    besides = "| the same, besides what differs anyway | exactly what was planted in 2 of 2 |"
    assert text.count(besides) == 2


def _of_nobody(record: Record) -> Record:
    """Return a record of a machine of which nothing is known."""
    return with_between_sd(record, ASSUMED_SD)


def test_noise_in_place_of_their_own(script: Any, stored: list[Any]) -> None:
    """Both runs have the first one's speedups, in every block, and a steady machine's knowledge."""
    case = next(iter(stored[0].cases))
    before, after = (
        replace(each, cases={case: [_of_nobody(own) for own in each.cases[case]]})
        for each in stored
    )
    quantities = []
    for each in (before, script.without_noise(before, before), script.without_noise(after, before)):
        (entry,) = each.entries(case)
        quantities.append(entry.quantities["speedup"])
    was, *steady = quantities
    assert any(each.error > 0.0 for each in was.replicates)
    for found in steady:
        assert found.value == pytest.approx(was.value)
        assert all(each.error == 0.0 for each in found.replicates)
        assert found.between_sd == KNOWN


def test_what_is_planted(script: Any, stored: list[Any]) -> None:
    """Three models are slower, two fail, one is gone; a model that fails anyway is none of them."""
    before, after = stored
    usable = script.usable(before, after)
    assert len(usable) == MODELS - 1
    cases, truth = script.planted(after, usable[:6], np.random.default_rng(1))
    kinds = [kind for kind, _, _ in truth]
    assert sorted(kinds) == ["gone", "newly failing", "newly failing", "slower", "slower", "slower"]
    assert usable[5] not in cases
    assert [cases[each][0].outcome.status for each in usable[3:5]] == [Status.FAIL_ACCURACY] * 2
    medians = []
    for each in usable[:10]:
        if each in usable[3:6]:
            continue
        (was, now) = (
            np.median(next(m.samples for m in records[0].measurements if m.arm == "inductor"))
            for records in (after.cases[each], cases[each])
        )
        medians.append(float(now / was))
    assert min(medians[:3]) > 1.03
    assert max(medians[3:]) < 1.03


def test_too_few_models(script: Any, stored: list[Any]) -> None:
    """Are refused."""
    few = script.Stored(stored[0].directory, stored[0].manifest, {})
    with pytest.raises(ValueError, match="0 models passed in both runs; 6 are to be changed"):
        script.page(few, stored[1], 1)


def test_a_page_names_nothing_of_one_machine(script: Any) -> None:
    """Neither the interpreter nor directories."""
    command = "/a/bin/python '/b c/torchbench.py' -r 5 --output-dir /d --only resnet18"
    assert script._portable(command) == "./torchbench.py -r 5 --only resnet18"
    assert script._portable("./torchbench.py --quick") == "./torchbench.py --quick"
