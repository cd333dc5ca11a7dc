"""The arithmetic of all bounds: unit roundoff, gamma, and quantities affine in the input norm."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

UNIT_ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}
"""Largest relative error of one rounding, by the type in which a network is evaluated."""

WIDE = UNIT_ROUNDOFF[torch.float64]
"""Unit roundoff of the type in which every bound is computed."""

UP = 1.0 + 2.0**-40
"""Factor that covers the rounding of a bound's own bookkeeping: fewer than 4,000 float64 operations
on positive numbers, each wrong by a factor of at most 1 + 2^-52. A sum over the entries of an array
is none of them: it pays its own gamma."""

SMALLEST_NORMAL = {torch.float64: 2.0**-1022, torch.float32: 2.0**-126}
"""An operation below it is wrong by at most this much, whether it underflows or is flushed."""

LARGEST_SAFE = {torch.float64: 2.0**900, torch.float32: 2.0**100}
"""Bounds of intermediate numbers above it claim nothing; overflow is 2^28 and more away, which
leaves room for the factors 1 + gamma <= 2 of computed numbers."""


def compounded(share: float, what: str = "the sum of relative errors", *of: object) -> float:
    r"""Bound :math:`t / (1 - t)` of :math:`\prod_i (1 + e_i) - 1` where the :math:`|e_i|` sum to t.

    ``what`` of ``of`` (:meth:`str.format`) is t in the message, which is written only if it is
    raised: compilers write none of numbers they keep open.

    Raises:
        ValueError: t is not in [0, 1/2]: beyond 1 the quotient is negative, and above 1/2 errors
            exceed the numbers they are errors of.

    Example:
        >>> compounded(0.5)
        1.0
    """
    if not 0.0 <= share <= 0.5:
        raise ValueError(
            f"{what.format(*of)} must be in [0, 1/2] to have a bound, got {share}; evaluate in a "
            "wider type, where errors are smaller"
        )
    return share / (1.0 - share)


def gamma(length: int, unit: float = WIDE) -> float:
    r"""Higham's :math:`\gamma_n = n u / (1 - n u)`, the relative error of n roundings.

    Raises:
        ValueError: n u is above 1/2; see :func:`compounded`.

    Example:
        >>> gamma(4, 0.125)
        1.0
    """
    return compounded(length * unit, "length {} times unit roundoff {}", length, unit)


def require_bound(what: str, value: float) -> None:
    """Raise a ValueError unless ``value`` is at least 0, and so no NaN; infinity bounds nothing."""
    if not value >= 0.0:
        raise ValueError(
            f"{what} must be a number >= 0, got {value}; check that all weights are finite"
        )


def sum_up(one: float, other: float) -> float:
    """Sum of two bounds, not below the true one."""
    return one + other if 0.0 in (one, other) else math.nextafter(one + other, math.inf)


def product_up(one: float, other: float) -> float:
    """Product of two bounds, not below the true one, also where it underflows. If one is 0, so is
    the product, whatever the other: bounds of finite numbers may be infinite."""
    return 0.0 if 0.0 in (one, other) else math.nextafter(one * other, math.inf)


def norm_bounds(rows: Float[Tensor, "rows n"]) -> Float[Tensor, " rows"]:
    r"""Upper bounds of the norms of rows, in float64: (18), of entries divided by the largest one.

    So no square overflows or is lost. Zero rows have norm 0, rows that are not finite infinity.
    """
    wide = rows.detach().double()
    if wide.shape[1] == 0:
        return wide.new_zeros(len(wide))
    largest = wide.abs().amax(1)
    divisors = torch.where(largest > 0, largest, torch.ones_like(largest))
    roots = (wide / divisors[:, None]).square().sum(1).sqrt() * (1.0 + gamma(wide.shape[1] + 8))
    bounds = torch.nextafter(largest * roots, torch.full_like(roots, torch.inf))
    bounds = torch.where(largest > 0, bounds, torch.zeros_like(bounds))
    return torch.where(torch.isfinite(largest), bounds, torch.full_like(bounds, torch.inf))


@dataclass(frozen=True)
class Affine:
    """``constant + slope * norm`` with entries >= 0: a bound as a function of the input's norm.

    Sums and products of bounds are rounded up.

    Raises:
        ValueError: a negative number or NaN.
    """

    constant: float = 0.0
    slope: float = 0.0

    def __post_init__(self) -> None:
        require_bound("the constant of a bound", self.constant)
        require_bound("the slope of a bound", self.slope)

    def __add__(self, other: "Affine") -> "Affine":
        constant = sum_up(self.constant, other.constant)
        return Affine(constant, sum_up(self.slope, other.slope))

    def __mul__(self, factor: float) -> "Affine":
        return Affine(product_up(self.constant, factor), product_up(self.slope, factor))

    def at(self, norm: float) -> float:
        return sum_up(self.constant, product_up(self.slope, norm))


@dataclass(frozen=True)
class Arithmetic:
    """How sums are rounded where a network is evaluated.

    Attributes:
        name: of the execution profile, or of whoever evaluates.
        dtype: type of weights, inputs and activations.
    """

    name: str
    dtype: torch.dtype

    @property
    def unit(self) -> float:
        """Unit roundoff of the type."""
        return UNIT_ROUNDOFF[self.dtype]

    def underflow(self, operations: int, outputs: int) -> Affine:
        """Norm of what underflow or flushing may cost all outputs of a layer, each a sum of that
        many products: two losses a product, which later roundings at most double, and some more."""
        smallest = SMALLEST_NORMAL[self.dtype]
        return Affine(4.0 * (operations + 4) * smallest * math.sqrt(outputs))
