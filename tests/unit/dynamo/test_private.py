"""What torch doesn't promise may go; that costs what rests on it, and nothing else."""

from __future__ import annotations

import sys
import warnings

import pytest
import torch

from dynamometer.dynamo.capture import capture, internals
from dynamometer.dynamo.capture.phases import Phases
from dynamometer.dynamo.private import RESTS_ON, GoneError, gone, offered, private


@pytest.fixture(params=RESTS_ON)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A name that torch lacks as long as the test lasts."""
    name = str(request.param)
    owner, _, attribute = name.rpartition(".")
    with warnings.catch_warnings(action="ignore"):  # of torch's own, about its own
        private(name)
    monkeypatch.delattr(private(owner), attribute)
    if name in sys.modules:
        monkeypatch.setitem(sys.modules, name, None)
    return name


def test_nothing_is_gone() -> None:
    """This torch has every name, those of modules that nothing has imported yet included."""
    assert gone() == []
    with warnings.catch_warnings(action="ignore"):
        assert all(private(each) is not None for each in RESTS_ON)


def test_what_is_gone_is_named_with_what_rests_on_it(name: str) -> None:
    """The record of a case says so."""
    (note,) = gone()
    assert note == f"torch {torch.__version__} has no {name}: {RESTS_ON[name]} can't be known"
    with pytest.raises(GoneError, match=name.replace(".", r"\.")):
        private(name)


@pytest.mark.usefixtures("name")
def test_timing_goes_on_without_it() -> None:
    """What stands around a timed arm is asked without an error, whatever torch lacks."""
    before = capture.Counters.take()
    phases = Phases.now()
    assert capture.frames_seen() >= 0
    assert internals.graphs_from_caches() >= 0
    assert Phases.now().since(phases).parts_s() == {}
    if before is not None:
        assert before.stats_since(before).graphs == 0


def test_what_is_given_on_says_that_it_is_gone() -> None:
    """A function of torch that is only given on is missed when it is called."""
    missing = offered("torch._dynamo.no_such_function")
    with pytest.raises(GoneError, match="no_such_function"):
        missing(1, two=2)
    assert offered("torch._dynamo.mark_dynamic") is torch._dynamo.mark_dynamic
