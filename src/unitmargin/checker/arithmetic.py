"""Rounding: the arithmetic of the checker, and that of the profile whose claims it checks."""

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
    """Most roundings that one of ``terms`` products meets in :func:`.step.product`."""
    return min(terms, CHUNK) + -(-terms // CHUNK) - 1


class Arithmetic(NamedTuple):
    """How a profile evaluates, with sums in any order: docs/soundness.md, section "Profiles"."""

    name: str
    unit: float
    smallest: float
    limit: float


PROFILES = {
    profile.name: profile
    for profile in (
        Arithmetic("float64", UNIT, 2.0**-1022, 2.0**900),
        Arithmetic("float32", 2.0**-24, 2.0**-126, 2.0**100),
    )
}
"""The profiles, as docs/soundness.md defines them: no file can define another."""


OWN = PROFILES["float64"]
"""The checker's own arithmetic; its sums count their roundings by :func:`own_length`."""


def definitions() -> dict[str, dict[str, str]]:
    """The profiles as a model file of this version states them."""
    return {name: {"dtype": name} for name in PROFILES}
