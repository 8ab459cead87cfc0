"""The server that workers are forked from, left to end by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import hostile_manifest

from dynamometer.common.execution.executors.local import LocalExecutor
from dynamometer.common.execution.fork_servers import _preload_of
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("own_fork_servers")
def test_a_server_ends_when_nobody_asks_it_any_more(tmp_path: Path) -> None:
    """It has served, its run closes the socket, and it ends well without being killed."""
    manifest = hostile_manifest(["allocates"])
    executor = LocalExecutor(manifest, tmp_path)
    try:
        record = executor.execute(manifest.plan.cases[0], 0)
        assert record.outcome.status is Status.PASS
        (server,) = executor._servers._servers.values()
        assert server._control is not None
        assert server._keeper is not None
        server._control.close()
        assert server._keeper.wait() == 0
        server._control = None
    finally:
        executor.close()


@pytest.mark.parametrize("is_of_other_models", [True, False])
@pytest.mark.usefixtures("own_fork_servers")
def test_one_that_died_with_nothing_to_do_is_replaced(
    tmp_path: Path, *, is_of_other_models: bool
) -> None:
    """Whoever needs it next, as the stages of an ensemble do for other models, gets another."""
    manifest = hostile_manifest(["allocates"])
    executor = LocalExecutor(manifest, tmp_path)
    try:
        executor.prepare(manifest.plan.cases)
        (server,) = executor._servers._servers.values()
        assert server._keeper is not None
        server._keeper.kill()
        server._keeper.wait()
        if is_of_other_models:
            server.preloaded = None
        assert executor.execute(manifest.plan.cases[0], 0).outcome.status is Status.PASS
    finally:
        executor.close()


@pytest.mark.usefixtures("own_fork_servers")
def test_workers_import_for_themselves_where_nothing_may_be_imported_ahead(tmp_path: Path) -> None:
    """They do as others."""
    manifest = hostile_manifest(["allocates"])
    executor = LocalExecutor(manifest, tmp_path)
    executor._servers._harmful.append(_preload_of(manifest.plan))
    try:
        assert executor.execute(manifest.plan.cases[0], 0).outcome.status is Status.PASS
        (server,) = executor._servers._servers.values()
        assert server.preloaded is not None
        assert not server.preloaded.is_ahead
    finally:
        executor.close()
