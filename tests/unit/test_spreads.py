"""What is learnt from earlier runs, and from which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common.spreads import known_spread
from dynamometer.results import store
from dynamometer.results.cases import BASELINE
from dynamometer.results.records import ASSUMED_SPREAD

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.results.records import Spread

PLAN = factories.plan(experiments=("speedup",))


def add_run(runs: Path, name: str, models: int, shift: float, **environment: object) -> None:
    """Add a run of some models, each of three replicates that differ by a share."""
    manifest = factories.manifest(PLAN, environment=factories.environment(**environment))
    store.create(runs / name, manifest)
    with store.RunStore(runs / name) as events:
        for model in range(models):
            case = factories.case(f"m{model}")
            for replicate in range(3):
                seconds = {BASELINE: 0.010, "inductor": 0.008 * (1 + shift * replicate)}
                events.append(factories.measured_record(case, replicate=replicate, seconds=seconds))


def known(runs: Path) -> Spread:
    """Give what is assumed of a run that is about to begin."""
    return known_spread(PLAN, factories.environment(), runs)


def test_nothing_is_known_at_first(tmp_path: Path) -> None:
    """Nor from runs on another machine."""
    assert known(tmp_path) == ASSUMED_SPREAD
    add_run(tmp_path, "1", 60, 0.05, cpu="Another CPU")
    assert known(tmp_path) == ASSUMED_SPREAD


def test_runs_that_teach_little_take_no_place(tmp_path: Path) -> None:
    """However many came after one that taught much, interrupted ones among them."""
    add_run(tmp_path, "1", 60, 0.05)
    taught = known(tmp_path)
    assert taught.sd_log == pytest.approx(0.05, rel=0.5)
    for later in range(2, 10):
        add_run(tmp_path, str(later), later % 2, 0.05)
    assert known(tmp_path).sd_log == pytest.approx(taught.sd_log, rel=0.1)
    assert known(tmp_path).df > 8


def test_the_newest_come_first(tmp_path: Path) -> None:
    """What a machine was like before they have taught enough counts no more."""
    add_run(tmp_path, "1", 60, 0.2)
    add_run(tmp_path, "2", 60, 0.01)
    assert known(tmp_path).sd_log == pytest.approx(0.01, rel=0.5)
