"""What every run does around timing, where torch lacks names that it rests on."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from dynamometer.dynamo import private, state
from dynamometer.dynamo.backends.backends import eager
from dynamometer.dynamo.backends.inductor import _stamp, inductor
from dynamometer.dynamo.backends.torchscript import torchscript
from dynamometer.results.values.cases import Mode


@pytest.fixture
def nothing_private(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that has none of the names."""
    with warnings.catch_warnings(action="ignore"):  # of torch's own, about its own
        owners = {name: private.private(name.rpartition(".")[0]) for name in private.RESTS_ON}
        assert all(private.private(name) is not None for name in private.RESTS_ON)
    for name, owner in owners.items():
        monkeypatch.delattr(owner, name.rpartition(".")[2])
        if name in sys.modules:
            monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("nothing_private")
def test_workers_are_prepared_and_run_all_the_same() -> None:
    """Nothing is preloaded, no stamp kept, and settings that are gone are left out."""
    assert set(private.gone())
    eager.preload("cpu")
    inductor.preload("cpu")
    assert _stamp("cpu") is None
    with state.running(Mode.INFERENCE, 1):
        assert torch.get_num_threads() == 1
        assert not torch.is_grad_enabled()


@pytest.mark.usefixtures("nothing_private")
def test_what_cant_be_set_is_not_measured_as_if_it_were() -> None:
    """Sizes that should be dynamic from the start fail with the name that is gone."""
    context = state.running(Mode.INFERENCE, None, dynamic=True)
    with pytest.raises(private.GoneError, match="assume_static_by_default"), context:
        pass


@pytest.mark.usefixtures("nothing_private")
def test_a_class_that_is_gone_is_missed_when_an_object_is_made() -> None:
    """Modules that derive from it can be imported."""
    name = "torch.utils._python_dispatch.TorchDispatchMode"
    base = private.offered_class(name)
    with pytest.raises(private.GoneError, match="TorchDispatchMode"):
        type("Own", (base,), {})()


def test_a_module_nobody_has_imported_is_not_missed() -> None:
    """It is there, and was not asked for; one that isn't there is."""
    assert private._is_unused("this")
    assert not private._is_unused("torch")
    assert not private._is_unused("torch.no_such_package.module")


@pytest.mark.parametrize("name", ["trace", "freeze"])
def test_torchscript_says_that_torch_has_it_no_more(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either of its functions gone, the arm is unavailable with that reason."""
    assert torchscript.available("cpu") is None
    monkeypatch.delattr(torch.jit, name)
    reason = torchscript.available("cpu")
    assert reason == f"torch {torch.__version__} has no torch.jit.{name} any more"


WITHOUT_MODES = """
from dynamometer.dynamo import private as names
find = names.private
def private(name):
    if name.endswith(".TorchDispatchMode"):
        raise names.GoneError("torch has no " + name)
    return find(name)
names.private = private

import torch
from judging import judge, precisely
from dynamometer.common.checking.checking import Checks
from dynamometer.results.values.cases import Mode

torch.manual_seed(0)
layer = torch.nn.Linear(4096, 8, bias=False)
with torch.no_grad():
    layer.weight -= layer.weight.mean(1, keepdim=True)
for mode in Mode:
    found = judge(layer, 1000 + torch.randn(4, 4096), arm=precisely, mode=mode)
    assert isinstance(found, Checks), found
    assert not found.reservations, found
"""


def test_right_arms_pass_where_no_operator_can_be_watched() -> None:
    """What rounding does to a sum that cancels is known of other weights, and of float64."""
    tests = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MODES],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
