"""Three computations of ocean models, those of dionhaefner/pyhpc-benchmarks.

All are pure functions in float64 over a box of random cells; the batch size is its number of
cells.
"""

from __future__ import annotations

import torch

from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.dynamo.capture.function import FunctionModule
from dynamometer.models.builders.isoneutral import Mixing, isoneutral_mixing
from dynamometer.models.builders.ocean_grid import box_shape, random_grid, uniform
from dynamometer.models.builders.seawater import enthalpy_slope
from dynamometer.models.builders.turbulence import Columns, step_turbulence

UNEVENNESS = 1e-3  # of surfaces of neutral density; about the slope at which tapering sets in


def build_equation_of_state(*, batch_size: int) -> LoadedModel:
    """Build the equation of state of seawater over about `batch_size` cells."""
    shape = box_shape(batch_size)
    salinity = uniform(1e-2, 10.0, *shape)
    temperature = uniform(-12.0, 20.0, *shape)
    pressure = uniform(0.0, 1000.0, 1, 1, shape[-1])
    return LoadedModel(
        module=FunctionModule(enthalpy_slope), args=(salinity, temperature, pressure)
    )


def build_isoneutral_mixing(*, batch_size: int) -> LoadedModel:
    """Build mixing along neutral surfaces over about `batch_size` cells."""
    shape = box_shape(batch_size)
    # Warmer with height, and nearly level: where slopes are steep, nothing is left to compute.
    stratified = torch.stack([torch.arange(shape[-1]).expand(shape), torch.full(shape, 35.0)])
    tracers = stratified + UNEVENNESS * _normal(2, *shape)
    depth, diffusivity = _normal(shape[-1]), _normal(*shape)
    slopes = (torch.zeros(*shape, 2, 2, dtype=torch.float64) for _ in range(4))
    boundary = Mixing(*(_normal(*shape) for _ in range(3)), *slopes)
    return LoadedModel(
        module=FunctionModule(isoneutral_mixing),
        args=(random_grid(shape), tracers, depth, diffusivity, boundary),
    )


def build_turbulent_kinetic_energy(*, batch_size: int) -> LoadedModel:
    """Build a step of turbulent kinetic energy over about `batch_size` cells."""
    shape = box_shape(batch_size)
    bottom = torch.randint(shape[-1], shape[:2])
    # Viscosity and mixing length are positive, without which the systems may be singular.
    viscosity, mixing_length = uniform(0.5, 1.5, *shape), uniform(0.5, 1.5, *shape)
    return LoadedModel(
        module=FunctionModule(step_turbulence),
        args=(
            random_grid(shape),
            _normal(3, *shape),
            Columns(bottom, viscosity, mixing_length, _normal(*shape), _normal(*shape[:2])),
            _normal(3, *shape),
            _normal(3, *shape),
        ),
    )


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)
