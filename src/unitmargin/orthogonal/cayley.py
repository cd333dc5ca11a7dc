"""Circular convolutions by the Cayley transform of each frequency: the paper's choice."""

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from unitmargin.fourier import KernelTransform, Spectrum, from_complex
from unitmargin.orthogonal.convolution import OrthogonalConv2d

INITIAL_SCALE = 0.3
"""Standard deviation of the raw kernel times sqrt(fan-in): the convolution then starts near the
identity, with rotation angles of a few tenths of a radian at every frequency."""

Matrix = Float[Tensor, "stack rows columns"] | Complex[Tensor, "stack rows columns"]


def cayley(raw: Matrix) -> Matrix:
    r"""Cayley transform to orthonormal rows, for stacks of real or complex matrices.

    With the free matrix split as :math:`X^H = [U; V]`, U square, and
    :math:`A = U - U^H + V^H V`:

    .. math:: Q^H = [(I + A)^{-1} (I - A);\; -2 V (I + A)^{-1}].

    Shapes: ``rows <= columns``. Real input gives real output.
    Guarantee: ``max |Q Q^H - I| <= 5e-6`` in float32, ``1e-13`` in float64: the Hermitian part of
    A is positive semidefinite, so I + A is never singular.
    Cost: one LU solve of each block.
    Source: the paper, section 4.1; Trockman, Kolter, arXiv 2104.07167.

    Example:
        >>> q = cayley(torch.randn(5, 3, 4, dtype=torch.complex64))
        >>> bool((q @ q.mH - torch.eye(3)).abs().max() < 5e-6)
        True
    """
    rows = raw.shape[-2]
    upper, lower = raw.mH.split((rows, raw.shape[-1] - rows), dim=-2)
    wide = lower.shape[-2] > 0
    # Square stacks skip the empty products: each would still pass over memory.
    skew = upper - upper.mH + lower.mH @ lower if wide else upper - upper.mH
    eye = torch.eye(rows, dtype=raw.dtype, device=raw.device)
    # (I + A)^-1 (I - A) = 2 (I + A)^-1 - I: the second solve is saved.
    inverse = torch.linalg.solve(eye + skew, 2.0 * eye.expand_as(skew))
    square = inverse - eye
    return (torch.cat((square, -lower @ inverse), dim=-2) if wide else square).mH


class CayleyConv2d(OrthogonalConv2d):
    """Circular convolution whose blocks are the Cayley transforms of a free kernel's spectrum.

    The free kernel has ``kernel_size`` taps a side and is wrapped on smaller maps; the orthogonal
    kernel has full support. See :func:`cayley`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        map_size: tuple[int, int],
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, map_size, bias)
        deviation = INITIAL_SCALE / (kernel_size * in_channels**0.5)
        kernel = torch.randn(out_channels, in_channels, kernel_size, kernel_size) * deviation
        self.raw = nn.Parameter(kernel)
        self.kernel_transform = KernelTransform((kernel_size, kernel_size), map_size)

    def spectrum(self) -> Spectrum:
        free = self.kernel_transform(self.raw)
        if self.transform.n_pairs == 0:
            return Spectrum(cayley(free.real), free.pairs)
        return from_complex(cayley(free.real), cayley(free.complex_pairs()))
