"""Rounding error of the Fourier transforms. Equation numbers are those of docs/soundness.md."""

import math

from unitmargin.frozen.spectral import absolute_norm_bound
from unitmargin.layers.arithmetic import WIDE, gamma
from unitmargin.layers.fourier import CircularTransform

TABLE_ERROR = 2.0**-47
"""Absolute error of a cosine of the Fourier tables: 50 units for its angle, 2 for the function, 5
for its scale, and the rest to spare."""

TWIDDLE_ERROR = 2.0
"""Error of a twiddle factor of an FFT, in unit roundoffs."""

SCALING_ROUNDINGS = 8
"""Roundings of the constant factors around an FFT: two factors, each rounded itself, both ways."""


def transform_error(transform: CircularTransform, unit: float) -> float:
    r"""Relative error of ``analyse`` or ``synthesise`` in the 2-norm: (10) by matrix, (11) by FFT.

    The FFT is assumed to be of the Cooley-Tukey kind (Higham, theorem 24.2, for any prime radix),
    with one stage more for real input; the canary measures it.
    """
    pixels = transform.n_pixels
    if transform.by_matrix:
        table = absolute_norm_bound(transform.basis[None])
        stored = TABLE_ERROR + (unit if unit > WIDE else 0.0)
        return math.sqrt(2.0 * pixels) * stored + gamma(pixels, unit) * table
    stages = [*_primes(transform.map_size[0]), *_primes(transform.map_size[1]), 2]
    total = sum(
        TWIDDLE_ERROR * unit + gamma(radix + 2, unit) * (math.sqrt(radix) + TWIDDLE_ERROR * unit)
        for radix in stages
    )
    return total / (1.0 - total) + gamma(SCALING_ROUNDINGS, unit)


def _primes(number: int) -> list[int]:
    """Prime factors, with multiplicity."""
    factor = next((k for k in range(2, int(number**0.5) + 1) if number % k == 0), number)
    return [] if number == 1 else [factor, *_primes(number // factor)]
