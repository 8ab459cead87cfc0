"""Settings of torch that hold for a whole process, which one arm may change for all others."""

from __future__ import annotations

import copy
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch

from dynamometer.dynamo.private import GoneError, private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def _flushes_denormals() -> bool:
    """Multiply the least number there is; torch doesn't tell otherwise."""
    return float(torch.tensor(5e-324, dtype=torch.float64) * 1) == 0


_PACE: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "intra-op threads": (torch.get_num_threads, torch.set_num_threads),
    "oneDNN": (
        lambda: torch.backends.mkldnn.enabled,
        lambda is_on: setattr(torch.backends.mkldnn, "enabled", is_on),
    ),
    "flushing of denormal numbers": (_flushes_denormals, torch.set_flush_denormal),
    "cuDNN": (
        lambda: torch.backends.cudnn.enabled,
        lambda is_on: setattr(torch.backends.cudnn, "enabled", is_on),
    ),
    "cuDNN's benchmarking": (
        lambda: torch.backends.cudnn.benchmark,
        lambda is_on: setattr(torch.backends.cudnn, "benchmark", is_on),
    ),
    "detection of anomalies, and of NaN": (
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda both: torch.autograd.set_detect_anomaly(*both),
    ),
}
"""Those that decide how fast others' code runs: read, and set."""


def pace() -> dict[str, Any]:
    """Return torch's settings that decide how fast others' code runs in this process."""
    return {name: read() for name, (read, _) in _PACE.items()}


def put_back_pace(wanted: Mapping[str, Any]) -> list[str]:
    """Set what `pace` gave, and say what was otherwise."""
    changed = []
    for name, (read, write) in _PACE.items():
        now = read()
        if now != wanted[name]:
            changed.append(f"{name} from {wanted[name]} to {now}")
            write(wanted[name])
    return changed


@contextmanager
def at_pace(wanted: Mapping[str, Any]) -> Iterator[None]:
    """Have what `pace` gave set for a while, if anything: an arm needs its own until it is done."""
    own = pace()
    put_back_pace(wanted or own)
    try:
        yield
    finally:
        put_back_pace(own)


Options = dict[str, dict[str, Any]]
"""Options of Dynamo, AOTAutograd and Inductor, by the module that holds them."""
_MODULES = ("torch._dynamo.config", "torch._functorch.config", "torch._inductor.config")
_OF_TORCH = {"aot_inductor.metadata"}
"""No options: AOTInductor notes there what it has compiled for."""


def options() -> Options:
    """Return the options that all goes by that is compiled in this process."""
    return {module: _options_of(module) for module in _MODULES}


def put_back_options(wanted: Options) -> list[str]:
    """Set what `options` gave, and name those that were otherwise."""
    changed = []
    for module, before in wanted.items():
        now = _options_of(module)
        others = [name for name in before if not _are_same(before[name], now.get(name))]
        changed += [f"{module}.{name}" for name in others]
        for name in others:
            with suppress(Exception), _without_warnings():  # one may refuse what it was given
                setattr(private(module), name, before[name])
    return changed


def _options_of(module: str) -> dict[str, Any]:
    """Return the options themselves, and copies of containers; none where torch can't list them."""
    found: dict[str, Any] = {}
    with suppress(GoneError), _without_warnings():
        config = private(module)
        # Where torch offers a list it copies all that they hold, which not everything can be.
        for name in vars(config).get("_config", {}).keys() - _OF_TORCH:
            with suppress(Exception):  # some are functions of what the machine has
                found[name] = _kept(getattr(config, name))
    return found


def _kept(value: Any) -> Any:
    return copy.copy(value) if isinstance(value, dict | list | set) else value


def _are_same(one: Any, other: Any) -> bool:
    """Compare two values; of what can't be compared only the very same is the same."""
    with suppress(Exception):
        return one is other or (type(one) is type(other) and bool(one == other))
    return False


def _without_warnings() -> warnings.catch_warnings[None]:
    """Some options are deprecated, and say so to whoever looks at them."""
    return warnings.catch_warnings(action="ignore")
