"""How the models of a run are run."""

from __future__ import annotations

from dataclasses import dataclass

from dynamometer.results.values.cases import NO_CONTROLS, Controls, Dtype, Mode, Scale, Symbols


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
    symbols: Symbols = Symbols.ALL
    scale: Scale = Scale.FULL
    batch_size: int | None = None
    controls: Controls = NO_CONTROLS
    """What every model is run with as well."""
    model_controls: bool = False
    """Whether it is also run with what its table says."""
