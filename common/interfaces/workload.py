"""How the models of a run are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dynamometer.results.values.cases import (
    NO_OVERRIDES,
    Dtype,
    DynamicDims,
    MatmulPrecision,
    Mode,
    Overrides,
    Scale,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """How the selected models are run."""

    arms: tuple[str, ...]
    device: str = "cpu"
    mode: Mode = Mode.INFERENCE
    dtype: Dtype = Dtype.FLOAT32
    matmul_precision: MatmulPrecision = MatmulPrecision.HIGHEST
    channels_last: bool = False
    compiled_optimizer: bool = False
    nopython: bool = False
    dynamic: bool = False
    dynamic_dims: DynamicDims = DynamicDims.ALL
    scale: Scale = Scale.FULL
    batch_size: int | None = None
    """Of all models; `None` for each model's own."""
    batch_sizes: Mapping[str, int] = {}
    """Of the models named, in place of that."""
    overrides: Overrides = NO_OVERRIDES
    """What every model is run with as well."""
    model_overrides: bool = False
    """Whether it is also run with what its table says."""
    only_overrides: bool = False
    """Whether it isn't run without."""
