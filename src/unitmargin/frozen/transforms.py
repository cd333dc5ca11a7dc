"""Rounding error of the Fourier transforms. Equation numbers are those of docs/soundness.md."""

import math

from unitmargin.frozen.spectral import absolute_norm_bound
from unitmargin.layers.arithmetic import UP, WIDE, Affine, Arithmetic, compounded, gamma
from unitmargin.layers.fourier import CircularTransform

TABLE_ERROR = 2.0**-47
"""Absolute error of a cosine of the Fourier tables: 50 units for its angle, 2 for the function, 5
for its scale, and the rest to spare."""

TWIDDLE_ERROR = 2.0
"""Error of a twiddle factor of an FFT, in unit roundoffs."""

RADIX_ROUNDINGS = 5
"""Roundings that a term of a stage meets beside those of its sum: two complex products of at most 3
each, less the one by which a sum of r terms has fewer additions than r."""

RADIX_2_ROUNDINGS = 4
"""Roundings of a term for radix 2: one complex product, of at most 3, and one addition."""

REAL_ROUNDINGS = 5
"""The same of the stage for real input, which adds before it multiplies as well."""

SCALING_ROUNDINGS = 8
"""Roundings of the constant factors around an FFT: two factors, each rounded itself, both ways."""


BUTTERFLY_ROUNDINGS = 3
"""Roundings of a term where the waves of two sides are joined: the root of 1/2, product and sum."""


def transform_error(transform: CircularTransform, unit: float) -> float:
    r"""Relative error of ``analyse`` or ``synthesise`` in the 2-norm: (10) by one table; of larger
    maps (11) by FFT, and in float64 also (24), by a table a side, whichever is larger.

    Raises:
        ValueError: a prime factor of a side for which (11) has no bound in arithmetic of this unit.
    """
    if transform.by_matrix:
        table = absolute_norm_bound(transform.basis[None])
        stored = TABLE_ERROR + (unit if unit > WIDE else 0.0)
        pixels = transform.n_pixels
        return (math.sqrt(2.0 * pixels) * stored + gamma(pixels, unit) * table) * UP
    fourier = fft_error(transform.map_size, unit)
    return fourier if unit > WIDE else max(fourier, separable_error(transform.map_size, unit))


def separable_error(map_size: tuple[int, int], unit: float) -> float:
    """(24): relative error of a transform by a table a side, and of joining their waves."""
    height, width = (_table_error(side, unit) for side in map_size)
    join = math.sqrt(2.0) * gamma(BUTTERFLY_ROUNDINGS, unit)
    both = height + width + height * width
    return (both + join + both * join) * UP


def _table_error(side: int, unit: float) -> float:
    """(10) of one side, whose table has a Frobenius norm of the root of its points."""
    stored = math.sqrt(2.0 * side) * TABLE_ERROR
    return stored + gamma(side, unit) * (math.sqrt(side) + stored)


def fft_error(map_size: tuple[int, int], unit: float) -> float:
    """(11): relative error of an FFT of the Cooley-Tukey kind, which is assumed and which the
    canary measures: one stage a prime factor of either side, and one more for real input.

    Raises:
        ValueError: a prime factor of a side for which (11) has no bound in arithmetic of this unit.
    """
    height, width = map_size
    stages = [_stage(radix, unit) for radix in (*_primes(height), *_primes(width))]
    total = compounded(
        sum(stages, _signed_stage(REAL_ROUNDINGS, unit)),
        f"the relative error of an FFT of {height} x {width} pixels at unit roundoff {unit}",
    )
    halves = math.sqrt(2.0) * total  # a kept conjugate stands for both
    scaling = gamma(SCALING_ROUNDINGS, unit)
    return (halves + scaling + halves * scaling) * UP


def _stage(radix: int, unit: float) -> float:
    """Relative error of one stage: twiddle factors, then sums of ``radix`` products with roots of
    one, which for radix 2 are signs."""
    if radix == 2:
        return _signed_stage(RADIX_2_ROUNDINGS, unit)
    twiddle = TWIDDLE_ERROR * unit
    sums = gamma(radix + RADIX_ROUNDINGS, unit) * (1.0 + twiddle)
    return twiddle + math.sqrt(radix) * (1.0 + twiddle) * (twiddle + sums)


def _signed_stage(roundings: int, unit: float) -> float:
    twiddle = TWIDDLE_ERROR * unit
    return twiddle + math.sqrt(2.0) * (1.0 + twiddle) * gamma(roundings, unit)


def underflow_of_transform(pixels: int, channels: int, arithmetic: Arithmetic) -> Affine:
    """Norm of what underflow may cost all coefficients of a transform, by tables or by FFT: the
    stages of an FFT make fewer than 4 pixels sums of 16 operations, and multiply what is lost by
    the root of twice the pixels at most."""
    return arithmetic.underflow(24 * pixels**2, channels)


def inside_a_transform(pixels: int) -> float:
    """Largest factor by which a number inside a transform may exceed the norm of its input, which
    an FFT scales in its last step: the root of the pixels by Cooley and Tukey, and the rest for an
    FFT that evaluates a prime length as a convolution of up to four times the length."""
    return math.pow(4.0 * pixels, 2.5)


def _primes(number: int) -> list[int]:
    """Prime factors, with multiplicity."""
    factor = next((k for k in range(2, int(number**0.5) + 1) if number % k == 0), number)
    return [] if number == 1 else [factor, *_primes(number // factor)]
