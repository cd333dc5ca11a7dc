"""The circular convolution of a deployed network, stored by frequency."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.spectral import (
    absolute_norm_bound,
    in_chunks,
    real_embedding,
    spectral_norm_bound,
)
from unitmargin.frozen.transforms import (
    inside_a_transform,
    transform_error,
    underflow_of_transform,
)
from unitmargin.frozen.weighted import Errors, WeightedLayer
from unitmargin.layers.arithmetic import (
    UP,
    Affine,
    Arithmetic,
    gamma,
    norm_bounds,
    product_up,
)
from unitmargin.layers.bounds import LayerConstants
from unitmargin.layers.fourier import CircularTransform, Spectrum, convolve, count_frequencies
from unitmargin.layers.singular_values import spectrum_singular_values

BIAS_ROUNDINGS = 3
"""Roundings of a convolution's bias beside those of the sum it joins: the root of the number of
pixels, its product with the bias, and one addition."""


class CircularConvolution(WeightedLayer):
    """Circular convolution on one map size, stored by frequency (see ``layers/fourier.py``).

    ``real (S, out, in)`` are the blocks of the self-conjugate frequencies, ``pairs (P, 2, out,
    in)`` real and imaginary parts of the others. Storing the blocks, not a kernel, makes the norm
    exact: it is the largest singular value of any stored block.
    """

    kind = "circular_convolution"
    real: Tensor
    pairs: Tensor
    bias: Tensor

    def __init__(
        self,
        real: Float[Tensor, "s out in"],
        pairs: Float[Tensor, "p 2 out in"],
        bias: Float[Tensor, " out"],
        map_size: Sequence[int],
    ) -> None:
        super().__init__()
        # Compared before anything of the size of the map is made: a file may name any.
        expected = count_frequencies((map_size[0], map_size[1]))
        if (real.shape[0], pairs.shape[0]) != expected:
            raise ValueError(
                f"a {map_size[0]} x {map_size[1]} map has {expected[0]} real and {expected[1]} "
                f"paired frequencies, got {real.shape[0]} and {pairs.shape[0]} blocks; pass the "
                "map size the spectrum was made for"
            )
        block = real.shape[1:]
        fit = pairs.shape[1:] == (2, *block) and bias.shape == block[:1]
        if len(block) != 2 or 0 in block or not fit:
            raise ValueError(
                "a circular convolution needs real (S, out, in), pairs (P, 2, out, in) and bias "
                f"(out,), got shapes {tuple(real.shape)}, {tuple(pairs.shape)} and "
                f"{tuple(bias.shape)}; pass the spectrum of one kernel"
            )
        with torch.device(real.device):  # whatever the default device
            self.transform = CircularTransform((map_size[0], map_size[1])).to(real)
        self.register_buffer("real", real.contiguous())
        self.register_buffer("pairs", pairs.contiguous())
        self.register_buffer("bias", bias)

    def configuration(self) -> dict[str, Any]:
        return {"map_size": list(self.transform.map_size)}

    def forward(self, x: Float[Tensor, "batch in h w"]) -> Float[Tensor, "batch out h w"]:
        with torch.autocast(x.device.type, enabled=False):
            return convolve(x, Spectrum(self.real, self.pairs), self.bias, self.transform)

    @property
    def size(self) -> tuple[int, int]:
        return self.real.shape[1], self.real.shape[2]

    def singular_values(self) -> Float[Tensor, " values"]:
        return spectrum_singular_values(Spectrum(self.real, self.pairs.double()))

    def constants(self) -> LayerConstants:
        """S is the largest norm of any block, a that of the absolute values of any, complex ones
        embedded: of ``[[|Re|, |Im|], [|Im|, |Re|]]`` that is the norm of ``|Re| + |Im|``."""
        real = [spectral_norm_bound(part) for part in in_chunks(self.real)]
        pairs = [spectral_norm_bound(real_embedding(part), True) for part in in_chunks(self.pairs)]
        sums = self.pairs.double().abs().sum(1)
        chunks = [*in_chunks(self.real), *in_chunks(sums)]
        absolute = max(absolute_norm_bound(chunk) for chunk in chunks) * UP
        pixels = self.transform.n_pixels**0.5 * UP
        bias = product_up(float(norm_bounds(self.bias[None])), pixels)
        return LayerConstants(max(real + pairs), absolute, bias)

    def errors(self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic) -> Errors:
        """(9): transform, one product a frequency with the bias in it or after it, transform back,
        all in ``arithmetic``. What a step loses to underflow passes through the later ones."""
        (outputs, inputs), pixels, unit = self.size, self.transform.n_pixels, arithmetic.unit
        turn = transform_error(self.transform, unit)
        lost = underflow_of_transform(pixels, inputs, arithmetic)
        turned = incoming * (1.0 + turn) + lost
        sums = gamma(inputs + 1, unit)  # one more: the bias, or Re Re - Im Im
        error = (incoming * turn + lost) * constants.norm + turned * (sums * constants.absolute)
        error = error + Affine(constants.bias) * gamma(inputs + BIAS_ROUNDINGS, unit)
        error = error + arithmetic.underflow(2 * inputs, pixels * outputs)
        summed = incoming * constants.norm + Affine(constants.bias) + error
        largest = turned + turned * constants.absolute + Affine(constants.bias) + summed
        error = error + summed * turn + underflow_of_transform(pixels, outputs, arithmetic)
        return error * UP, largest * inside_a_transform(pixels)

    def extra_repr(self) -> str:
        (outputs, inputs), (height, width) = self.size, self.transform.map_size
        return f"{inputs}, {outputs}, map={height}x{width}"
