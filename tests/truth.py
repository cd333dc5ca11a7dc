"""The exact function of a frozen network, in fixed point of so many bits that nothing is lost.

A number is an integer, in units of ``2**-bits``. A step loses some units, and later layers multiply
them; :data:`DOUBT` is far above their sum and far below any bound of a rounding error.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import torch
from numpy.typing import NDArray
from slicing import slices
from torch import Tensor

from unitmargin.frozen import CircularConvolution, ConvexCombination, Dense
from unitmargin.frozen.mixing import Mixing
from unitmargin.frozen.reflection import Reflection
from unitmargin.layers.activations import OPLU, Abs, GroupSort, MaxMin, PartialAbs
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.fourier import frequencies
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten, MaxPool, PixelUnshuffle, Widen
from unitmargin.layers.slices import Folds

Integers = NDArray[Any]

BITS = {torch.float32: 700, torch.float64: 1700}
"""The smallest number of the type is an integer, and 2^500 units are far below it."""

DOUBT = 1 << 450
"""A unit that is lost behind eight layers of norm 2^40 has become fewer."""


class Truth:
    """Exact layers for one type of inputs; arrays have no batch axis."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.bits = BITS[dtype]

    def fixed(self, values: Tensor) -> Integers:
        """The numbers of a tensor, exactly."""
        flat = [self.number(value) for value in values.double().flatten().tolist()]
        return np.array([*flat, None], dtype=object)[:-1].reshape(tuple(values.shape))

    def number(self, value: float) -> int:
        """A float as an integer, rounded down."""
        numerator, denominator = value.as_integer_ratio()
        return (numerator << self.bits) // denominator

    def squares(self, values: Integers) -> int:
        """The squared norm, in units of ``2**(-2 * bits)``."""
        flat = values.ravel()
        return int(flat @ flat)

    def norm(self, values: Integers) -> Fraction:
        """The norm, rounded down."""
        return Fraction(math.isqrt(self.squares(values)), 1 << self.bits)

    def is_below(self, values: Integers, bound: float) -> bool:
        """Whether the norm is at most ``bound``, up to the doubt; NaN bounds nothing."""
        if not math.isfinite(bound):
            return bound == math.inf
        limit = self.number(bound) + DOUBT
        return self.squares(values) <= limit * limit

    def apply(self, layer: FixedLayer, x: Integers) -> Integers:
        """The exact output of a layer."""
        if isinstance(layer, Dense):
            return (self.fixed(layer.weight) @ x >> self.bits) + self.fixed(layer.bias)
        if isinstance(layer, CircularConvolution):
            return self._convolve(layer, x)
        if isinstance(layer, Normalize):
            shape = (-1, *(1,) * (x.ndim - 1))
            mean, std = (self.fixed(part).reshape(shape) for part in (layer.mean, layer.std))
            quotient: Integers = ((x - mean) << self.bits) // std
            return quotient
        if isinstance(layer, ScaledAveragePool | L2Pool):
            channels, height, width = x.shape
            size = layer.size
            windows = x.reshape(channels, height // size, size, width // size, size)
            if isinstance(layer, L2Pool):
                return _roots((windows * windows).sum((2, 4)))
            averages: Integers = windows.sum((2, 4)) // size
            return averages
        if isinstance(layer, Mixing | Reflection):
            return self._sliced(layer, x)
        if isinstance(layer, ConvexCombination):
            share, output = self.number(float(layer.share)), x
            for inner in layer.sublayers():
                output = self.apply(inner, output)
            joined: Integers = share * x + ((1 << self.bits) - share) * output
            return joined >> self.bits
        return _moved(layer, x)

    def _sliced(self, layer: Mixing | Reflection, x: Integers) -> Integers:
        """Slice by slice, as the definition of its arrangement says."""
        weight, bias = self.fixed(layer.weight), self.fixed(layer.bias)
        flat, output = x.ravel(), np.empty_like(x.ravel())
        for matrix, inside, outside in slices(layer.arrangement, layer.channels):
            part = flat[inside]
            products = (weight[matrix] @ part >> self.bits) + bias[matrix]
            if isinstance(layer, Mixing):
                products[: layer.absolute] = np.abs(products[: layer.absolute])
                output[outside] = products
            else:
                back = weight[matrix].T @ np.maximum(products, 0)
                output[outside] = part - (2 * back >> self.bits)
        shape = x.shape
        if isinstance(layer.arrangement, Folds):
            size = layer.arrangement.size
            shape = (shape[0] * size**2, shape[1] // size, shape[2] // size)
        return output.reshape(shape)

    def _convolve(self, layer: CircularConvolution, x: Integers) -> Integers:
        """By frequency, with the cosines and sines of the exact transform."""
        channels, height, width = x.shape
        pixels, bits = height * width, self.bits
        (own_cos, _), (cosine, sine) = waves(height, width, bits)
        columns = x.reshape(channels, pixels).T
        alone = own_cos @ columns >> bits
        re, im = cosine @ columns >> bits, -(sine @ columns) >> bits
        pairs = self.fixed(layer.pairs)
        real = _blocks(self.fixed(layer.real), alone) >> bits
        a = _blocks(pairs[:, 0], re) - _blocks(pairs[:, 1], im) >> bits
        b = _blocks(pairs[:, 0], im) + _blocks(pairs[:, 1], re) >> bits
        total = own_cos.T @ real + 2 * (cosine.T @ a - sine.T @ b)
        maps = ((total >> bits) // pixels).T.reshape(-1, height, width)
        return maps + self.fixed(layer.bias)[:, None, None]


def _roots(squares: Integers) -> Integers:
    """Square roots, rounded down."""
    roots = [math.isqrt(square) for square in squares.ravel().tolist()]
    return np.array([*roots, None], dtype=object)[:-1].reshape(squares.shape)


def _moved(layer: FixedLayer, x: Integers) -> Integers:
    """Layers that move and compare numbers."""
    if isinstance(layer, Flatten):
        return x.ravel()
    if isinstance(layer, Abs):
        return np.abs(x)
    if isinstance(layer, PartialAbs):
        first, rest = np.split(x, [len(x) // layer.group])
        return np.concatenate((np.abs(first), rest))
    if isinstance(layer, MaxMin):
        first, second = np.split(x, 2)
        return np.concatenate((np.maximum(first, second), np.minimum(first, second)))
    if isinstance(layer, OPLU | GroupSort):
        groups = x.reshape(len(x) // layer.group, layer.group, *x.shape[1:])
        return np.sort(groups, axis=1)[:, ::-1].reshape(x.shape)
    channels, height, width = x.shape
    if isinstance(layer, Widen):
        return np.concatenate((x, np.zeros_like(x).repeat(layer.factor - 1, axis=0)))
    if isinstance(layer, MaxPool):
        size = layer.size
        windows = x.reshape(channels, size, height // size, size, width // size)
        largest: Integers = windows.max((2, 4))
        return largest
    assert isinstance(layer, PixelUnshuffle)
    factor = layer.factor
    blocks = x.reshape(channels, height // factor, factor, width // factor, factor)
    moved = blocks.transpose(0, 2, 4, 1, 3)
    return moved.reshape(-1, height // factor, width // factor)


def _blocks(stack: Integers, vectors: Integers) -> Integers:
    """Each matrix of a stack times its vector."""
    return (stack * vectors[:, None, :]).sum(2)


Waves = tuple[Integers, Integers]


@lru_cache
def waves(height: int, width: int, bits: int) -> tuple[Waves, Waves]:
    """Cosines and sines (frequencies, pixels) of self-conjugate frequencies and of pairs."""
    turn = math.lcm(height, width)
    with mpmath.workprec(bits + 20):
        angles = [2 * mpmath.pi * k / turn for k in range(turn)]
        cosines = [int(mpmath.floor(mpmath.ldexp(mpmath.cos(angle), bits))) for angle in angles]
        sines = [int(mpmath.floor(mpmath.ldexp(mpmath.sin(angle), bits))) for angle in angles]
    points = [(row, column) for row in range(height) for column in range(width)]

    def table(chosen: list[tuple[int, int]], values: list[int]) -> Integers:
        rows = [
            [values[(f * p * (turn // height) + g * q * (turn // width)) % turn] for p, q in points]
            for f, g in chosen
        ]
        return np.array(rows, dtype=object).reshape(len(chosen), len(points))

    kept = frequencies(height, width)
    first, second = ((table(c, cosines), table(c, sines)) for c in (kept.real, kept.pairs))
    return first, second
