"""What is read from torch's files is what torch says once it is imported."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys

import pytest
import torch
import torch._dynamo
import torch._inductor.config

from dynamometer.common import registry
from dynamometer.dynamo.backends import inductor_options, named, torch_names
from dynamometer.dynamo.backends.inductor import inductor, of_inductor
from dynamometer.dynamo.backends.settings import inductor_settings
from dynamometer.dynamo.backends.settings.values import Values


def test_names_are_those_of_torch_compile() -> None:
    """All that it registers, and those of installed distributions."""
    known = torch_names.names_of_torch() | set(torch_names.entry_points())
    assert known == set(torch._dynamo.list_backends(exclude_tags=()))


def test_settings_are_those_of_inductor() -> None:
    """Each name that torch tells is known without it."""
    told = {name for name in torch._inductor.config.get_config_copy() if name != "TYPE_CHECKING"}
    assert told - {*inductor_settings.settings()} == set()
    assert inductor_options.CUDA_GRAPHS in told


@pytest.mark.slow
def test_what_is_read_of_settings_is_so() -> None:
    """Each has a value that it may have, and where a default is known that is its value."""
    known = inductor_settings.settings()
    # A process of its own: Inductor keeps notes in some settings of this one.
    code = (
        "import pickle, sys, torch._inductor.config as config;"
        "sys.stdout.buffer.write(pickle.dumps(config.get_config_copy()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    told = pickle.loads(done.stdout)
    for name in told.keys() & known:
        value = told[name]
        types, default = known[name].types, known[name].default
        assert not types or isinstance(value, types), name
        assert not default or default == (value,), name
    assert known["max_autotune"] == Values((bool,))
    assert known["cpp.simdlen"] == Values((int, type(None)), default=(None,))
    assert known["cpu_backend"].choices == ("cpp", "triton", "halide", "pallas")


def test_modes_are_those_of_torch() -> None:
    """What each sets is read without importing it; one that isn't said plainly is left out."""
    told = torch._inductor.list_mode_options()
    read = inductor_settings.modes()
    assert {"default", "max-autotune", "reduce-overhead"} <= {*read}
    assert read == {mode: told[mode] for mode in read}


def test_what_another_torch_says_otherwise_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that isn't said plainly is not known, and the others are."""
    files = {
        "__init__.py": (
            "def list_mode_options(mode=None):\n"
            "    other = {'lite': {'a': 1}}\n"
            "    mode_options = {'default': {}, 'a': {'b': is_cuda()}, 'c': {[]: 1}, 'd': {'e': 1}}"
        ),
        "config.py": 'a: "list[" = 1\nb = {[]: 1}\nc: Literal[A, B] = A\nd = 3',
    }
    monkeypatch.setattr(inductor_settings, "_parsed", lambda name: ast.parse(files[name]).body)
    # Both keep what they read, so that what is under them is called.
    assert inductor_settings.modes.__wrapped__() == {"default": {}, "d": {"e": 1}}
    assert inductor_settings.settings.__wrapped__() == {
        "a": Values((), default=(1,)), "b": Values(), "c": Values(), "d": Values((int,), (), (3,)),
    }  # fmt: skip


def test_such_a_name_is_a_backend() -> None:
    """It compiles through Dynamo; one that needs a package says so; what nobody knows is none."""
    backend = registry.resolve("backends", "eager_noexcept")
    module = torch.nn.Linear(3, 2)
    x = torch.ones(1, 3)
    assert torch.equal(backend.compile(module, (x,), {})(x), module(x))
    reason = named.__getattr__("openxla").available("cpu")
    assert reason == "openxla needs the package torch_xla: pip install torch_xla"
    with pytest.raises(AttributeError, match="knows no backend 'nothing_like_it'"):
        named.__getattr__("nothing_like_it")


def test_a_mode_is_what_torch_says_it_is() -> None:
    """And what is set apart from it counts."""
    of_mode = torch._inductor.list_mode_options("max-autotune")
    found = of_inductor({"triton.cudagraphs": False, "mode": "max-autotune"})
    assert found == {**of_mode, "triton.cudagraphs": False}
    assert inductor.set_to({"mode": "max-autotune"}).settings == of_mode


@pytest.mark.parametrize("option", [each for each in inductor_options.INDUCTOR if not each.family])
def test_torch_knows_what_options_set(option: inductor_options.BackendOption) -> None:
    """Every word comes to settings that this torch has."""
    known = torch._inductor.config.get_config_copy()
    assert set(of_inductor(option.settings(option.name, None))) <= set(known)
