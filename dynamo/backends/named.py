"""Backends that `torch.compile` knows by name, and nothing more is known of.

An attribute of this module is the backend of that name.
"""

from __future__ import annotations

from dynamometer.dynamo.backends import torch_names
from dynamometer.dynamo.backends.compilers import ThroughDynamo

_NEEDS = {"openxla": "torch_xla", "openxla_eval": "torch_xla", "tvm": "tvm"}


def __getattr__(name: str) -> ThroughDynamo:
    """Return the backend of a name.

    Raises:
        AttributeError: `torch.compile` knows none such.
    """
    if name.startswith("__") or not torch_names.is_known(name):
        msg = f"torch.compile knows no backend {name!r}"
        raise AttributeError(msg)
    point = torch_names.entry_points().get(name)
    package = point.partition(":")[0].partition(".")[0] if point else _NEEDS.get(name)
    return ThroughDynamo(
        name=name,
        summary="registered with torch.compile by " + (point or "torch"),
        compiler=name,
        packages=(package,) if package else (),
        distribution=package or "torch",
        trains=True,
    )
