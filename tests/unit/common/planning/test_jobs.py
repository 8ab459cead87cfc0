"""How many cases run at the same time, and with how many threads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import factories
import pytest

from dynamometer.common import registry
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import defaults
from dynamometer.common.interfaces.run_options import EXECUTOR, JOBS, SPAWN, THREADS, run_options
from dynamometer.common.interfaces.workload_options import DEVICE
from dynamometer.common.planning import jobs
from dynamometer.common.planning.jobs import cores, jobs_of, threads_of
from dynamometer.common.planning.plan import default_memory_limit, make_plan
from dynamometer.common.studies.batch_sizes.study import FIND_BATCH_SIZES
from dynamometer.common.studies.study import Jobs, options_of

if TYPE_CHECKING:
    from pathlib import Path

    from dynamometer.common.interfaces.option import Option, Request

NOTHING = defaults(run_options())
UNTIMED = [each for each in registry.studies() if each.jobs is Jobs.ALL_CORES]
TIMED = [each for each in registry.studies() if each.jobs is Jobs.ONE]


@pytest.fixture(autouse=True)
def _eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "cores", lambda: 8)


def asked(*pairs: tuple[Option[Any], object]) -> Request:
    """Return what is asked for."""
    request = NOTHING
    for option, value in pairs:
        request = request.but(option, value)
    return request


def test_what_is_timed_runs_alone() -> None:
    """And says so where several are asked for; one is no contradiction."""
    assert {"speedup", "sizes", "in_pairs", "tuning"} <= {
        each.experiments(NOTHING)[0] for each in TIMED
    }
    for study in TIMED:
        assert jobs_of(study, NOTHING) == jobs_of(study, asked((JOBS, 1))) == 1
        assert threads_of(study, NOTHING) is None
        with pytest.raises(UsageError, match="-j 2 can't be: what is asked runs one case"):
            jobs_of(study, asked((JOBS, 2)))


def test_memory_is_shared_by_no_more_than_there_are() -> None:
    """A case that runs alone may take what one may take by itself."""
    suite = registry.suite("parity")
    request = defaults(run_options(options_of(*registry.studies()), suite.options))
    models = tuple(factories.model_spec(f"p.{each}") for each in "abcdefghij")
    found = {count: make_plan("parity", {}, models[:count], request, {}) for count in (1, 2, 10)}
    assert {count: plan.jobs for count, plan in found.items()} == {1: 1, 2: 2, 10: 8}
    whole = default_memory_limit()
    assert [each.memory_limit_bytes for each in found.values()] == [whole, whole // 2, whole // 8]


def test_searches_for_batch_sizes_share_the_memory() -> None:
    """Each goes on until what it may take is used up."""
    options = run_options(options_of(*registry.studies()), registry.suite("torchbench").options)
    models = tuple(factories.model_spec(name) for name in ("a", "b", "c"))
    for count, share in ((1, 1), (2, 2), (8, 3)):  # no more at a time than there are
        request = defaults(options).but(FIND_BATCH_SIZES, value=True).but(JOBS, count)
        plan = make_plan("torchbench", {}, models, request, {})
        assert plan.memory_limit_bytes == default_memory_limit() // share


@pytest.mark.parametrize(
    ("quota", "found"),
    [
        ("max 100000", 64),
        ("200000 100000", 2),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("9900000 100000", 64),
    ],
)
def test_a_quota_leaves_fewer_cores(
    quota: str, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a container that sees all there are, and may keep two busy, it is two."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text(f"{quota}\n")
    assert cores(tmp_path) == found


def test_what_is_not_timed_runs_on_all_cores() -> None:
    """With threads that are the same whatever the number of cases."""
    assert {"accuracy", "coverage", "parity"} <= {each.experiments(NOTHING)[0] for each in UNTIMED}
    for study in UNTIMED:
        assert jobs_of(study, NOTHING) == 8
        assert jobs_of(study, asked((JOBS, 3))) == 3
        few, many = (threads_of(study, asked((JOBS, each))) for each in (1, 8))
        assert few == many == threads_of(study, NOTHING) in {1, 2}
        assert threads_of(study, asked((THREADS, 5))) == 5


def test_a_search_for_batch_sizes_runs_beside_others_where_asked() -> None:
    """It looks at the clock to find an end."""
    study = registry.study("batch_sizes")
    assert jobs_of(study, NOTHING) == 1
    assert jobs_of(study, asked((JOBS, 2))) == 2


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        (DEVICE, "cuda", "share one cuda device"),
        (SPAWN, True, "--spawn"),
        (EXECUTOR, "elsewhere", "the executor elsewhere"),
    ],
)
def test_where_cases_cant_run_beside_others(option: Option[Any], value: object, said: str) -> None:
    """One at a time then, and more are refused with the reason."""
    study = registry.study("accuracy")
    assert jobs_of(study, asked((option, value))) == 1
    with pytest.raises(UsageError, match=said):
        jobs_of(study, asked((option, value), (JOBS, 2)))
