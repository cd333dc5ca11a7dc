"""Rounding: the arithmetic of the checker, and that of the profile whose claims it checks."""

import math
from typing import NamedTuple

UNIT = 2.0**-53
"""Unit roundoff of float64, in which the checker evaluates and bounds."""

UP = 1.0 + 2.0**-44
"""Factor on each bound for the rounding of the fewer than 400 operations on positive numbers that
lead to it."""

TINY = 2.0**-480
"""Added to norms: numbers whose squares underflow weigh less, were there 2^60 of them."""

CHUNK = 64
"""Products that the checker sums at once; short sums keep its own rounding below the deployed."""


def gamma(roundings: int, unit: float = UNIT) -> float:
    """n u / (1 - n u): relative error of n roundings (Higham, section 3.1)."""
    return compounded(roundings * unit, f"sums of {roundings} terms at unit roundoff {unit}")


def compounded(share: float, what: str) -> float:
    """t / (1 - t): bound of a product of factors 1 + e, less 1, whose |e| sum to t."""
    if not 0.0 <= share < 0.5:
        raise ValueError(f"{what} have no error bound: {share} is not in [0, 1/2)")
    return share / (1.0 - share)


def own_length(terms: int) -> int:
    """Most roundings that one of ``terms`` products meets in :func:`.layers.product`."""
    return min(terms, CHUNK) + -(-terms // CHUNK) - 1


class Arithmetic(NamedTuple):
    """How a profile evaluates: docs/soundness.md, section "Profiles".

    ``chunk`` is the longest sum in the profile's type, after which sums are added in a tree; None:
    sums in any order. With a chunk, hidden dense layers, and convolutions of at most
    ``wide_channels`` channels on small maps, run in float64 and round their output.
    """

    name: str
    unit: float
    smallest: float
    limit: float
    chunk: int | None = None
    wide_channels: int | None = None

    def length(self, terms: int) -> int:
        """Most roundings that one of ``terms`` summed products meets."""
        if self.chunk is None or terms <= self.chunk:
            return terms
        return self.chunk + math.ceil(math.log2(-(-terms // self.chunk)))

    def inside(self, wide: bool) -> "Arithmetic":
        """The arithmetic inside a layer: the profile's, or float64 with sums in any order."""
        return self._replace(unit=UNIT, chunk=None) if wide else self


OWN = Arithmetic("checker", UNIT, 2.0**-1022, 2.0**900)
"""The checker's own arithmetic; its sums count their roundings by :func:`own_length`."""


PROFILES = {
    profile.name: profile
    for profile in (
        Arithmetic("float64", UNIT, 2.0**-1022, 2.0**900),
        Arithmetic("float32-blocked", 2.0**-24, 2.0**-126, 2.0**100, 32, 256),
        Arithmetic("float32", 2.0**-24, 2.0**-126, 2.0**100),
    )
}
"""The profiles, as docs/soundness.md defines them: no file can define another."""


def definitions() -> dict[str, dict[str, str | int | None]]:
    """The profiles as a model file of this version states them."""
    return {
        name: {
            "dtype": "float64" if profile.unit == UNIT else "float32",
            "chunk": profile.chunk,
            "wide_channels": profile.wide_channels,
        }
        for name, profile in PROFILES.items()
    }
