"""Circular convolutions from their frequency blocks, and error bounds of transforms.

A file stores the matrices of a map's self-conjugate frequencies, and of one frequency of each other
conjugate pair: ordered by row and column, columns up to half the width.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unitmargin.checker.arithmetic import UNIT, compounded, gamma, own_length
from unitmargin.checker.reading import Array
from unitmargin.checker.step import product

TABLE = UNIT
"""Error of a cosine or sine of the checker's tables, which are rounded once: half of it."""

PI = 0x3243F6A8885A308D313198A2E03707344
"""Pi times 2^128, rounded down."""

DEPLOYED_TABLE = 40.0 * UNIT
"""Error of a cosine of a deployed table, but for its scale: the sum of two parts of a turn, times
2 pi, is an angle of at most 4 pi that is wrong by 30 units; the cosine may be wrong by 2, its scale
by 4; the rest is to spare."""

ROOT = math.sqrt(2.0)
"""Error of a root of unity in a deployed FFT, in unit roundoffs: each of its parts is within one
unit in its last place."""

COMPLEX = math.sqrt(8.0)
"""Error of a product of complex numbers, in unit roundoffs: each part is a sum of two products."""

SCALINGS = 6
"""Roundings of the factors around a deployed FFT: 1 / root(pixels) and root(2), each rounded twice
at most and multiplied."""

JOINING = 3
"""Roundings of a term where the waves of two sides are joined: root, product, sum."""

MATRIX_LIMIT = 64
"""Deployed maps of up to this many pixels are transformed by one matrix product, others by FFT."""

Points = NDArray[np.int64]
Parts = tuple[Array, Array]


def counts(height: int, width: int) -> tuple[int, int]:
    """How many self-conjugate frequencies and pairs a map has: by the parity of its sides."""
    alone = (2 - height % 2) * (2 - width % 2)
    return alone, (height * width - alone) // 2


def frequencies(height: int, width: int) -> tuple[Points, Points]:
    """Rows and columns of the stored frequencies. Those of twice a multiple of both sides are their
    own conjugates; of columns that mirror themselves the upper half of the rows is kept."""
    row, column = np.indices((height, width // 2 + 1)).reshape(2, -1)
    middle = 2 * column % width == 0
    alone = middle & (2 * row % height == 0)
    paired = ~middle | (2 * row < height) & ~alone
    return np.stack((row, column))[:, alone], np.stack((row, column))[:, paired]


class Waves(NamedTuple):
    """Cosines and sines of the multiples of one turn divided by the length of a side."""

    cosines: Array
    sines: Array

    def table(self, count: int) -> Parts:
        """Those of all products of a place on the side and a frequency below ``count``, reduced to
        one turn in whole numbers."""
        length = len(self.cosines)
        steps = np.outer(np.arange(length), np.arange(count)) % length
        return self.cosines[steps], self.sines[steps]


@lru_cache
def waves(length: int) -> Waves:
    """Made once for all layers of a side."""
    parts = 4 * np.arange(length)
    cosines, sines = ([_cosine(int(part), 4 * length) for part in parts - turned]
                      for turned in (0, length))  # fmt: skip
    return Waves(np.array(cosines), np.array(sines))


def _cosine(part: int, whole: int) -> float:
    """The cosine of part / whole of a turn, rounded once: its series in whole numbers, in units of
    2^-128, at an angle of at most a quarter turn."""
    part = min(part % whole, -part % whole)
    sign = -1 if 4 * part > whole else 1
    part = min(part, whole // 2 - part)
    if 4 * part == whole:
        return 0.0
    square = (2 * PI * part // whole) ** 2 >> 128
    term, total, order = 1 << 128, 0, 0
    while term:
        total += term if order % 4 == 0 else -term
        order += 2
        term = (term * square >> 128) // (order * (order - 1))
    return sign * (total / (1 << 128))


def analyse(x: Array, rows: Waves, columns: Waves) -> Parts:
    """Half the plane of frequencies ``(h, w // 2 + 1, batch * channels)`` of real maps, times the
    root of the number of pixels: along the rows, then along the columns."""
    height, width = x.shape[2:]
    half = width // 2 + 1
    flat = x.reshape(-1, width)
    real, imaginary = (
        product(flat, part).reshape(-1, height, half).transpose(1, 2, 0).reshape(height, -1)
        for part in columns.table(half)
    )
    cosine, sine = rows.table(height)
    return (
        (product(cosine, real) - product(sine, imaginary)).reshape(height, half, -1),
        -(product(cosine, imaginary) + product(sine, real)).reshape(height, half, -1),
    )


def synthesise(parts: Parts, rows: Waves, columns: Waves) -> Array:
    """The real maps ``(batch * channels, h, w)`` of half a plane, by the transposed tables; inner
    columns stand for their mirror images too."""
    height, half = parts[0].shape[:2]
    width = len(columns.cosines)
    real, imaginary = (part.reshape(height, -1) for part in parts)
    cosine, sine = rows.table(height)
    real, imaginary = (
        part.reshape(height, half, -1).transpose(2, 0, 1).reshape(-1, half)
        for part in (
            product(cosine, real) - product(sine, imaginary),
            product(cosine, imaginary) + product(sine, real),
        )
    )
    weight = np.where(2 * np.arange(half) % width == 0, 1.0, 2.0)
    cosine, sine = (part * weight for part in columns.table(half))
    maps: Array = product(real, cosine.T) - product(imaginary, sine.T)
    return maps.reshape(-1, height, width) / float(height * width)


def convolution(height: int, width: int, real: Array, pairs: Array) -> Callable[[Array], Array]:
    """The function of maps that multiplies each frequency by its block; no bias."""
    rows, columns = waves(height), waves(width)
    own, other = frequencies(height, width)
    edge = other[:, 2 * other[1] % width == 0]  # its mirror image lies in the half plane too
    alone, re, im = (block.transpose(0, 2, 1) for block in (real, pairs[:, 0], pairs[:, 1]))
    outputs = real.shape[1]

    def convolve(x: Array) -> Array:
        shape = (height, width // 2 + 1, *x.shape[:2])
        x_real, x_imaginary = (part.reshape(shape) for part in analyse(x, rows, columns))
        y_real = np.zeros((*shape[:3], outputs))
        y_imaginary = np.zeros_like(y_real)
        y_real[*own] = product(x_real[*own], alone)
        a, b = x_real[*other], x_imaginary[*other]
        y_real[*other] = product(a, re) - product(b, im)
        y_imaginary[*other] = product(a, im) + product(b, re)
        y_real[-edge[0], edge[1]] = y_real[*edge]
        y_imaginary[-edge[0], edge[1]] = -y_imaginary[*edge]
        maps = synthesise((y_real, y_imaginary), rows, columns)
        return maps.reshape(len(x), outputs, height, width)

    return convolve


def own_error(height: int, width: int) -> float:
    """(C4): relative error of :func:`analyse` and :func:`synthesise`. Entries have modulus 1, so
    the moduli of a pass are a matrix of norm p where the pass itself has root(p). The pass along
    rows has real numbers on one side; the other one has complex ones on both, each part of which is
    a sum of its own, and costs another root(2). The division by the pixels rounds once."""
    sums = [gamma(own_length(p) + 1) for p in (height, width)]
    down = math.sqrt(2.0 * height) * (sums[0] + (1.0 + sums[0]) * TABLE)
    across = math.sqrt(width) * (sums[1] + (1.0 + sums[1]) * math.sqrt(2.0) * TABLE)
    both = down + across + down * across
    return both + (1.0 + both) * UNIT


def deployed_error(height: int, width: int, unit: float) -> float:
    """(C5): relative error of a transform that a profile admits. By matrix: the Frobenius norm of
    the matrix of errors, whose entries are those of an orthogonal one. By FFT: the errors of its
    stages, each of them unitary but for a factor. In float64 also by a table a side."""
    pixels = height * width
    if pixels <= MATRIX_LIMIT:
        return _table_error(pixels, unit)
    turned = COMPLEX + ROOT
    stages = turned + 2.0  # real input: a sum, a product, and another sum
    for p in (*_factors(height), *_factors(width)):
        # A sum of two numbers is wrong by its own size; a longer one by those of its terms.
        stages += turned + (1.0 if p == 2 else math.sqrt(2.0 * p) * (p + 4.0))
    what = f"transforms of {height} x {width} pixels at unit roundoff {unit}"
    halves = math.sqrt(2.0) * compounded(stages * unit, what)  # a conjugate stands for both
    by_fft = halves + (1.0 + halves) * gamma(SCALINGS, unit)
    if unit > UNIT:
        return by_fft
    down, across = _table_error(height, unit), _table_error(width, unit)
    both = down + across + down * across
    # Two products of a side's waves make one of the map: a sum of two products with a stored root.
    return max(by_fft, both + (1.0 + both) * 2.0 * gamma(JOINING, unit))


def _table_error(count: int, unit: float) -> float:
    stored = math.sqrt(2.0 * count) * (DEPLOYED_TABLE + (unit if unit > UNIT else 0.0))
    return stored + gamma(count, unit) * (math.sqrt(count) + stored)


def _factors(number: int) -> list[int]:
    """Prime factors, with multiplicity."""
    found, candidate = [], 2
    while candidate * candidate <= number:
        while number % candidate == 0:
            found.append(candidate)
            number //= candidate
        candidate += 1
    return found + [number] * (number > 1)
