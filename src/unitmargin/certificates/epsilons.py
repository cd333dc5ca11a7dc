"""The radii at which a run is told: the field's for pixels, else round ones of its own radii."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import NamedTuple

from unitmargin.certificates.accuracy import EPSILONS, HEADLINE_EPSILON
from unitmargin.certificates.boundary import Values

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles of the radii that round radii stand for: few, some, half, most and nearly all are short
of them."""

HEADLINE, SECOND = 1, 2
"""Places in ``LEVELS`` of the radii that are told first: a quarter and half of the radii are short
of them."""

PREFERRED = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""Leading digits of a round number."""

MOST_DIGITS = 3
"""Digits of a radius on a page; quantiles that share them are one."""

NAMES = {36 / 255: "36/255", 72 / 255: "72/255", 108 / 255: "108/255"}
"""Radii that the field writes as fractions."""


class Epsilons(NamedTuple):
    """Radii of a table, from 0 and rising, and those of them that are told first."""

    table: tuple[float, ...]
    headline: float
    second: float

    @property
    def positive(self) -> tuple[float, ...]:
        """Those above 0."""
        return self.table[1:]


FIELD = Epsilons(EPSILONS, HEADLINE_EPSILON, 0.25)
"""Those of pixels in [0, 1]."""


def choose_epsilons(radius: Values, pixels: bool) -> Epsilons:
    """The radii at which to tell accuracies and coverage.

    Args:
        radius: certified radii; those of 0 claim nothing and do not count.
        pixels: whether they are distances in pixels in [0, 1], which the field tells at k/255.

    Returns:
        Of pixels :data:`FIELD`; else quantiles of the radii, rounded to numbers that are easily
        said, with as many digits as tell them apart; those that are told first lie below the
        largest radius. 1 where there is no radius above 0.

    Example:
        >>> import torch
        >>> choose_epsilons(torch.linspace(0.01, 3.0, 300).double(), pixels=False)
        Epsilons(table=(0.0, 0.3, 0.8, 1.5, 2.0, 2.5), headline=0.8, second=1.5)
    """
    if pixels:
        return FIELD
    ordered = radius[radius > 0].double().sort().values
    if not len(ordered):
        return Epsilons((0.0, 1.0), 1.0, 1.0)
    quantiles = [float(ordered[round(level * (len(ordered) - 1))]) for level in LEVELS]
    rounded, digits = [round_radius(value) for value in quantiles], 1
    while len(set(rounded)) < len(set(quantiles)) and digits < MOST_DIGITS:
        digits += 1
        rounded = [float(f"{value:.{digits}g}") for value in quantiles]
    largest = float(ordered[-1])
    for level in (HEADLINE, SECOND):
        if rounded[level] >= largest:
            rounded[level] = _round_below(largest, digits)
    table = (0.0, *sorted(set(rounded)))
    return Epsilons(table, rounded[HEADLINE], rounded[SECOND])


def round_radius(value: float) -> float:
    """The nearest positive number whose leading digits are ``PREFERRED``.

    Example:
        >>> round_radius(0.1734), round_radius(97.0), round_radius(0.0032)
        (0.15, 100.0, 0.003)
    """
    mantissa, exponent = f"{value:e}".split("e")
    nearest = min(PREFERRED, key=lambda digits: abs(digits - float(mantissa)))
    rounded = float(f"{nearest}e{exponent}")
    return rounded if math.isfinite(rounded) else value


def _round_below(value: float, digits: int) -> float:
    """The largest number of so many digits below it, of one those of ``PREFERRED``; itself if none
    is positive."""
    if digits > 1:
        context = Context(prec=digits, rounding=ROUND_FLOOR)
        below = context.create_decimal(repr(value))
        below = below if float(below) < value else context.next_minus(below)
        return float(below) or value
    exponent = int(f"{value:e}".split("e")[1])
    near = (float(f"{digits}e{exponent + step}") for digits in PREFERRED for step in (-1, 0))
    return max((number for number in near if 0.0 < number < value), default=value)


def round_up(value: float) -> float:
    """The least number of three digits that is no less: a threshold that can be typed.

    Example:
        >>> round_up(0.23412), round_up(0.1), round_up(1234.5)
        (0.235, 0.1, 1240.0)
    """
    return float(Context(prec=MOST_DIGITS, rounding=ROUND_CEILING).create_decimal(repr(value)))


def epsilon_name(epsilon: float) -> str:
    """A radius as the field writes it.

    Example:
        >>> epsilon_name(36 / 255), epsilon_name(0.25)
        ('36/255', '0.25')
    """
    return NAMES.get(epsilon, f"{epsilon:g}")
