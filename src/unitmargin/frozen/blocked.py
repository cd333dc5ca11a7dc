"""Layers of the ``float32-blocked`` profile: float32 weights, sums in an order the library owns."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.fourier import join_products
from unitmargin.frozen.layers import CircularConvolution, Dense


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
    """A dense layer whose long dot products are summed by chunks."""

    def __init__(self, layer: Dense, chunk: int) -> None:
        super().__init__(layer.weight, layer.bias)
        self.chunk = chunk

    def forward(self, x: Float[Tensor, "batch in"]) -> Float[Tensor, "batch out"]:
        with torch.autocast(x.device.type, enabled=False):
            return blocked_product(x, self.weight, self.chunk) + self.bias


class BlockedConvolution(CircularConvolution):
    """A circular convolution whose sums over channels run by chunks."""

    def __init__(self, layer: CircularConvolution, chunk: int) -> None:
        super().__init__(layer.real, layer.pairs, layer.bias, layer.transform.map_size)
        self.chunk = chunk

    def forward(self, x: Float[Tensor, "batch in h w"]) -> Float[Tensor, "batch out h w"]:
        with torch.autocast(x.device.type, enabled=False):
            real, pairs = self.transform.analyse(x)
            blocks = self.pairs.flatten(1, 2)
            four = blocked_product(pairs.flatten(1, 2), blocks, self.chunk)
            waves = blocked_product(real, self.real, self.chunk)
            waves[0] += self.bias * math.sqrt(self.transform.n_pixels)
            return self.transform.synthesise(waves, join_products(four))


class WideConvolution(CircularConvolution):
    """A circular convolution evaluated in float64; input and output keep the type they come in."""

    def __init__(self, layer: CircularConvolution) -> None:
        super().__init__(
            layer.real.double(), layer.pairs.double(), layer.bias.double(), layer.transform.map_size
        )

    def forward(self, x: Float[Tensor, "batch in h w"]) -> Float[Tensor, "batch out h w"]:
        return super().forward(x.double()).to(x.dtype)
