"""The arithmetic of all bounds: unit roundoff, gamma, and quantities affine in the input norm."""

import math
from dataclasses import dataclass

import torch

UNIT_ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}
"""Largest relative error of one rounding, by the type in which a network is evaluated."""

WIDE = UNIT_ROUNDOFF[torch.float64]
"""Unit roundoff of the type in which every bound is computed."""

UP = 1.0 + 2.0**-40
"""Factor that covers the rounding of a bound's own bookkeeping: fewer than 4,000 float64 operations
on positive numbers, each wrong by a factor of at most 1 + 2^-52."""

SMALLEST_NORMAL = {torch.float64: 2.0**-1022, torch.float32: 2.0**-126}
"""An operation below it is wrong by at most this much, whether it underflows or is flushed."""

LARGEST_SAFE = {torch.float64: 2.0**900, torch.float32: 2.0**100}
"""Bounds of intermediate numbers above it claim nothing; overflow is 2^26 and more away."""


def gamma(length: int, unit: float = WIDE) -> float:
    r"""Higham's :math:`\gamma_n = n u / (1 - n u)`, the relative error of n roundings.

    Raises:
        ValueError: n u is not below 1; no bound holds then.

    Example:
        >>> gamma(4, 0.125)
        1.0
    """
    share = length * unit
    if share >= 1.0:
        raise ValueError(
            f"length times unit roundoff must be below 1, got {length} * {unit}; evaluate in a "
            "wider type"
        )
    return share / (1.0 - share)


@dataclass(frozen=True)
class Affine:
    """``constant + slope * norm`` with entries >= 0: a bound as a function of the input's norm."""

    constant: float = 0.0
    slope: float = 0.0

    def __add__(self, other: "Affine") -> "Affine":
        return Affine(self.constant + other.constant, self.slope + other.slope)

    def __mul__(self, factor: float) -> "Affine":
        return Affine(self.constant * factor, self.slope * factor)

    def at(self, norm: float) -> float:
        return self.constant + self.slope * norm


@dataclass(frozen=True)
class Arithmetic:
    """How sums are rounded where a network is evaluated.

    Attributes:
        name: of the execution profile, or of whoever evaluates.
        dtype: type of weights, inputs and activations.
        chunk: longest dot product in that type; None for any length.
    """

    name: str
    dtype: torch.dtype
    chunk: int | None = None

    @property
    def unit(self) -> float:
        """Unit roundoff of the type."""
        return UNIT_ROUNDOFF[self.dtype]

    def length(self, n: int) -> int:
        """Most roundings that one of n summed products meets, in any order within a chunk."""
        if self.chunk is None or n <= self.chunk:
            return n
        return self.chunk + math.ceil(math.log2(-(-n // self.chunk)))

    def underflow(self, operations: int, outputs: int) -> Affine:
        """Norm of what underflow or flushing may cost all outputs of a layer."""
        smallest = SMALLEST_NORMAL[self.dtype]
        return Affine(3.0 * (operations + 4) * smallest * math.sqrt(outputs))


FLOAT64 = Arithmetic("float64", torch.float64)
"""Float64 with sums in any order."""
