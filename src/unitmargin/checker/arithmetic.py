"""Rounding: the arithmetic of the checker, and that of the profile whose claims it checks."""

import math
from typing import NamedTuple

UNIT = 2.0**-53
"""Unit roundoff of float64, in which the checker evaluates and bounds."""

UP = 1.0 + 2.0**-44
"""Factor on each bound for the rounding of the fewer than 400 operations on positive numbers that
lead to it."""

TINY = 2.0**-500
"""Added to norms: numbers whose squares underflow weigh less."""

CHUNK = 64
"""Products that the checker sums at once; short sums keep its own rounding below the deployed."""


def gamma(roundings: int, unit: float = UNIT) -> float:
    """n u / (1 - n u): relative error of n roundings (Higham, section 3.1)."""
    if roundings * unit >= 0.5:
        raise ValueError(f"sums of {roundings} terms have no error bound at unit roundoff {unit}")
    return roundings * unit / (1.0 - roundings * unit)


def own_length(terms: int) -> int:
    """Most roundings that one of ``terms`` products meets in :func:`.layers.product`."""
    return min(terms, CHUNK) + -(-terms // CHUNK) - 1


class Arithmetic(NamedTuple):
    """How a profile evaluates: docs/soundness.md, section "Profiles".

    ``chunk`` is the longest sum in the profile's type, after which sums are added in a tree;
    convolutions of at most that many channels then run in float64. None: sums in any order.
    """

    name: str
    unit: float
    smallest: float
    limit: float
    chunk: int | None

    def length(self, terms: int) -> int:
        """Most roundings that one of ``terms`` summed products meets."""
        if self.chunk is None or terms <= self.chunk:
            return terms
        return self.chunk + math.ceil(math.log2(-(-terms // self.chunk)))

    def widens(self, channels: int) -> bool:
        """Whether a convolution runs in float64 and rounds its output."""
        return self.chunk is not None and channels <= self.chunk


def arithmetic(name: str, dtype: str, chunk: int | None) -> Arithmetic:
    """A profile as the model file defines it."""
    if chunk is not None and (type(chunk) is not int or chunk < 1):
        raise ValueError(f"a profile's chunk must be a positive integer or null, got {chunk!r}")
    if dtype == "float64":
        return Arithmetic(name, UNIT, 2.0**-1022, 2.0**900, chunk)
    if dtype == "float32":
        return Arithmetic(name, 2.0**-24, 2.0**-126, 2.0**100, chunk)
    raise ValueError(f"the profile's type must be float64 or float32, got {dtype!r}")
