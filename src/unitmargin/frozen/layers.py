"""The weighted layers of a deployed network: plain tensors, no parametrisation."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.fixed import FixedLayer
from unitmargin.fourier import CircularTransform, Spectrum, convolve

NEAR = 1e-4
"""Frobenius norm of W W^T - I up to which its eigenvalues are computed in single precision: known
to 1e-9 then, in two thirds of the time."""


def singular_values(matrices: Tensor) -> Float[Tensor, " values"]:
    """All singular values of a stack of matrices, real or complex, ascending, in float64: as many
    a matrix as its shorter side has entries.

    Square roots of the Gram matrices' eigenvalues, of near-orthogonal matrices those of their
    deviation from I, in single precision.
    Guarantee: wrong by at most 1e-5 of the largest deviation from 1 (measured: 1.4e-6 of it at 768
    rows) where W W^T - I has a Frobenius norm of at most ``NEAR``; elsewhere by 1e-15 of the
    largest value near it, and by 1e-8 of it near 0.
    """
    if matrices.numel() == 0:
        return torch.empty(0, dtype=torch.float64, device=matrices.device)
    wide = matrices.to(torch.complex128 if matrices.is_complex() else torch.float64)
    gram = wide @ wide.mH if wide.shape[-2] <= wide.shape[-1] else wide.mH @ wide
    deviation = gram - torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    if float(torch.linalg.vector_norm(deviation, dim=(-2, -1)).max()) <= NEAR:
        single = torch.complex64 if matrices.is_complex() else torch.float32
        values = 1.0 + torch.linalg.eigvalsh(deviation.to(single)).double()
    else:
        values = torch.linalg.eigvalsh(gram)
    ascending: Tensor = values.clamp_min(0.0).sqrt().flatten().sort().values
    return ascending


class WeightedLayer(FixedLayer):
    """A fixed layer with a weight: its singular values are known exactly.

    It promises to be semi-orthogonal (all singular values 1), and GNP where it does not grow.

    Weights are stored contiguous, as files hold them: the order of summation, and with it the last
    bit of a logit, depends on the layout.
    """

    @property
    def gnp(self) -> bool:
        outputs, inputs = self.size
        return outputs <= inputs

    @property
    def size(self) -> tuple[int, int]:
        """Output and input width of each matrix of the layer."""
        raise NotImplementedError

    def singular_values(self) -> Float[Tensor, " values"]:
        """Singular values of the layer's linear part, ascending, float64."""
        raise NotImplementedError

    def norm(self) -> float:
        return float(self.singular_values()[-1])


class Dense(WeightedLayer):
    """``W x + b`` with stored ``weight (out, in)`` and ``bias (out,)``."""

    kind = "dense"
    weight: Tensor
    bias: Tensor

    def __init__(self, weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"]) -> None:
        super().__init__()
        if weight.ndim != 2 or bias.shape != weight.shape[:1]:
            raise ValueError(
                "a dense layer needs weight (out, in) and bias (out,), got shapes "
                f"{tuple(weight.shape)} and {tuple(bias.shape)}; pass one bias a row"
            )
        self.register_buffer("weight", weight.contiguous())
        self.register_buffer("bias", bias)

    def forward(self, x: Float[Tensor, "batch in"]) -> Float[Tensor, "batch out"]:
        if x.ndim != 2:  # the bias of several rows would be larger than its bound
            raise ValueError(
                f"a dense layer needs x (batch, in), got shape {tuple(x.shape)}; put a Flatten "
                "layer before it"
            )
        with torch.autocast(x.device.type, enabled=False):
            return torch.nn.functional.linear(x, self.weight, self.bias)

    @property
    def size(self) -> tuple[int, int]:
        return self.weight.shape[0], self.weight.shape[1]

    def singular_values(self) -> Float[Tensor, " values"]:
        return singular_values(self.weight)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}"


class CircularConvolution(WeightedLayer):
    """Circular convolution on one map size, stored by frequency (see :mod:`unitmargin.fourier`).

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
