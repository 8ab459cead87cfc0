"""A candidate that makes others slower or faster fails for it, and what it did is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
import torch

from dynamometer.common.interfaces.outcome import ChangedSettingsError
from dynamometer.common.studies.experiment import Context
from dynamometer.common.studies.tuning.worker import _Keeping
from dynamometer.dynamo import state
from dynamometer.results.values.cases import BASELINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHANGES: dict[str, Callable[[], object]] = {
    "intra-op threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "oneDNN": lambda: torch.backends.mkldnn.set_flags(False),
    "flushing of denormal numbers": lambda: torch.set_flush_denormal(True),
    "cuDNN's benchmarking": lambda: setattr(torch.backends.cudnn, "benchmark", True),
}


@pytest.fixture(autouse=True)
def _undone() -> Iterator[None]:
    """Leave the process as it was, whatever a test finds."""
    before = state.pace()
    yield
    state.put_back_pace(before)


def keeping() -> _Keeping:
    """Make the context of tuning, without a job."""
    nothing = cast("Any", None)
    return _Keeping(nothing, nothing, nothing, nothing, nothing)


@pytest.mark.parametrize("name", CHANGES)
def test_a_candidate_that_changes_settings_fails(name: str) -> None:
    """The reason says which; the next candidate finds them as they were."""
    before, context = state.pace(), keeping()
    with pytest.raises(ChangedSettingsError, match=f"{name} from"), context.guarding("mine:bad"):
        CHANGES[name]()
    assert state.pace() == before
    with context.guarding("mine:good"):
        pass


def raising() -> None:
    """Change a setting, then fail."""
    CHANGES["oneDNN"]()
    msg = "not today"
    raise ValueError(msg)


def test_what_it_raises_itself_counts_first() -> None:
    """Its settings are put back all the same."""
    before = state.pace()
    with pytest.raises(ValueError, match="not today"), keeping().guarding("mine:bad"):
        raising()
    assert state.pace() == before


def test_what_is_changed_between_is_found_too() -> None:
    """While arms are timed together nobody looks; whoever is called next starts as all did."""
    before, context = state.pace(), keeping()
    with context.guarding("mine:bad"):
        pass
    CHANGES["oneDNN"]()
    with context.guarding("mine:good"):
        assert state.pace() == before


def test_eager_may_set_what_its_model_sets() -> None:
    """And nothing is looked for where candidates aren't chosen."""
    with keeping().guarding(BASELINE):
        CHANGES["oneDNN"]()
    nothing = cast("Any", None)
    with Context(nothing, nothing, nothing, nothing, nothing).guarding("mine:bad"):
        CHANGES["flushing of denormal numbers"]()
    assert not Context.is_guarded
