"""The circular convolution of a deployed network, stored by frequency."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.weighted import WeightedLayer
from unitmargin.layers.fourier import CircularTransform, Spectrum, convolve
from unitmargin.layers.singular_values import singular_values


class CircularConvolution(WeightedLayer):
    """Circular convolution on one map size, stored by frequency (see :mod:`unitmargin.layers.fourier`).

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
        self.transform = CircularTransform((map_size[0], map_size[1])).to(real)
        expected = (self.transform.n_real, self.transform.n_pairs)
        if (real.shape[0], pairs.shape[0]) != expected:
            raise ValueError(
                f"a {map_size[0]} x {map_size[1]} map has {expected[0]} real and {expected[1]} "
                f"paired frequencies, got {real.shape[0]} and {pairs.shape[0]} blocks; pass the "
                "map size the spectrum was made for"
            )
        if (
            real.ndim != 3
            or pairs.shape[1:] != (2, *real.shape[1:])
            or bias.shape != real.shape[1:2]
        ):
            raise ValueError(
                "a circular convolution needs real (S, out, in), pairs (P, 2, out, in) and bias "
                f"(out,), got shapes {tuple(real.shape)}, {tuple(pairs.shape)} and "
                f"{tuple(bias.shape)}; pass the spectrum of one kernel"
            )
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
        pairs = torch.complex(self.pairs[:, 0].double(), self.pairs[:, 1].double())
        values = (singular_values(self.real), singular_values(pairs).repeat(2))
        return torch.cat(values).sort().values

    def extra_repr(self) -> str:
        height, width = self.transform.map_size
        return f"{self.real.shape[2]}, {self.real.shape[1]}, map={height}x{width}"
