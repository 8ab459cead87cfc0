"""How the models of a run are run."""

from __future__ import annotations

from dataclasses import dataclass

from dynamometer.results.values.cases import (
    NO_OVERRIDES,
    Dtype,
    DynamicDims,
    Mode,
    Overrides,
    Scale,
)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How the selected models are run."""

    arms: tuple[str, ...]
    device: str = "cpu"
    mode: Mode = Mode.INFERENCE
    dtype: Dtype = Dtype.FLOAT32
    channels_last: bool = False
    compiled_optimizer: bool = False
    nopython: bool = False
    dynamic: bool = False
    dynamic_dims: DynamicDims = DynamicDims.ALL
    scale: Scale = Scale.FULL
    batch_size: int | None = None
    overrides: Overrides = NO_OVERRIDES
    """What every model is run with as well."""
    model_overrides: bool = False
    """Whether it is also run with what its table says."""
