"""Mixing in the ocean along surfaces of neutral density.

Source: Griffies et al. 1998, "Isoneutral diffusion in a z-coordinate ocean model" (slopes from
triads of density gradients); Danabasoglu and McWilliams 1995 for tapering where they are steep;
Vallis 2006 for the equation of state; constants of the ocean model Veros.

Salinity and temperature are carried together: `[2, X, Y, Z]`, temperature first.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from dynamometer.models.builders.ocean_grid import RIM, Grid

DENSITY = 1024.0  # kg / m^3
GRAVITY = 9.81  # m / s^2
REFERENCE_TEMPERATURE = 9.85  # degrees Celsius
EXPANSION = 1.67e-4  # 1 / K
EXPANSION_RISE = 1e-5  # 1 / K^2
EXPANSION_PRESSURE = 1.1e-8  # 1 / Pa
CONTRACTION = 0.78e-3  # kg / g
STEEP_DIFFUSIVITY = 50.0  # m^2 / s
STEEPEST = 1e-3  # slope at which tapering has done half
TAPER_WIDTH = 1e-3
TINY = 1e-20
FACES = slice(1, -2)  # the faces of cells inside the rim, along the axis they cross


class Mixing(NamedTuple):
    """Diffusivities `[X, Y, Z]` across eastern, northern and upper faces, and slopes at them.

    Slopes are `[X, Y, Z, 2, 2]`, by the cell and by the level that a triad belongs to; upper
    faces have eastward and northward ones.
    """

    k_east: torch.Tensor
    k_north: torch.Tensor
    k_up: torch.Tensor
    slopes_east: torch.Tensor
    slopes_north: torch.Tensor
    slopes_up_x: torch.Tensor
    slopes_up_y: torch.Tensor


def isoneutral_mixing(
    grid: Grid,
    tracers: torch.Tensor,
    depth: torch.Tensor,
    diffusivity: torch.Tensor,
    boundary: Mixing,
) -> Mixing:
    """Compute diffusivities and slopes from the density field.

    Args:
        grid: the grid.
        tracers: temperature in degrees Celsius and salinity in g/kg, `[2, X, Y, Z]`.
        depth: depth of the centres in m, `[Z]`.
        diffusivity: along neutral surfaces in m^2/s, `[X, Y, Z]`.
        boundary: what holds in the rim.

    Returns:
        `boundary`, replaced inside the rim.
    """
    result = Mixing(*(field.clone() for field in boundary))
    change = _density_change(tracers[0], depth) * grid.mask_t
    east, north, up = _gradients(tracers, grid)
    # What holds for longitude holds for latitude, with the two axes exchanged.
    turned = (change.transpose(1, 2), north.transpose(1, 2), up.transpose(1, 2))
    kappa, kappa_turned = diffusivity, diffusivity.transpose(0, 1)

    slopes, total = _side_faces(change, east, up, kappa, grid.mask_u, grid)
    result.slopes_east[FACES, RIM], result.k_east[FACES, RIM] = slopes, total
    slopes, total = _side_faces(*turned, kappa_turned, grid.mask_v.transpose(0, 1), grid)
    result.slopes_north[RIM, FACES] = slopes.transpose(0, 1)
    result.k_north[RIM, FACES] = total.transpose(0, 1)

    slopes, k_x = _upper_faces(change, east, up, kappa, grid.mask_w, grid.dxu)
    result.slopes_up_x[RIM, RIM, :-1] = slopes
    weights = grid.cos_u * grid.dyu
    slopes, k_y = _upper_faces(*turned, kappa_turned, grid.mask_w.transpose(0, 1), weights)
    result.slopes_up_y[RIM, RIM, :-1] = slopes.transpose(0, 1)
    width, length = grid.dxt[RIM, None, None], (grid.dyt * grid.cos_t)[RIM, None]
    result.k_up[RIM, RIM, :-1] = k_x / (4 * width) + k_y.transpose(0, 1) / (4 * length)
    result.k_up[RIM, RIM, -1] = 0.0
    return result


def _density_change(temperature: torch.Tensor, depth: torch.Tensor) -> torch.Tensor:
    """Differentiate density with respect to temperature and salinity, `[2, X, Y, Z]`."""
    pressure = DENSITY * GRAVITY * depth.abs()
    expansion = EXPANSION * (1 + EXPANSION_PRESSURE * pressure)
    by_temperature = EXPANSION_RISE * (temperature - REFERENCE_TEMPERATURE) + expansion
    by_salinity = torch.full_like(temperature, CONTRACTION)
    return DENSITY * torch.stack([-by_temperature, by_salinity])


def _gradients(
    tracers: torch.Tensor, grid: Grid
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Differentiate tracers across eastern, northern and upper faces, `[2, X, Y, Z]` each."""
    spacings = (
        grid.dxu[:, None, None] * grid.cos_t[None, :, None],
        grid.dyu[None, :, None],
        grid.dzw,
    )
    masks = (grid.mask_u, grid.mask_v, grid.mask_w)
    east, north, up = (
        mask * _difference(tracers, axis) / spacing
        for axis, (spacing, mask) in enumerate(zip(spacings, masks, strict=True), start=1)
    )
    return east, north, up


def _difference(tracers: torch.Tensor, axis: int) -> torch.Tensor:
    """Subtract each cell from the next along an axis; the last one has none, and gets zero."""
    return tracers.diff(dim=axis, append=tracers.narrow(axis, -1, 1))


def _side_faces(
    change: torch.Tensor,
    across: torch.Tensor,
    up: torch.Tensor,
    diffusivity: torch.Tensor,
    mask: torch.Tensor,
    grid: Grid,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute slopes and diffusivity at faces which the first spatial axis crosses.

    Args:
        change: density's change with the tracers, `[2, X, Y, Z]`; so the two gradients.
        across: the tracers' gradient across these faces.
        up: their gradient across upper faces.
        diffusivity: along neutral surfaces, `[X, Y, Z]`.
        mask: where these faces lie in water, `[X, Y, Z]`.
        grid: the grid.

    Returns:
        Slopes `[X - 3, Y - 4, Z, 2, 2]` and diffusivity `[X - 3, Y - 4, Z]`.
    """
    kappa = (diffusivity[FACES, RIM] + diffusivity[2:-1, RIM]) / 2
    kappa = (kappa + torch.cat([kappa[..., :1], kappa[..., :-1]], dim=-1)) / 2
    total = torch.zeros_like(kappa)
    slopes = []
    for cells in (slice(1, -2), slice(2, -1)):
        here = change[:, cells, RIM]
        along = (here * across[:, FACES, RIM]).sum(0)
        # One triad below, whose vertical gradient is that of the level under it, and one above.
        for vertical, thickness in ((_lift(up), _lift(grid.dzw)), (up, grid.dzw)):
            slope, taper = _slope(along, (here * vertical[:, cells, RIM]).sum(0))
            total += thickness * mask[FACES, RIM] * (kappa * taper).clamp(min=STEEP_DIFFUSIVITY)
            slopes.append(taper * slope * mask[FACES, RIM])
    return _by_cell_and_level(slopes), total / (4 * grid.dzt)


def _upper_faces(
    change: torch.Tensor,
    across: torch.Tensor,
    up: torch.Tensor,
    diffusivity: torch.Tensor,
    mask: torch.Tensor,
    weights: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute slopes along the first spatial axis at upper faces, and what they add there.

    Args:
        change: density's change with the tracers, `[2, X, Y, Z]`; so the two gradients.
        across: the tracers' gradient along the axis.
        up: their gradient across upper faces.
        diffusivity: along neutral surfaces, `[X, Y, Z]`.
        mask: where upper faces lie in water, `[X, Y, Z]`.
        weights: of the triads, by position on the axis, `[X]`.

    Returns:
        Slopes `[X - 4, Y - 4, Z - 1, 2, 2]` and the diffusivity, still to be divided by the
        cells' widths, `[X - 4, Y - 4, Z - 1]`.
    """
    inner = (RIM, RIM, slice(-1))
    total = torch.zeros_like(mask[inner])
    slopes = []
    for sides in (slice(1, -3), slice(2, -2)):
        for levels in (slice(-1), slice(1, None)):
            here = change[:, RIM, RIM, levels]
            along = (here * across[:, sides, RIM, levels]).sum(0)
            slope, taper = _slope(along, (here * up[:, RIM, RIM, :-1]).sum(0))
            tapered = taper * slope * mask[inner]
            total += weights[sides, None, None] * diffusivity[inner] * tapered * slope
            slopes.append(tapered)
    return _by_cell_and_level(slopes), total


def _by_cell_and_level(slopes: list[torch.Tensor]) -> torch.Tensor:
    """Put four arrays `[X, Y, Z]` behind each other, `[X, Y, Z, 2, 2]`."""
    return torch.stack(slopes, dim=-1).view(*slopes[0].shape, 2, 2)


def _lift(field: torch.Tensor) -> torch.Tensor:
    """Give every level what the one below it has, and the lowest zero."""
    return torch.cat([torch.zeros_like(field[..., :1]), field[..., :-1]], dim=-1)


def _slope(along: torch.Tensor, vertical: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the slope of the neutral surface, and what is left of it after tapering (0 to 1).

    Where density doesn't fall with height the slope is huge, and nothing is left of it.
    """
    slope = -along / (vertical.clamp(max=0.0) - TINY)
    return slope, (1 + torch.tanh((STEEPEST - slope.abs()) / TAPER_WIDTH)) / 2
