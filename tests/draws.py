"""Small networks and inputs of ordinary and of extreme numbers: weights from 2^-60 to 2^40 (and far
smaller ones in float64), inputs of any magnitude, every layer kind."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from unitmargin.frozen import CircularConvolution, ConvexCombination, Dense, FrozenNetwork
from unitmargin.frozen.mixing import MIXINGS
from unitmargin.frozen.reflection import REFLECTIONS
from unitmargin.layers.activations import OPLU, Abs, GroupSort, MaxMin, PartialAbs
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.fourier import frequencies
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten, MaxPool, PixelUnshuffle, Widen
from unitmargin.layers.slices import (
    EIGHTHS,
    Arrangement,
    Folds,
    Groups,
    Positions,
    Shifts,
    Windows,
)

MAPS = [(1, 1), (2, 2), (1, 3), (3, 1), (2, 3), (4, 4), (5, 2), (1, 7), (3, 5)]
"""Odd, prime and non-square ones, transformed by matrix."""

FFT_MAPS = [(1, 67), (5, 13), (8, 9)]
"""Maps above ``fourier.MATRIX_LIMIT``."""

LONG = 70
"""Features and channels of long sums."""

EXPONENTS = {torch.float32: (-149, 126), torch.float64: (-1074, 900)}
"""Magnitudes of inputs, the smallest and about the largest of a type."""


class Draw:
    """Random numbers of ordinary and of extreme magnitude; one seed a network."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self.random = Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = dtype

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def weights(self, *shape: int) -> Tensor:
        """All ordinary, all of one magnitude, each of its own, or small whole numbers."""
        kind = self.random.random()
        values = self.normal(*shape)
        if kind < 0.4:
            return values.to(self.dtype)
        if kind < 0.7:
            return (values * 2.0 ** self.exponent()).to(self.dtype)
        if kind < 0.85:
            low, high = sorted((self.exponent(), self.exponent()))
            each = torch.randint(low, high + 1, shape, generator=self.generator)
            return (values * 2.0 ** each.double()).to(self.dtype)
        return ((values * 2.0).round() * 2.0 ** self.exponent()).to(self.dtype)

    def exponent(self) -> int:
        """That of a weight; float64 holds far smaller ones."""
        if self.dtype == torch.float64 and self.random.random() < 0.3:
            return self.random.randint(-620, -480)
        return self.random.choice([-60, 40, 0, self.random.randint(-60, 40)])

    def bias(self, size: int) -> Tensor:
        return self.weights(size) if self.random.random() < 0.5 else self.weights(size) * 0

    def inputs(self, count: int, in_shape: Sequence[int]) -> Tensor:
        """A batch in which each input has its own magnitude, or each of its numbers."""
        low, high = EXPONENTS[self.dtype]
        edges = [0, 0, low, low + 3, low + 23, low // 2, high, high - 24, high // 2, 40]
        batch = []
        for _ in range(count):
            kind, values = self.random.random(), self.normal(*in_shape)
            own = self.random.choice([*edges, self.random.randint(low, high)])
            if kind < 0.2:
                each = torch.randint(own - 30, own + 2, tuple(in_shape), generator=self.generator)
                halves = each // 2, each - each // 2  # 2^1000 twice is no float64 number
                values = values * 2.0 ** halves[0].double() * 2.0 ** halves[1].double()
            else:
                if kind < 0.4:
                    values = (values * 4.0).round()
                values = values * 2.0 ** (own // 2) * 2.0 ** (own - own // 2)
            batch.append(values)
        top = torch.finfo(self.dtype).max
        return torch.stack(batch).clamp(-top, top).to(self.dtype)


def convolution(draw: Draw, inputs: int, outputs: int, size: tuple[int, int]) -> FixedLayer:
    kept = frequencies(*size)
    real = draw.weights(len(kept.real), outputs, inputs)
    pairs = draw.weights(len(kept.pairs), 2, outputs, inputs)
    if draw.random.random() < 0.3:  # a multiple of the identity: nothing hides what is lost
        scale = draw.weights(1)
        real = torch.eye(outputs, inputs).expand_as(real).to(draw.dtype) * scale
        pairs = torch.zeros_like(pairs)
        pairs[:, 0] = torch.eye(outputs, inputs).to(draw.dtype) * scale
    return CircularConvolution(real, pairs, draw.bias(outputs), size)


def dense(draw: Draw, inputs: int, outputs: int) -> Dense:
    weight = draw.weights(outputs, inputs)
    if draw.random.random() < 0.25:
        weight = torch.eye(outputs, inputs).to(draw.dtype) * draw.weights(1)
    return Dense(weight, draw.bias(outputs))


def normalisation(draw: Draw, channels: int) -> FixedLayer:
    limits = torch.finfo(draw.dtype)
    least = limits.tiny * (limits.eps if draw.random.random() < 0.3 else 1.0)
    std = draw.weights(channels).abs().clamp_min(least)
    if draw.random.random() < 0.3:
        std = torch.full_like(std, 3.0)
    mean = draw.inputs(1, (channels,))[0] if draw.random.random() < 0.2 else draw.bias(channels)
    return Normalize(mean, std)


def combination(draw: Draw, branch: list[FixedLayer]) -> FixedLayer:
    shares = [0.0, 1.0, 0.3, 2.0**-100, 1.0 - 2.0**-20]
    return ConvexCombination(torch.tensor(draw.random.choice(shares), dtype=draw.dtype), branch)


def in_shape(draw: Draw) -> tuple[int, ...]:
    """That of a vector, sometimes a long one, or of a map."""
    random = draw.random
    if random.random() < 0.5:
        return (random.randint(1, 6) if random.random() < 0.93 else LONG,)
    if random.random() < 0.94:
        return (random.choice([1, 1, 2, 2, EIGHTHS]), *random.choice(MAPS))
    return (LONG if random.random() < 0.1 else random.randint(1, 2), *random.choice(FFT_MAPS))


def mixing(draw: Draw, channels: int, size: tuple[int, int]) -> FixedLayer:
    """A layer of matrices on slices, or a reflection, of those arrangements that take the map."""
    window = 2 if size[0] % 2 == size[1] % 2 == 0 else 1
    shift = draw.random.randrange(window)
    possible: list[Arrangement] = [
        Windows(size, window, shift), Folds(size, window, shift), Positions(size), Groups(size, 1),
    ]  # fmt: skip
    if channels >= EIGHTHS:
        possible += [Shifts(size), Shifts(size)]
    arrangement = draw.random.choice(possible)
    count, side = arrangement.stack(channels)
    reflected = draw.random.random() < 0.5
    rows = draw.random.randint(1, side) if reflected else side
    weight = draw.weights(count, rows, side)
    if draw.random.random() < 0.25:
        weight = torch.eye(rows, side).expand_as(weight).to(draw.dtype) * draw.weights(1)
    bias, absolute = draw.bias(count * rows).view(count, rows), draw.random.randint(0, side)
    if reflected:
        return REFLECTIONS[type(arrangement)](weight, bias, **arrangement.configuration())
    return MIXINGS[type(arrangement)](weight, bias, absolute, **arrangement.configuration())


Shape = tuple[int, int, int]


def image_layers(draw: Draw, shape: Shape) -> tuple[list[FixedLayer], int]:
    """Convolutions and mixing layers, what stands between them, and how many features follow."""
    random = draw.random
    layers: list[FixedLayer] = []
    channels, height, width = shape
    for _ in range(random.randint(0, 1 if channels * height * width > 40 else 2)):
        if random.random() < 0.4 and channels * height * width <= LONG:
            layers.append(mixing(draw, channels, (height, width)))
            x = torch.zeros(1, channels, height, width, dtype=draw.dtype)
            channels, height, width = layers[-1](x).shape[1:]
        else:
            outputs = random.randint(1, 2)
            layers.append(convolution(draw, channels, outputs, (height, width)))
            channels = outputs
        if random.random() < 0.5:
            layers.append(
                Abs() if channels % 2 else random.choice([MaxMin(), OPLU(), PartialAbs(2)])
            )
        if height % 2 == width % 2 == 0 and random.random() < 0.5:
            pooled = random.choice([ScaledAveragePool(2), L2Pool(2), PixelUnshuffle(2)])
            channels *= 4 if isinstance(pooled, PixelUnshuffle) else 1
            height, width = height // 2, width // 2
            layers.append(pooled)
        if random.random() < 0.1:
            layers.append(Widen(2))
            channels *= 2
        if random.random() < 0.3:
            inner = convolution(draw, channels, channels, (height, width))
            layers.append(combination(draw, [inner, Abs()]))
    if random.random() < 0.2:
        pool = random.choice([ScaledAveragePool, L2Pool])
        layers.append(pool(height) if height == width else MaxPool(1))
        height, width = (1, 1)
    return [*layers, Flatten()], channels * height * width


def network(seed: int, dtype: torch.dtype) -> FrozenNetwork:
    """A network of up to eight hidden layers behind a map or a vector."""
    draw = Draw(seed, dtype)
    random = draw.random
    shape = in_shape(draw)
    layers = [normalisation(draw, shape[0])] if random.random() < 0.3 else []
    features = shape[0]
    if len(shape) == 3:
        more, features = image_layers(draw, shape)
        layers += more
    for _ in range(random.randint(0, 2)):
        outputs = random.randint(1, 6) if random.random() < 0.97 else LONG
        layers.append(dense(draw, features, outputs))
        features = outputs
        if random.random() < 0.4:
            kind = random.choice([GroupSort, PartialAbs])
            layers.append(kind(features) if features > 1 else Abs())
        if random.random() < 0.2:
            layers.append(combination(draw, [dense(draw, features, features)]))
    head = dense(draw, features, random.randint(2, 3))
    if random.random() < 0.3:
        head.weight[1:] = 0.0
        head.bias.zero_()
    return FrozenNetwork([*layers, head], shape)
