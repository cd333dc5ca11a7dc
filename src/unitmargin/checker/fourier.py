"""Circular convolutions from their frequency blocks, and error bounds of transforms.

A file stores the matrices of a map's self-conjugate frequencies, and of one frequency of each other
conjugate pair: ordered by row and column, columns up to half the width.
"""

import math
from collections.abc import Callable

import numpy as np

from unitmargin.checker.arithmetic import UNIT, compounded, gamma
from unitmargin.checker.reading import Array

TABLE = 12.0 * UNIT
"""Error of a cosine or sine of the checker's tables, times the root of their length: the angle, of
one quarter turn at most, takes 5 units, the function 4 and the scale 3."""

DEPLOYED_TABLE = 2.0**-47
"""The same of a deployed table, whose angles may be sums of several turns: 64 units."""

TWIDDLE = 2.0
"""Error of a twiddle factor of a deployed FFT, in unit roundoffs."""

MATRIX_LIMIT = 64
"""Deployed maps of up to this many pixels are transformed by one matrix product, others by FFT."""

Grid = tuple[Array, Array]
"""Real and imaginary parts, ``(h, w, batch, channels)``."""

Product = Callable[[Array, Array], Array]


def frequencies(height: int, width: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The stored frequencies in their order: self-conjugate ones, and one of each pair."""
    real, pairs = [], []
    for row in range(height):
        for column in range(width // 2 + 1):
            mirror = (-row % height, -column % width)
            if mirror == (row, column):
                real.append((row, column))
            elif mirror[1] != column or mirror[0] > row:
                pairs.append((row, column))
    return real, pairs


def _table(length: int) -> Grid:
    """Cosines and sines of the unitary transform, angles reduced exactly to a quarter turn."""
    steps = np.outer(np.arange(length), np.arange(length)) % length
    quarter, rest = np.divmod(4 * steps, length)
    angles = 0.5 * math.pi * (rest / length)
    cosine, sine = np.cos(angles) / math.sqrt(length), np.sin(angles) / math.sqrt(length)
    return (
        np.choose(quarter, [cosine, -sine, -cosine, sine]),
        np.choose(quarter, [sine, cosine, -sine, -cosine]),
    )


def transform(grid: Grid, sign: float) -> Grid:
    """Unitary 2-D transform, exp(-i ...) for sign -1: along the rows, then along the columns."""
    real, imaginary = grid
    for axis in (0, 1):
        cosine, sine = _table(real.shape[axis])
        shape = np.moveaxis(real, axis, 0).shape
        columns = [np.moveaxis(part, axis, 0).reshape(shape[0], -1) for part in (real, imaginary)]
        turned = (
            cosine @ columns[0] - sign * (sine @ columns[1]),
            cosine @ columns[1] + sign * (sine @ columns[0]),
        )
        real, imaginary = (np.moveaxis(part.reshape(shape), 0, axis) for part in turned)
    return real, imaginary


def convolve(x: Array, real: Array, pairs: Array, product: Product) -> Array:
    """Multiply each frequency of ``x (batch, in, h, w)`` by its block; no bias."""
    batch, _, height, width = x.shape
    grid = x.transpose(2, 3, 0, 1)
    x_real, x_imaginary = transform((grid, np.zeros_like(grid)), -1.0)
    own, other = (np.array(kept, int).reshape(-1, 2).T for kept in frequencies(height, width))
    y_real = np.empty((height, width, batch, real.shape[1]))
    y_imaginary = np.zeros_like(y_real)
    y_real[*own] = product(x_real[*own], real.transpose(0, 2, 1))
    a, b = x_real[*other], x_imaginary[*other]
    re, im = pairs[:, 0].transpose(0, 2, 1), pairs[:, 1].transpose(0, 2, 1)
    mirror = (-other[0] % height, -other[1] % width)
    y_real[*other] = product(a, re) - product(b, im)
    y_imaginary[*other] = product(a, im) + product(b, re)
    y_real[*mirror], y_imaginary[*mirror] = y_real[*other], -y_imaginary[*other]
    return transform((y_real, y_imaginary), 1.0)[0].transpose(2, 3, 0, 1)


def own_error(height: int, width: int) -> float:
    """(C4): relative error of :func:`transform`. Each pass sums p products, twice, of entries that
    are at most 1 / root(p) and wrong by TABLE / root(p); and one half of each conjugate pair stands
    for both, so that its error counts twice in the square."""
    passes = (math.sqrt(2.0 * p) * (TABLE + gamma(p + 2)) for p in (height, width))
    return math.sqrt(2.0) * (math.prod(1.0 + error for error in passes) - 1.0 + 2.0 * UNIT)


def deployed_error(height: int, width: int, unit: float) -> float:
    """(C5): relative error of a transform that a profile admits: by FFT, or (small maps) by a
    matrix, which is orthogonal, so that its absolute values have a norm of at most root(pixels)."""
    pixels = height * width
    if pixels <= MATRIX_LIMIT:
        stored = DEPLOYED_TABLE + 2.0 * UNIT + (unit if unit > UNIT else 0.0)
        return math.sqrt(2.0 * pixels) * (stored + gamma(pixels, unit) * (0.71 + stored))
    twiddle = TWIDDLE * unit
    # One stage more for real input, which adds before it multiplies as well.
    total = twiddle + math.sqrt(2.0) * (1.0 + twiddle) * gamma(5, unit)
    for p in (*_primes(height), *_primes(width)):
        # Roots of order 2 are signs; others are rounded, and each is one more complex product.
        sums = gamma(4, unit) if p == 2 else twiddle + (1.0 + twiddle) * gamma(p + 5, unit)
        total += twiddle + math.sqrt(p) * (1.0 + twiddle) * sums
    stages = compounded(total, f"transforms of {height} x {width} pixels at unit roundoff {unit}")
    halves = math.sqrt(2.0) * stages  # a kept conjugate stands for both
    return halves + (1.0 + halves) * gamma(8, unit)


def _primes(number: int) -> list[int]:
    factor = next((k for k in range(2, math.isqrt(number) + 1) if number % k == 0), number)
    return [] if number == 1 else [factor, *_primes(number // factor)]
