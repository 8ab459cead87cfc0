"""How the enthalpy of seawater changes with temperature.

Source: IOC, SCOR and IAPSO 2010, "The international thermodynamic equation of seawater - 2010",
appendix K: density as a quotient of polynomials of 48 terms. Specific volume is N(p) / D(p) with

    D = d0 + d1 p + d2 p^2        N = n0 + n1 p + n2 p^2 + n3 p^3

whose coefficients depend on salinity and temperature. Dynamic enthalpy is its integral over
pressure, which dividing N by D gives in closed form; here that form is differentiated with
respect to temperature by carrying every quantity along with its slope.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

PASCAL_PER_DECIBAR = 1e4

Terms = tuple[float, ...]
"""Coefficients of the powers of temperature, from the constant up."""

D0: Terms = (9.998420897506056e2, 2.839940833161907, -3.147759265588511e-2, 1.181805545074306e-3)
D0_SALT: Terms = (-6.698001071123802, -2.986498947203215e-2, 2.327859407479162e-4)
D0_ROOT: Terms = (
    -3.988822378968490e-2,
    5.095422573880500e-4,
    -1.426984671633621e-5,
    1.645039373682922e-7,
)
D1: Terms = (-2.233269627352527e-2, -3.436090079851880e-4, 3.726050720345733e-6)
D1_SALT: Terms = (-1.806789763745328e-4, 6.876837219536232e-7)
D2: Terms = (-3.087032500374211e-7, -1.988366587925593e-8, -1.061519070296458e-11)
D2_SALT: Terms = (1.550932729220080e-10,)
N0: Terms = (
    1.0,
    2.775927747785646e-3,
    -2.349607444135925e-5,
    1.119513357486743e-6,
    6.743689325042773e-10,
)
N0_SALT: Terms = (
    -7.521448093615448e-3,
    -2.764306979894411e-5,
    1.262937315098546e-7,
    9.527875081696435e-10,
    -1.811147201949891e-11,
)
N0_ROOT: Terms = (
    -3.303308871386421e-5,
    3.801564588876298e-7,
    -7.672876869259043e-9,
    -4.634182341116144e-11,
    2.681097235569143e-12,
)
N0_SALT_SQUARED: Terms = (5.419326551148740e-6,)
N1: Terms = (
    -2.742185394906099e-5,
    -3.212746477974189e-7,
    3.191413910561627e-9,
    -1.931012931541776e-12,
)
N1_SALT: Terms = (-1.105097577149576e-7, 6.211426728363857e-10)
N2: Terms = (-1.119011592875110e-10, -1.941660213148725e-11, -1.864826425365600e-14)
N2_SALT: Terms = (0.0, 1.119522344879478e-14)
N3: Terms = (-1.200507748551599e-15, 6.057902487546866e-17)


class Sloped(NamedTuple):
    """A quantity and its derivative with respect to temperature."""

    value: torch.Tensor
    slope: torch.Tensor


def enthalpy_slope(
    salinity: torch.Tensor, temperature: torch.Tensor, pressure: torch.Tensor
) -> torch.Tensor:
    """Differentiate dynamic enthalpy with respect to temperature.

    Args:
        salinity: absolute salinity in g/kg, `[X, Y, Z]`.
        temperature: conservative temperature in degrees Celsius, `[X, Y, Z]`.
        pressure: sea pressure in dbar, of a shape that broadcasts.

    Returns:
        The derivative in J/(kg K), `[X, Y, Z]`.
    """
    root = salinity.sqrt()
    one, salt, salt_root = torch.ones_like(salinity), salinity, salinity * root
    d0 = _sum(temperature, (D0, one), (D0_SALT, salt), (D0_ROOT, salt_root))
    d1 = _sum(temperature, (D1, one), (D1_SALT, salt))
    d2 = _sum(temperature, (D2, one), (D2_SALT, salt))
    n0 = _sum(
        temperature,
        (N0, one),
        (N0_SALT, salt),
        (N0_ROOT, salt_root),
        (N0_SALT_SQUARED, salt * salt),
    )
    n1 = _sum(temperature, (N1, one), (N1_SALT, salt))
    n2 = _sum(temperature, (N2, one), (N2_SALT, salt))
    n3 = _sum(temperature, (N3, one))
    linear = _divide(n3, d2)
    constant = _divide(_minus(n2, _times(d1, linear)), d2)
    remainder1 = _minus(_minus(n1, _times(d1, constant)), _times(d0, linear))
    remainder0 = _minus(n0, _times(d0, constant))
    polynomial = constant.slope * pressure + linear.slope * pressure * pressure / 2
    logarithms = _logarithmic_part((d0, d1, d2), (remainder0, remainder1), pressure)
    return PASCAL_PER_DECIBAR * (polynomial + logarithms)


def _logarithmic_part(
    denominator: tuple[Sloped, Sloped, Sloped],
    remainder: tuple[Sloped, Sloped],
    pressure: torch.Tensor,
) -> torch.Tensor:
    """Differentiate the integral of (r0 + r1 p) / D, from 0 to the pressure.

    With b = d1 / 2 and s^2 = b^2 - d0 d2 that is

        A ln(D / d0) + (r0 - A d1) / (2 s) ln(1 + 2 s d2 p / ((b - s) (b + s + d2 p)))

    where A = r1 / (2 d2).
    """
    d0, d1, d2 = denominator
    b = _scale(d1, 0.5)
    s = _root(_minus(_times(b, b), _times(d0, d2)))
    rise = _scale(d2, pressure)
    first = _scale(_divide(remainder[1], d2), 0.5)
    second = _divide(_minus(remainder[0], _times(first, d1)), _scale(s, 2.0))
    growth = _divide(_scale(_plus(d1, rise), pressure), d0)
    ratio = _divide(_scale(_times(s, rise), 2.0), _times(_minus(b, s), _plus(_plus(b, s), rise)))
    return _times(first, _log1p(growth)).slope + _times(second, _log1p(ratio)).slope


def _sum(temperature: torch.Tensor, *parts: tuple[Terms, torch.Tensor]) -> Sloped:
    """Add polynomials of temperature, each with a factor that doesn't depend on it."""
    value = slope = torch.zeros_like(temperature)
    for terms, factor in parts:
        polynomial = _polynomial(temperature, terms)
        value = value + factor * polynomial.value
        slope = slope + factor * polynomial.slope
    return Sloped(value, slope)


def _polynomial(temperature: torch.Tensor, terms: Terms) -> Sloped:
    """Evaluate a polynomial and its derivative by Horner's scheme."""
    value = torch.full_like(temperature, terms[-1])
    slope = torch.zeros_like(temperature)
    for term in reversed(terms[:-1]):
        slope = value + temperature * slope
        value = term + temperature * value
    return Sloped(value, slope)


def _scale(x: Sloped, factor: torch.Tensor | float) -> Sloped:
    return Sloped(x.value * factor, x.slope * factor)


def _plus(x: Sloped, y: Sloped) -> Sloped:
    return Sloped(x.value + y.value, x.slope + y.slope)


def _minus(x: Sloped, y: Sloped) -> Sloped:
    return Sloped(x.value - y.value, x.slope - y.slope)


def _times(x: Sloped, y: Sloped) -> Sloped:
    return Sloped(x.value * y.value, x.slope * y.value + x.value * y.slope)


def _divide(x: Sloped, y: Sloped) -> Sloped:
    quotient = x.value / y.value
    return Sloped(quotient, (x.slope - quotient * y.slope) / y.value)


def _root(x: Sloped) -> Sloped:
    root = x.value.sqrt()
    return Sloped(root, x.slope / (2 * root))


def _log1p(x: Sloped) -> Sloped:
    return Sloped(torch.log(1 + x.value), x.slope / (1 + x.value))
