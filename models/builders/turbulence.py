"""One step of turbulent kinetic energy in the ocean.

Source: Gaspar et al. 1990, "A simple eddy kinetic energy model for simulations of the oceanic
vertical mixing" (implicit vertical diffusion and dissipation); Roe 1985 for the superbee limiter
of advection; Adams-Bashforth in time; constants of the ocean model Veros.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.nn import functional

from dynamometer.models.builders.ocean_grid import RIM, Grid

STEP = 1.0  # s
DISSIPATION = 0.7
LATERAL_DIFFUSIVITY = 2000.0  # m^2 / s
STABILISER = 0.1  # departure from second-order Adams-Bashforth
TINY = 1e-20
INNER = (RIM, RIM)


class Columns(NamedTuple):
    """What happens vertically: `[X, Y, Z]`, but for the bottom and the surface, `[X, Y]`.

    The bottom is the number of the lowest level in water, from 1, or 0 on land (int64); forcing
    is the production of energy.
    """

    bottom: torch.Tensor
    viscosity: torch.Tensor
    mixing_length: torch.Tensor
    forcing: torch.Tensor
    surface_forcing: torch.Tensor


def step_turbulence(
    grid: Grid,
    velocity: torch.Tensor,
    columns: Columns,
    energy: torch.Tensor,
    tendency: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Advance turbulent kinetic energy by one step.

    Args:
        grid: the grid.
        velocity: across eastern, northern and upper faces, `[3, X, Y, Z]`.
        columns: what happens vertically.
        energy: at this step, at the next (to be computed) and at the last, `[3, X, Y, Z]`.
        tendency: by advection, likewise; that at this step is to be computed.

    Returns:
        Energy and tendency with what was computed, and the energy that was added at the surface
        where it would have become negative, `[X, Y]`.
    """
    now, before = energy[0], tendency[2]
    mixed, water = _mix(grid, columns, now)
    after = energy[1].clone()
    after[INNER] = torch.where(water, mixed, after[INNER])
    surface = after[(*INNER, -1)]
    correction = torch.zeros_like(after[..., 0])
    correction[INNER] = (-surface).clamp(min=0.0) * grid.dzw[-1] / (2 * STEP)
    after[(*INNER, -1)] = surface.clamp(min=0.0)
    after[INNER] += STEP * grid.mask_w[INNER] * _diffusion(grid, now)
    advected = tendency[0].clone()
    advected[INNER] = _advection(grid, velocity, now)
    after += STEP * ((1.5 + STABILISER) * advected - (0.5 + STABILISER) * before)
    return (
        torch.stack([now, after, energy[2]]),
        torch.stack([advected, tendency[1], before]),
        correction,
    )


def _mix(grid: Grid, columns: Columns, energy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Diffuse vertically and dissipate, both implicitly.

    Returns:
        Energy, and where there is water, both inside the rim: `[X - 4, Y - 4, Z]`.
    """
    lowest = (columns.bottom[INNER] - 1)[..., None]
    levels = torch.arange(energy.shape[-1], device=energy.device)
    water = (lowest >= 0) & (levels >= lowest)
    kappa = columns.viscosity[INNER]
    above = STEP * (kappa[..., :-1] + kappa[..., 1:]) / (2 * grid.dzt[1:])
    # Nothing leaves through the surface, nor through the bottom of a column.
    above = functional.pad(above, (0, 1))
    below = functional.pad(above[..., :-1], (1, 0)) * (levels > lowest)
    height = torch.cat([grid.dzw[:-1], grid.dzw[-1:] / 2])
    speed = energy[INNER].clamp(min=0.0).sqrt()
    dissipation = STEP * DISSIPATION * speed / columns.mixing_length[INNER]
    known = energy[INNER] + STEP * columns.forcing[INNER]
    at_surface = STEP * columns.surface_forcing[INNER] / height[-1]
    known = torch.cat([known[..., :-1], (known[..., -1] + at_surface)[..., None]], dim=-1)
    solution = _solve_tridiagonal(
        -below / height * water,
        torch.where(water, 1 + (above + below) / height + dissipation, 1.0),
        -above / height * water,
        known * water,
    )
    return solution, water


def _solve_tridiagonal(
    lower: torch.Tensor, diagonal: torch.Tensor, upper: torch.Tensor, known: torch.Tensor
) -> torch.Tensor:
    """Solve systems of equations along the last axis by elimination (Thomas's algorithm).

    Args:
        lower: `[..., Z]`, coefficients of the unknown before; the first is not used.
        diagonal: `[..., Z]`.
        upper: `[..., Z]`, coefficients of the unknown after; the last is not used.
        known: `[..., Z]`, right-hand sides.
    """
    rows = zip(*(field.unbind(-1) for field in (lower, diagonal, upper, known)), strict=True)
    _, pivot, after, value = next(rows)
    eliminated = [(pivot, after, value)]
    for before, current, following, right in rows:
        factor = before / pivot
        pivot, value, after = current - factor * after, right - factor * value, following
        eliminated.append((pivot, after, value))
    unknown = torch.zeros_like(value)
    solution = []
    for pivot, after, value in reversed(eliminated):
        unknown = (value - after * unknown) / pivot
        solution.append(unknown)
    return torch.stack(solution[::-1], dim=-1)


def _diffusion(grid: Grid, energy: torch.Tensor) -> torch.Tensor:
    """Return the rate at which energy diffuses into cells from their sides, inside the rim."""
    east = energy.diff(dim=0, append=energy[-1:]) / (grid.cos_t[:, None] * grid.dxu[:, None, None])
    north = energy.diff(dim=1, append=energy[:, -1:]) / grid.dyu[:, None] * grid.cos_u[:, None]
    # Energy diffuses against its gradient, so what the gradient's divergence is flows in.
    return LATERAL_DIFFUSIVITY * _divergence(grid, east * grid.mask_u, north * grid.mask_v)


def _divergence(grid: Grid, east: torch.Tensor, north: torch.Tensor) -> torch.Tensor:
    """Sum what leaves through a cell's sides, given both fluxes: `[X - 4, Y - 4, Z]`."""
    cosine = grid.cos_t[RIM, None]
    width, length = cosine * grid.dxt[RIM, None, None], cosine * grid.dyt[RIM, None]
    by_x = east[RIM, RIM] - east[1:-3, RIM]
    by_y = north[RIM, RIM] - north[RIM, 1:-3]
    return by_x / width + by_y / length


def _advection(grid: Grid, velocity: torch.Tensor, energy: torch.Tensor) -> torch.Tensor:
    """Return the rate at which the flow carries energy into cells, inside the rim."""
    spacings = (
        grid.cos_t[:, None] * grid.dxt[:, None, None],
        (grid.cos_t * grid.dyt)[:, None],
        grid.dzw,
    )
    speeds = (velocity[0], velocity[1] * grid.cos_u[:, None], velocity[2])
    east, north, top = (
        _superbee(speed, energy, grid.mask_w, spacing.expand_as(energy), axis)
        for axis, (speed, spacing) in enumerate(zip(speeds, spacings, strict=True))
    )
    # Nothing is carried through the surface, nor through the bottom of the box.
    rising = functional.pad(top[INNER][..., :-1], (1, 1)).diff(dim=-1)
    height = torch.cat([grid.dzw[:-1], grid.dzw[-1:] / 2])
    return -grid.mask_w[INNER] * _divergence(grid, east, north) - rising / height


def _superbee(
    speed: torch.Tensor,
    energy: torch.Tensor,
    mask: torch.Tensor,
    spacing: torch.Tensor,
    axis: int,
) -> torch.Tensor:
    """Compute the flux of energy through the far face of every cell along an axis.

    Beyond the box everything is zero. All arrays are `[X, Y, Z]`.
    """
    behind, ahead, beyond = (_shift(energy, axis, by) for by in (-1, 1, 2))
    open_face = mask * _shift(mask, axis, 1)
    rise_behind = (energy - behind) * _shift(open_face, axis, -1)
    rise = (ahead - energy) * open_face
    rise_ahead = (beyond - ahead) * _shift(open_face, axis, 1)
    upstream = torch.where(speed > 0, rise_behind, rise_ahead)
    ratio = upstream / torch.where(rise.abs() < TINY, TINY, rise)
    limiter = torch.maximum((2 * ratio).clamp(max=1.0), ratio.clamp(max=2.0)).clamp(min=0.0)
    courant = (speed * STEP / spacing).abs()
    spread = speed.abs() * (1 - limiter + courant * limiter) * rise
    return (speed * (ahead + energy) - spread) / 2


def _shift(field: torch.Tensor, axis: int, by: int) -> torch.Tensor:
    """Give every cell what the one `by` further along an axis has, or zero where there is none."""
    length = field.shape[axis]
    edge = torch.zeros_like(field.narrow(axis, 0, abs(by)))
    if by > 0:
        return torch.cat([field.narrow(axis, by, length - by), edge], dim=axis)
    return torch.cat([edge, field.narrow(axis, 0, length + by)], dim=axis)
