"""Layers of the ``float32-blocked`` profile: sums in an order the library owns, or in float64.

Inputs, outputs and what is stored between the layers are float32 everywhere.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.combination import ConvexCombination
from unitmargin.frozen.convolution import CircularConvolution
from unitmargin.frozen.dense import Dense
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.fourier import join_products

WIDE_CHANNELS = 256
"""Convolutions of small maps with up to this many channels run in float64: on one CPU thread that
costs two fifths of a whole float32 pass of the CIFAR-10 network, at 48 and 192 channels, and their
float32 transforms and sums would make more than half of its slack (docs/results.md)."""


def blocked_layer(layer: FixedLayer, chunk: int) -> FixedLayer:
    """A hidden layer as ``float32-blocked`` evaluates it.

    Dense layers run in float64, and so do convolutions of small maps up to ``WIDE_CHANNELS``; other
    convolutions sum by chunks, those with one chunk as they are.
    A branch is treated layer by layer.
    """
    if isinstance(layer, ConvexCombination):
        return ConvexCombination(
            layer.share, [blocked_layer(inner, chunk) for inner in layer.sublayers()]
        )
    if isinstance(layer, Dense):
        return WideDense(layer)
    if not isinstance(layer, CircularConvolution):
        return layer
    channels = layer.real.shape[2]
    if layer.transform.by_matrix and channels <= WIDE_CHANNELS:
        return WideConvolution(layer)
    return BlockedConvolution(layer, chunk) if channels > chunk else layer


def blocked_product(
    left: Float[Tensor, "*b m n"], right: Float[Tensor, "*b k n"], chunk: int
) -> Float[Tensor, "*b m k"]:
    """``left @ right.mT`` by chunks of n, added pairwise in a fixed tree.

    An entry sums at most ``chunk`` products in one dot product and meets at most
    ``ceil(log2(ceil(n / chunk)))`` additions after it.
    """
    chunks = -(-left.shape[-1] // chunk)
    if chunks <= 1:
        return left @ right.mT
    middle = (chunks + 1) // 2 * chunk
    first = blocked_product(left[..., :middle], right[..., :middle], chunk)
    return first.add_(blocked_product(left[..., middle:], right[..., middle:], chunk))


class BlockedDense(Dense):
    """A dense layer whose long dot products are summed by chunks: the head of the profile."""

    def __init__(self, layer: Dense, chunk: int) -> None:
        super().__init__(layer.weight, layer.bias)
        self.chunk = chunk

    def forward(self, x: Float[Tensor, "batch in"]) -> Float[Tensor, "batch out"]:
        with torch.autocast(x.device.type, enabled=False):
            return blocked_product(x, self.weight, self.chunk) + self.bias


class BlockedConvolution(CircularConvolution):
    """A circular convolution whose sums over channels run by chunks; the bias comes after them."""

    def __init__(self, layer: CircularConvolution, chunk: int) -> None:
        super().__init__(layer.real, layer.pairs, layer.bias, layer.transform.map_size)
        self.chunk = chunk

    def forward(self, x: Float[Tensor, "batch in h w"]) -> Float[Tensor, "batch out h w"]:
        with torch.autocast(x.device.type, enabled=False):
            self.transform.check(x)
            real, pairs = self.transform.analyse(x)
            blocks = self.pairs.flatten(1, 2)
            four = blocked_product(pairs.flatten(1, 2), blocks, self.chunk)
            waves = blocked_product(real, self.real, self.chunk)
            waves[0] += self.bias * math.sqrt(self.transform.n_pixels)
            return self.transform.synthesise(waves, join_products(four))


class WideDense(Dense):
    """A dense layer evaluated in float64; input and output keep the type they come in."""

    def __init__(self, layer: Dense) -> None:
        super().__init__(layer.weight.double(), layer.bias.double())

    def forward(self, x: Float[Tensor, "batch in"]) -> Float[Tensor, "batch out"]:
        return super().forward(x.double()).to(x.dtype)


class WideConvolution(CircularConvolution):
    """A circular convolution evaluated in float64; input and output keep the type they come in."""

    def __init__(self, layer: CircularConvolution) -> None:
        super().__init__(
            layer.real.double(), layer.pairs.double(), layer.bias.double(), layer.transform.map_size
        )

    def forward(self, x: Float[Tensor, "batch in h w"]) -> Float[Tensor, "batch out h w"]:
        return super().forward(x.double()).to(x.dtype)
